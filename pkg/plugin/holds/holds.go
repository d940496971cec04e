// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package holds reads what waits for approval by a policy, and approves it.
package holds

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	gcclient "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/typed/gc/v1alpha1"
)

// Policy is a policy with holds.
type Policy struct {
	types.NamespacedName // without a namespace if it is a cluster policy
	resourceVersion      string
	annotations          map[string]string
	holds                []v1alpha1.PolicyHold
}

// Of returns the holds of a policy with this metadata and status.
func Of(m *metav1.ObjectMeta, s *v1alpha1.CleanupPolicyStatus) *Policy {
	return &Policy{types.NamespacedName{Namespace: m.Namespace, Name: m.Name}, m.ResourceVersion, m.Annotations, s.Holds}
}

// Read reads a policy. Without a namespace, it is a cluster policy.
func Read(ctx context.Context, client gcclient.GcV1alpha1Interface, of types.NamespacedName) (*Policy, error) {
	if of.Namespace == "" {
		p, err := client.ClusterCleanupPolicies().Get(ctx, of.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return Of(&p.ObjectMeta, &p.Status), nil
	}
	p, err := client.CleanupPolicies(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return Of(&p.ObjectMeta, &p.Status), nil
}

// Waiting returns the holds that are not approved yet.
func (p *Policy) Waiting() ([]gc.PolicyHold, error) {
	approved := gc.ApprovedHolds(p.annotations[gc.AnnotationApprovedHold])
	var out []gc.PolicyHold
	for i := range p.holds {
		if p.holds[i].Policy == "" && slices.Contains(approved, p.holds[i].ID) { // The status lags behind approvals.
			continue
		}
		hold := gc.PolicyHold{}
		if err := v1alpha1.Convert_v1alpha1_PolicyHold_To_gc_PolicyHold(&p.holds[i], &hold, nil); err != nil {
			return nil, err
		}
		out = append(out, hold)
	}
	return out, nil
}

// WaitsIn returns the namespace of the objects that wait; empty if there are several.
func (p *Policy) WaitsIn() (string, error) {
	waiting, err := p.Waiting()
	if err != nil || len(waiting) == 0 {
		return p.Namespace, err
	}
	for i := range waiting {
		if waiting[i].Namespace != waiting[0].Namespace {
			return "", nil
		}
	}
	return waiting[0].Namespace, nil
}

// Approve approves holds of a policy, besides those that are approved when it writes. It reads the policy again: since a person was asked,
// somebody may have approved another hold, or withdrawn an approval.
func Approve(ctx context.Context, client gcclient.GcV1alpha1Interface, of types.NamespacedName, ids []string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		policy, err := Read(ctx, client, of)
		if err != nil {
			return err
		}
		patch, err := policy.approving(ids)
		if err != nil {
			return err
		}
		options := metav1.PatchOptions{FieldManager: "kubectl-winnow"}
		if of.Namespace == "" {
			_, err = client.ClusterCleanupPolicies().Patch(ctx, of.Name, types.MergePatchType, patch, options)
		} else {
			_, err = client.CleanupPolicies(of.Namespace).Patch(ctx, of.Name, types.MergePatchType, patch, options)
		}
		return err
	})
}

// approving returns the patch that also approves these holds, if nobody has written the policy since it was read.
func (p *Policy) approving(ids []string) ([]byte, error) {
	all := gc.ApprovedHolds(p.annotations[gc.AnnotationApprovedHold])
	for _, id := range ids {
		if !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": p.resourceVersion,
		"annotations":     map[string]string{gc.AnnotationApprovedHold: strings.Join(all, ",")},
	}})
}
