// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/engine/scope"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
)

// StartAnew says that the store has gone back, so that everything is listed again. The lists replace memory, whatever the resource versions
// say, and nothing is deleted until they have ended. In each namespace this is a change: objects that have come back may be due at once.
func (e *Engine) StartAnew(now time.Time) {
	e.Overtaken = sets.KeySet(e.InFlight)
	e.ForgetStore(now)
	e.ForgetAssessments()
}

// SetKinds replaces the table of kinds. The objects of a kind that is new or has changed are listed again, and objects that become due by
// this are attributed to the source of the kind. Until StartObserving no object of the resource is used, because it may be one of the
// earlier kind.
func (e *Engine) SetKinds(t *kinds.Table, now time.Time) {
	before := e.Table
	e.Table, e.Published.OfCluster = t, nil
	e.Fresh.Revoke() // The next read says whether the lifecycles are the newest ones.
	changed := t.Changed(before)
	e.Outdated = e.Outdated.Union(changed)
	var all []*memory.Namespace
	for _, ns := range e.Namespaces {
		depends := scope.DependsOn(ns, before).Union(scope.DependsOn(ns, t))
		if ns.NamesAll {
			depends.Insert(t.Finishing()...)
		}
		affected := depends.Intersection(changed)
		if len(affected) == 0 {
			continue
		}
		all = append(all, ns)
		for resource := range affected {
			delete(ns.Covered, resource)
			if k, err := t.For(resource); err == nil {
				e.RecordChange(ns, approval.Change{
					Policy: k.Source.UID, Wide: true, ID: k.Source.ID, Text: k.Source.Text, Write: e.Writes + 1,
				})
			}
		}
		e.dropUncovered(ns)
		if ns.NamesAll && !ns.Removed() {
			e.Derive(ns, now) // Its policies name other resources than before.
		} else {
			e.UpdateCoverage(ns, ns.Named)
		}
	}
	e.CompareAll()
	e.Effects.Coverage = true // Reflectors of changed kinds start again.
	e.Changed(all, now)
}

// dropUncovered drops the objects of resources that are no longer covered.
func (e *Engine) dropUncovered(ns *memory.Namespace) {
	for _, rec := range slices.Clone(ns.Records) {
		if !ns.Covers(rec.Resource) {
			e.drop(rec)
		}
	}
}
