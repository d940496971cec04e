// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen=false

// PolicyChange is what a request does to a policy. It is never served.
type PolicyChange struct {
	// Before is nil for a new policy, and After for one that is deleted. Both are of the same kind: *CleanupPolicy or
	// *ClusterCleanupPolicy.
	Before, After metav1.Object
	// DryRun is set if nothing will be written.
	DryRun bool
}

// +k8s:deepcopy-gen=false

// LifecycleChange is what a request does to a ResourceLifecycle. It is never served.
type LifecycleChange struct {
	// Before is nil for a new lifecycle, and After for one that is deleted.
	Before, After *ResourceLifecycle
	// DryRun is set if nothing will be written.
	DryRun bool
}

// Resource returns the resource of the lifecycle.
func (c LifecycleChange) Resource() string {
	if c.After != nil {
		return c.After.Name
	}
	return c.Before.Name
}

// +k8s:deepcopy-gen=false

// PolicyForecast is what a change makes due at once, as far as is known. It is never served.
type PolicyForecast struct {
	// Lines describe the forecast to users.
	Lines []string
	// Holds are the holds for which objects of the changed policy wait, before the change itself approves any. A hold with Policy set must
	// be approved on that other policy.
	Holds []PolicyHold
	// Elsewhere are, by ID, the policies whose holds the change approves although they are no holds of the changed policy.
	Elsewhere map[string]types.NamespacedName
	// Complete is set if the forecast took all objects into account.
	Complete bool
	// Leading is set if this replica leads. If Complete is set too, there are no other holds than Holds.
	Leading bool
}

// +k8s:deepcopy-gen=false

// ServedResource is what a cluster says of a resource. The zero value says nothing against it.
type ServedResource struct {
	// Refusal says why Winnow cannot delete objects of the resource; empty if it can. Refers is set if it can list and watch them
	// nevertheless, so that it sees what they refer to.
	Refusal string
	Refers  bool
	// Missing is set if the cluster does not serve the resource, and Similar is one that was perhaps meant: it is served, or has a built-in
	// lifecycle.
	Missing bool
	Similar string
	// Endless is set if it is not known when the objects have finished, because the resource has no lifecycle.
	Endless bool
	// TakesAlong is which data goes with the objects when they are deleted, and how to keep it; empty if nothing is known of any.
	TakesAlong string
}

// DataLoss returns the warning about objects of a resource that take data along; empty if nothing is known of any.
func (s ServedResource) DataLoss(resource string) string {
	if s.TakesAlong == "" {
		return ""
	}
	return fmt.Sprintf("deleting objects of %s also deletes %s", resource, s.TakesAlong)
}

// Ineffective says of a lifecycle of the resource what has no effect, and why; empty if all of it has. wholly is set if nothing has.
func (s ServedResource) Ineffective(resource string, finished, references bool) (why string, wholly bool) {
	switch {
	case s.Refusal == "", s.Refers && references && !finished:
		return "", false
	case s.Refers && references:
		return fmt.Sprintf("spec.finished has no effect: %s %s", resource, s.Refusal), false
	}
	return fmt.Sprintf("the lifecycle has no effect: %s %s", resource, s.Refusal), true
}

// Unserved returns the warning about a resource that is Missing.
func (s ServedResource) Unserved(resource string) string {
	text := fmt.Sprintf("the cluster does not serve %s; this applies as soon as it does", resource)
	if s.Similar != "" {
		text += fmt.Sprintf(". Did you mean %q?", s.Similar)
	}
	return text
}

// Policies returns the policy before and after the change; either may be missing.
func (c PolicyChange) Policies() []metav1.Object {
	var out []metav1.Object
	for _, p := range []metav1.Object{c.Before, c.After} {
		if p != nil {
			out = append(out, p)
		}
	}
	return out
}

// Policy returns After, or Before if the policy is deleted.
func (c PolicyChange) Policy() metav1.Object {
	if c.After != nil {
		return c.After
	}
	return c.Before
}
