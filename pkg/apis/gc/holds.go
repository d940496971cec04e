// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"fmt"
	"slices"
	"strings"
)

// ApprovedHolds are the ids of holds in a value of AnnotationApprovedHold; commas stand between them.
func ApprovedHolds(annotation string) []string {
	return strings.FieldsFunc(annotation, func(c rune) bool { return c == ',' || c == ' ' })
}

// NewlyApproved are those of them that were not in the annotation before.
func NewlyApproved(annotation, before string) []string {
	old := ApprovedHolds(before)
	return slices.DeleteFunc(ApprovedHolds(annotation), func(id string) bool { return slices.Contains(old, id) })
}

// ApproveCommand is the command that approves a hold of a policy; of a cluster policy where the namespace is empty.
func ApproveCommand(namespace, name, id string) string {
	target := "clustercleanuppolicy " + name
	if namespace != "" {
		target = "cleanuppolicy " + name + " -n " + namespace
	}
	return fmt.Sprintf("kubectl annotate --overwrite %s %s=%s", target, AnnotationApprovedHold, id)
}

// ApproveCommand is the command that approves a hold that stands in the status of this policy. It may be a hold of another one.
func (h *PolicyHold) ApproveCommand(namespace, name string) string {
	if h.Policy == "" {
		return ApproveCommand(namespace, name, h.ID)
	}
	namespace, name, namespaced := strings.Cut(h.Policy, "/")
	if !namespaced {
		namespace, name = "", h.Policy
	}
	return ApproveCommand(namespace, name, h.ID)
}

// Protects tells whether the labels of a namespace keep everything in it.
func Protects(namespace map[string]string) bool {
	value, ok := namespace[LabelProtected]
	return ok && value != "false"
}
