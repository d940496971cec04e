// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/internal/plugintest"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/pkg/plugin/session"
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

// TestAsk: what nobody knows to be deleted is not created without a question.
func TestAsk(t *testing.T) {
	for name, c := range map[string]struct {
		options        restoreOptions
		doubt, answer  string
		fails, printed string
	}{
		"yes":                 {restoreOptions{}, "", "yes\n", "", "Type yes"},
		"no":                  {restoreOptions{}, "", "y\n", "nothing was created", "Type yes"},
		"no answer":           {restoreOptions{}, "", "", "nothing was created", "Type yes"},
		"by a flag":           {restoreOptions{yes: true}, "", "", "", ""},
		"in doubt":            {restoreOptions{}, "no record", "yes\n", "", "Warning: no record"},
		"in doubt, by a flag": {restoreOptions{yes: true}, "no record", "yes\n", "leave out --yes", "Warning: no record"},
		"in doubt, dry run":   {restoreOptions{tryIt: true, yes: true}, "no record", "", "", "Warning: no record"},
	} {
		t.Run(name, func(t *testing.T) {
			streams, in, out, errOut := genericiooptions.NewTestIOStreams()
			in.WriteString(c.answer)
			c.options.Session = &session.Session{IOStreams: streams}
			err := c.options.ask(c.doubt)
			if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("got %v", err)
			}
			if !strings.Contains(errOut.String(), c.printed) || out.Len() > 0 {
				t.Errorf("it prints %q, %q", errOut, out)
			}
		})
	}
}

// TestKeepFor: the new object is kept for a time from the beginning, unless the old one was kept for longer.
func TestKeepFor(t *testing.T) {
	for name, c := range map[string]struct{ keepFor, before, want, fails string }{
		"for a month":         {"30d", "", "2026-07-31T12:00:00Z", ""},
		"it was kept":         {"30d", "2026-07-02T00:00:00Z", "2026-07-31T12:00:00Z", ""},
		"it was kept, longer": {"30d", "2027-01-01T00:00:00Z", "2027-01-01T00:00:00Z", ""},
		"not":                 {"", "2026-07-02T00:00:00Z", "2026-07-02T00:00:00Z", ""},
		"no duration":         {"month", "", "", "--keep-for"},
	} {
		t.Run(name, func(t *testing.T) {
			found := &v1alpha1.CleanupCopy{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a"}}
			found.Status.Object.Name = "c"
			annotations := ""
			if c.before != "" {
				annotations = fmt.Sprintf(`, "annotations": {%q: %q}`, gc.AnnotationKeepUntil, c.before)
			}
			found.Status.Content = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "team-a"` + annotations + `}}`
			got, err := (&restoreOptions{keepFor: c.keepFor}).restorable(found, plugintest.Now)
			switch {
			case c.fails != "":
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("got %v", err)
				}
			case err != nil || got.GetAnnotations()[gc.AnnotationKeepUntil] != c.want:
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

// TestNotServed: the error names the versions that are served.
func TestNotServed(t *testing.T) {
	found := &v1alpha1.CleanupCopy{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "u"}}
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	mapper := meta.NewDefaultRESTMapper(nil)
	if got := notServed(mapper, kind, found).Error(); !strings.Contains(got, "install its CustomResourceDefinition") {
		t.Errorf("got %q", got)
	}
	mapper = meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "example.com", Version: "v2"}})
	mapper.Add(kind.GroupKind().WithVersion("v2"), meta.RESTScopeNamespace)
	if got := notServed(mapper, kind, found).Error(); !strings.Contains(got, "serves only v2") || !strings.Contains(got, "cleanupcopies u -n team-a") {
		t.Errorf("got %q", got)
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
