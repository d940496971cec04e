// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
	"github.com/winnow-dev/winnow/pkg/controller/report"
)

// Totals returns the counts over all namespaces, all but OldestOverdue. They are kept up to date, so nothing is counted here.
func (e *Engine) Totals(now time.Time) report.Totals {
	out := report.Totals{
		Objects: e.records.count, Timers: e.timers.Len(), Candidates: map[string]map[gc.CandidateState]int{},
		Held: map[string]map[policy.Reason]int{}, Holds: e.holdIDs().Len(), Paced: e.queue.Resting(),
		ClockInDoubt: e.fresh.ClockDoubt() != "", Unconfirmed: e.fresh.Unconfirmed() != "",
		Silent: e.watches.Silent(now), Stale: e.watches.AllStale(),
	}
	out.ClockSkew, out.ClockCompared = e.fresh.ClockSkew(now)
	for of, n := range e.counts {
		if state := states[of.action]; state != gc.CandidateNone {
			add(out.Candidates, of.resource, state, n)
		}
		switch of.action {
		case policy.Delete:
			out.Ready += n
		case policy.Hold:
			add(out.Held, of.resource, reasons[of.reason], n)
		case policy.Ignore, policy.Keep, policy.Wait, policy.Await, policy.SetDeadline, policy.HoldDeadline:
		}
	}
	return out
}

func add[K comparable](counts map[string]map[K]int, resource string, key K, n int) {
	if counts[resource] == nil {
		counts[resource] = map[K]int{}
	}
	counts[resource][key] += n
}

// counted is what records are counted by.
type counted struct {
	resource string
	action   policy.Action
	reason   reasonCode
}

func (rec *record) counted() counted { return counted{rec.Resource, rec.action, rec.reason} }

// recount counts a record that was counted differently before.
func (e *Engine) recount(rec *record, before counted) {
	if now := rec.counted(); now != before { // Mostly it is the same when objects are judged again, and a comparison is faster than a map.
		e.counts[before]--
		e.counts[now]++
	}
}

// OldestFinder finds the object that has been due for the longest time, of those that can be deleted, step by step, because there may be
// many.
type OldestFinder struct {
	engine *Engine
	// namespaces are those not searched yet. next is one more than the index of the next record in the lane of the first of them. Lanes are
	// searched from the last record to the first, because a record that is deleted is replaced by later ones.
	namespaces []*namespace
	next       int
	since      time.Time
}

// FindOldest begins to find the object that has been due for the longest time.
func (e *Engine) FindOldest() *OldestFinder {
	f := &OldestFinder{engine: e}
	for _, ns := range e.namespaces {
		if ns.lane.Len() > 0 {
			f.namespaces = append(f.namespaces, ns)
		}
	}
	f.beginNamespace()
	return f
}

func (f *OldestFinder) beginNamespace() {
	if len(f.namespaces) > 0 {
		f.next = f.namespaces[0].lane.Len()
	}
}

// Step continues until the budget is spent, and reports whether there is more to do.
func (f *OldestFinder) Step() (more bool) {
	for len(f.namespaces) > 0 {
		lane := &f.namespaces[0].lane
		if f.next = min(f.next, lane.Len()); f.next == 0 {
			f.namespaces = f.namespaces[1:]
			f.beginNamespace()
			continue
		}
		f.next--
		if f.consider(lane.At(f.next)); f.engine.spent(1) {
			return true
		}
	}
	for _, rec := range f.engine.inFlight {
		f.consider(rec)
	}
	return false
}

func (f *OldestFinder) consider(rec *record) {
	if at := rec.at.time(); rec.action == policy.Delete && !rec.removed() && (f.since.IsZero() || at.Before(f.since)) {
		f.since = at
	}
}

// Overdue returns for how long the object is overdue, once Step has returned false; zero if there is none.
func (f *OldestFinder) Overdue(now time.Time) time.Duration {
	if f.since.IsZero() {
		return 0
	}
	return max(now.Sub(f.since), 0)
}
