// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/internal/plugintest"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

var configMap = local.Object{Resource: "configmaps", Namespace: "team-a", Name: "c"}

// TestWhyNoCopy: what the record of a deletion says, if there is no copy.
func TestWhyNoCopy(t *testing.T) {
	record := func(until time.Duration) []v1alpha1.CleanupRecord {
		r := v1alpha1.CleanupRecord{Status: v1alpha1.CleanupRecordStatus{
			Policy: v1alpha1.RecordPolicy{Kind: "CleanupPolicy", Name: "p"}, DeletionTime: metav1.NewMicroTime(plugintest.Now.Add(-time.Hour)),
		}}
		if until != 0 {
			at := metav1.NewMicroTime(plugintest.Now.Add(until))
			r.Status.CopyExpirationTime = &at
		}
		return []v1alpha1.CleanupRecord{r}
	}
	for name, c := range map[string]struct {
		known []v1alpha1.CleanupRecord
		want  string
	}{
		"no record": {nil, "there is no copy of configmaps/c in namespace team-a, and no record that Winnow deleted it; to see what it deleted: " +
			"kubectl winnow history -n team-a"},
		"no keepCopy": {record(0), "there is no copy of configmaps/c in namespace team-a: cup/p deleted it at 2026-07-01T11:00:00Z, by a rule without keepCopy"},
		"expired":     {record(-time.Minute), "there is no copy of configmaps/c in namespace team-a: cup/p deleted it at 2026-07-01T11:00:00Z, and kept a copy until 2026-07-01T11:59:00Z"},
		"removed":     {record(time.Minute), "there is no copy of configmaps/c in namespace team-a: cup/p deleted it at 2026-07-01T11:00:00Z, and stored a copy, which somebody has removed since"},
	} {
		if got := whyNoCopy(configMap, c.known, plugintest.Now); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestWhyNotCreated: the error of the API server has a way out.
func TestWhyNotCreated(t *testing.T) {
	resource := schema.GroupResource{Resource: "configmaps"}
	terminating := apierrors.NewForbidden(resource, "c", errors.New("x"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for want, err := range map[string]error{
		"exists in namespace team-a already, and restore overwrites nothing": apierrors.NewAlreadyExists(resource, "c"),
		"the namespace team-a is being deleted":                              terminating,
		"kubectl auth can-i create configmaps -n team-a":                     apierrors.NewForbidden(resource, "c", errors.New("no role")),
		"cannot create configmaps/c: namespaces \"team-a\" not found":        apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "team-a"),
	} {
		if got := whyNotCreated(configMap, err).Error(); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
