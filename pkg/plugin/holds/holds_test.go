// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package holds

import (
	"encoding/json"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/fake"
)

// approvals is a policy that checks the resource version of writes, as an API server does, and the annotation that was written last.
type approvals struct {
	meta  metav1.ObjectMeta
	wrote string
	// before is called before each write, with the number of those before it.
	before func(m *metav1.ObjectMeta, writes int)
	writes int
}

func (a *approvals) patch(action clienttesting.Action) (bool, runtime.Object, error) {
	a.before(&a.meta, a.writes)
	a.writes++
	var sent struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal(action.(clienttesting.PatchAction).GetPatch(), &sent); err != nil {
		return true, nil, err
	}
	if v := sent.Metadata.ResourceVersion; v != "" && v != a.meta.ResourceVersion {
		return true, nil, apierrors.NewConflict(v1alpha1.Resource(action.GetResource().Resource), a.meta.Name, nil)
	}
	a.wrote = sent.Metadata.Annotations[gc.AnnotationApprovedHold]
	return true, nil, nil
}

// TestApproveBesideOthers: what others have approved or withdrawn since a person was asked stays so.
func TestApproveBesideOthers(t *testing.T) {
	set := func(value, version string) func(*metav1.ObjectMeta, int) {
		return func(m *metav1.ObjectMeta, writes int) {
			if writes == 0 {
				m.Annotations, m.ResourceVersion = map[string]string{gc.AnnotationApprovedHold: value}, version
			}
		}
	}
	for name, c := range map[string]struct {
		approved string
		before   func(*metav1.ObjectMeta, int)
		want     string
	}{
		"nothing else":            {"", set("", "1"), "mine"},
		"approved before":         {"other", set("other", "1"), "other,mine"},
		"the same, before":        {"mine,other", set("mine,other", "1"), "mine,other"},
		"approved by another":     {"", set("other", "2"), "other,mine"},
		"withdrawn by another":    {"other", set("", "2"), "mine"},
		"the status was written":  {"other", set("other", "2"), "other,mine"},
		"the same, by another":    {"", set("mine", "2"), "mine"},
		"written again and again": {"", func(m *metav1.ObjectMeta, writes int) { m.ResourceVersion = []string{"2", "3", "3"}[writes] }, "mine"},
	} {
		for _, of := range []types.NamespacedName{{Namespace: "team-a", Name: "p"}, {Name: "p"}} {
			a := &approvals{before: c.before, meta: metav1.ObjectMeta{
				Name: of.Name, ResourceVersion: "1", Annotations: map[string]string{gc.AnnotationApprovedHold: c.approved},
			}}
			client := &fake.Clientset{}
			client.AddReactor("get", "cleanuppolicies", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, &v1alpha1.CleanupPolicy{ObjectMeta: *a.meta.DeepCopy()}, nil
			})
			client.AddReactor("get", "clustercleanuppolicies", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, &v1alpha1.ClusterCleanupPolicy{ObjectMeta: *a.meta.DeepCopy()}, nil
			})
			client.AddReactor("patch", "*", a.patch)
			if err := Approve(t.Context(), client.GcV1alpha1(), of, []string{"mine"}); err != nil || a.wrote != c.want {
				t.Errorf("%s, %v: approved %q, want %q: %v", name, of, a.wrote, c.want, err)
			}
		}
	}
}
