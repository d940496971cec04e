// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

// +k8s:deepcopy-gen=false

// Draft is a CleanupPolicy to be reviewed. It is never served.
type Draft struct {
	// Before is the policy whose place the draft takes; nil if there is none.
	Before, After *CleanupPolicy
	// MayList reports whether the answer may be about objects of a resource. It is called for every object.
	MayList func(resource string) bool
}
