// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gate is the sixth stage of the engine: what must wait. A record that is due may have to wait for a person, because a change made
// too many objects due, or until memory is known well enough.
package gate

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine/decide"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
)

// Gate decides what must wait.
type Gate struct {
	*decide.Decider
	// holdsToCheck are the namespaces with holds that may end, or need another owner.
	holdsToCheck sets.Set[*memory.Namespace]
	// blocking is a pending namespace that was incomplete when the pending namespaces were last checked; nil if there was none.
	blocking *memory.Namespace
	// Recent counts the objects that recent changes made due, by the UID of a cluster policy.
	Recent approval.Recent
	stored
}

// New returns a gate without holds.
func New(d *decide.Decider) *Gate {
	return &Gate{Decider: d, holdsToCheck: sets.New[*memory.Namespace](), Recent: approval.Recent{}, stored: newStored()}
}
