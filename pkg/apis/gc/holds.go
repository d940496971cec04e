// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ApprovedHolds are the ids of holds in a value of AnnotationApprovedHold; commas stand between them.
func ApprovedHolds(annotation string) []string {
	return strings.FieldsFunc(annotation, func(c rune) bool { return c == ',' || c == ' ' })
}

// NewlyApproved are the ids of holds that a policy approves, and did not approve before; old is nil for a new policy.
func NewlyApproved(p, old metav1.Object) []string {
	ids := ApprovedHolds(p.GetAnnotations()[AnnotationApprovedHold])
	if old == nil {
		return ids
	}
	before := ApprovedHolds(old.GetAnnotations()[AnnotationApprovedHold])
	return slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(before, id) })
}

// ApproveCommand is the command that approves a hold of a policy; of a cluster policy where the namespace is empty.
func ApproveCommand(namespace, name, id string) string {
	target := "clustercleanuppolicies." + GroupName + " " + name
	if namespace != "" {
		target = "cleanuppolicies." + GroupName + " " + name + " -n " + namespace
	}
	return fmt.Sprintf("kubectl annotate --overwrite %s %s=%s", target, AnnotationApprovedHold, id)
}

// ApproveCommand is the command that approves a hold that stands in the status of this policy. It may be a hold of another one.
func (h *PolicyHold) ApproveCommand(namespace, name string) string {
	owner := h.Owner(types.NamespacedName{Namespace: namespace, Name: name})
	return ApproveCommand(owner.Namespace, owner.Name, h.ID)
}

// Owner is the policy whose hold it is that stands in the status of this policy.
func (h *PolicyHold) Owner(of types.NamespacedName) types.NamespacedName {
	if h.Policy == "" {
		return of
	}
	namespace, name, namespaced := strings.Cut(h.Policy, "/")
	if !namespaced {
		return types.NamespacedName{Name: h.Policy}
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// Protects tells whether the labels of a namespace keep everything in it.
func Protects(namespace map[string]string) bool {
	value, ok := namespace[LabelProtected]
	return ok && value != "false"
}
