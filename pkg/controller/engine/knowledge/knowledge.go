// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package knowledge is the second stage of the engine: how well memory is known. It says which lists are complete, which watches can be
// trusted, whether memory agrees with consistent reads, which objects are in use, and which marks are stored.
package knowledge

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/objects/references"
	"github.com/winnow-dev/winnow/pkg/controller/objects/usage"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
)

// Knowledge is how well memory is known.
type Knowledge struct {
	*memory.Memory
	Outdated sets.Set[string] // resources whose present kind is not observed yet
	restoring
	Watches     freshness.Watches
	Failing     failing
	Fresh       freshness.Freshness
	Recreations Recreations
	Usage       *usage.Tracker[*memory.Record]
	// Unmarked are the namespaces whose stored marks may be out of date.
	Unmarked sets.Set[string]
	// ToAnnounce are the namespaces that may have objects whose notice must be given.
	ToAnnounce sets.Set[*memory.Namespace]
	// ToDeliver are the namespaces that may have objects whose notice the receiver of notifications must acknowledge.
	ToDeliver sets.Set[*memory.Namespace]
	// marksListed says that the stored marks were listed, NoMarks that they cannot be stored.
	marksListed, NoMarks bool
	// marksDoubted says that the stored marks may be newer than memory; see DoubtMarks. announced is how many notices are stored.
	marksDoubted bool
	announced    int
	// noticesKept are the records of KeepNotice.
	noticesKept map[*memory.Namespace]sets.Set[*memory.Record]
	asking
	// CopiedUsages are the usages of the objects of a snapshot; nil in any other engine.
	CopiedUsages map[types.UID]lifecycle.Usage
	// rulesKnown says that all policies were known before the present event. matchPeriods is the last lifecycle.MatchPeriod.
	rulesKnown   bool
	matchPeriods lifecycle.MatchPeriod
}

// New returns the knowledge of an empty memory.
func New(m *memory.Memory) *Knowledge {
	return &Knowledge{
		Memory:      m,
		Outdated:    sets.New[string](),
		restoring:   newRestoring(),
		Failing:     newFailing(),
		Recreations: NewRecreations(),
		Usage:       usage.New[*memory.Record](references.MaxKeys),
		Unmarked:    sets.New[string](),
		ToAnnounce:  sets.New[*memory.Namespace](),
		ToDeliver:   sets.New[*memory.Namespace](),
		noticesKept: map[*memory.Namespace]sets.Set[*memory.Record]{},
	}
}
