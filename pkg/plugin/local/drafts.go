// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// draft returns a draft as the next generation of the stored policy of the same name, or as a new policy.
func (w *World) draft(p *gc.CleanupPolicy) *gc.CleanupPolicy {
	out, _ := w.setting.draftOf(p)
	return out
}

// draftOf also returns the stored policy whose place the draft takes; nil if there is none.
func (s *setting) draftOf(p *gc.CleanupPolicy) (after, before *gc.CleanupPolicy) {
	after = &gc.CleanupPolicy{ObjectMeta: newMeta(p.Namespace, p.Name), Spec: *p.Spec.DeepCopy()}
	after.Spec.Mode = gc.ModeEnforce
	i := slices.IndexFunc(s.policies, func(o *gc.CleanupPolicy) bool { return o.Namespace == p.Namespace && o.Name == p.Name })
	if i < 0 {
		return after, nil
	}
	after.ObjectMeta = nextMeta(&s.policies[i].ObjectMeta)
	return after, s.policies[i]
}

// clusterDraft is like draft, for a cluster policy.
func (w *World) clusterDraft(p *gc.ClusterCleanupPolicy) *gc.ClusterCleanupPolicy {
	out, _ := w.setting.clusterDraftOf(p)
	return out
}

// clusterDraftOf is like draftOf, for a cluster policy.
func (s *setting) clusterDraftOf(p *gc.ClusterCleanupPolicy) (after, before *gc.ClusterCleanupPolicy) {
	after = &gc.ClusterCleanupPolicy{ObjectMeta: newMeta("", p.Name), Spec: *p.Spec.DeepCopy()}
	after.Spec.Mode = gc.ModeEnforce
	i := slices.IndexFunc(s.clusterPolicies, func(o *gc.ClusterCleanupPolicy) bool { return o.Name == p.Name })
	if i < 0 {
		return after, nil
	}
	after.ObjectMeta = nextMeta(&s.clusterPolicies[i].ObjectMeta)
	return after, s.clusterPolicies[i]
}

func newMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uuid.NewUUID(), Generation: 1, ResourceVersion: "1"}
}

func nextMeta(stored *metav1.ObjectMeta) metav1.ObjectMeta {
	out := *stored.DeepCopy()
	out.Generation++
	return out
}
