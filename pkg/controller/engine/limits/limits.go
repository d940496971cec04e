// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package limits is the fourth stage of the engine: which pools and ceilings count an object, and whether the object is over their limits.
// It asks the policies which rules match, because the rules say what counts.
package limits

import (
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/engine/scope"
)

// Limits counts records in pools and ceilings.
type Limits struct {
	*scope.Scope
	Asked asked
	// scratch is reused by Count.
	scratch []memory.Membership
}

// New returns limits that count nothing yet.
func New(s *scope.Scope) *Limits { return &Limits{Scope: s} }
