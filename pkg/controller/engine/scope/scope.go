// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scope is the third stage of the engine: which policies there are, and where they apply. From the policies it derives what applies
// in each namespace, what must be observed, and which match conditions are evaluated.
package scope

import (
	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
)

// Scope knows where policies apply.
type Scope struct {
	*knowledge.Knowledge
	Published publishedConditions
	// lastCovering is the highest Covering so far.
	lastCovering memory.Covering
}

// New returns a scope without policies.
func New(k *knowledge.Knowledge) *Scope {
	return &Scope{Knowledge: k, Published: newPublishedConditions()}
}
