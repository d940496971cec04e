// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
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

// Protects tells whether the labels of a namespace keep everything in it.
func Protects(namespace map[string]string) bool {
	value, ok := namespace[LabelProtected]
	return ok && value != "false"
}
