// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import "context"

// +k8s:deepcopy-gen=false

// Draft is a policy to be reviewed. It is never served.
type Draft struct {
	// PolicyChange has the draft as After, and as Before the policy whose place it takes. DryRun is set.
	PolicyChange
	// MayList reports whether the answer may be about the objects of a resource in a namespace; for ResourceAll about all resources, and for
	// no namespace about all namespaces.
	MayList func(ctx context.Context, resource, namespace string) (bool, error)
}
