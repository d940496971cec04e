// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/holds"
	"github.com/winnow-dev/winnow/pkg/plugin/ui"
)

// Policies implements ui.Source.
func (s *uiSource) Policies(ctx context.Context, namespace string) ([]ui.Policy, []string, error) {
	if err := checkNamespace(namespace); err != nil {
		return nil, nil, err
	}
	cluster, said, err := s.Collecting()
	if err != nil {
		return nil, nil, err
	}
	switch installed, err := cluster.Installed(ctx); {
	case err != nil:
		return []ui.Policy{}, []string{err.Error()}, nil
	case !installed:
		return []ui.Policy{}, nil, nil
	}
	own, all, notes, err := cluster.Policies(ctx, namespace)
	if err != nil {
		return nil, nil, err
	}
	found := make([]storedPolicy, 0, len(own)+len(all))
	for i := range all {
		p := &all[i]
		found = append(found, storedPolicy{gc.KindClusterCleanupPolicy, &p.ObjectMeta, p.Spec, p.Spec.Mode, p.Spec.Suspend, &p.Status})
	}
	for i := range own {
		p := &own[i]
		found = append(found, storedPolicy{gc.KindCleanupPolicy, &p.ObjectMeta, p.Spec, p.Spec.Mode, p.Spec.Suspend, &p.Status})
	}
	out := make([]ui.Policy, len(found))
	for i := range found {
		if out[i], err = found[i].view(); err != nil {
			return nil, nil, err
		}
	}
	return out, append(notes, said.Few()...), nil
}

// storedPolicy is a policy of either kind.
type storedPolicy struct {
	kind    string
	meta    *metav1.ObjectMeta
	spec    any
	mode    v1alpha1.PolicyMode
	suspend bool
	status  *v1alpha1.CleanupPolicyStatus
}

// view returns the policy for the page.
func (p *storedPolicy) view() (ui.Policy, error) {
	holds, err := holdsOf(p.meta, p.status)
	if err != nil {
		return ui.Policy{}, err
	}
	text, err := manifestOf(p.kind, p.meta, p.spec)
	s := p.status
	return ui.Policy{
		Cluster: p.kind == gc.KindClusterCleanupPolicy, Namespace: p.meta.Namespace, Name: p.meta.Name, Mode: string(p.mode), YAML: text,
		Suspended: stopped(p.suspend, s), Conditions: s.Conditions, Holds: holds, UnlistedHolds: s.UnlistedHolds,
		Candidates: s.Candidates, Due: s.Due, Held: s.Held, Deleted: s.Deleted, Next: s.NextDeletionTime,
	}, err
}

// stopped reports whether a policy deletes nothing now.
func stopped(suspend bool, s *v1alpha1.CleanupPolicyStatus) bool {
	return suspend || meta.IsStatusConditionTrue(s.Conditions, gc.ConditionSuspended)
}

// holdsOf returns what waits for approval by a policy, or by another one.
func holdsOf(m *metav1.ObjectMeta, s *v1alpha1.CleanupPolicyStatus) ([]ui.Hold, error) {
	of := types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
	waiting, err := holds.Of(m, s).Waiting()
	var out []ui.Hold
	for i := range waiting {
		h := &waiting[i]
		hold := ui.Hold{ID: h.ID, Namespace: h.Namespace, Objects: h.Objects, Resources: h.Resources, Why: h.Why, Since: h.Since}
		if owner := h.Owner(of); owner != of {
			hold.Approver = h.Policy
		}
		out = append(out, hold)
	}
	return out, err
}

// manifestOf returns a policy as its author would write it.
func manifestOf(kind string, m *metav1.ObjectMeta, spec any) (string, error) {
	annotations := maps.Clone(m.Annotations)
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	delete(annotations, gc.AnnotationApprovedHold) // Holds are approved one by one.
	text, err := yaml.Marshal(struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        map[string]any `json:"metadata"`
		Spec            any            `json:"spec"`
	}{
		metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind}, metadataOf(m, annotations), spec,
	})
	return string(text), err
}

// metadataOf returns what an author writes of metadata.
func metadataOf(m *metav1.ObjectMeta, annotations map[string]string) map[string]any {
	out := map[string]any{"name": m.Name}
	if m.Namespace != "" {
		out["namespace"] = m.Namespace
	}
	if len(m.Labels) > 0 {
		out["labels"] = m.Labels
	}
	if len(annotations) > 0 {
		out["annotations"] = annotations
	}
	return out
}
