// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"maps"
	"slices"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// Totals are counts over all namespaces, for metrics.
type Totals struct {
	// Objects are tracked, Timers of them become due later, and Ready are due and not held.
	Objects, Timers, Ready int
	// Candidates and Held count the objects by resource. They ignore Preview policies.
	Candidates map[string]map[gc.CandidateState]int
	Held       map[string]map[policy.Reason]int
	// OldestOverdue is the longest time for which an object of Ready has been due; zero if there is none.
	OldestOverdue time.Duration
	// OldestOutsideWindow is the longest time for which an object has been due that waits for a window; zero if there is none. It counts from
	// when nothing but a window kept the object.
	OldestOutsideWindow time.Duration
	// Holds is the number of changes that wait for approval.
	Holds int
	// Paced is the number of namespaces whose deletions wait because of maxDeletionsPerMinute.
	Paced int
	// ClockInDoubt says that clocks cannot be trusted, so that nothing is deleted.
	ClockInDoubt bool
	// Unconfirmed says that no reading has agreed with memory for too long, so that nothing is deleted.
	Unconfirmed bool
	// ClockSkew is how far the API server's clock is ahead, if ClockCompared: the clocks were compared lately.
	ClockSkew     time.Duration
	ClockCompared bool
	// Silent is how long the watch of each resource has reported nothing.
	Silent map[string]time.Duration
	// Stale are the resources whose watch has been silent for too long.
	Stale []string
	// Deadlines are about what runs under deadlines of Winnow.
	Deadlines Deadlines
}

// Totals returns the counts over all namespaces, all but OldestOverdue and OldestOutsideWindow. They are kept up to date, so nothing is
// counted here.
func (v *View) Totals(now time.Time) Totals {
	out := Totals{
		Objects: v.Records.Count, Timers: v.Timers.Len(), Candidates: map[string]map[gc.CandidateState]int{},
		Held: map[string]map[policy.Reason]int{}, Holds: v.HoldIDs().Len(), Paced: v.Queue.Resting(),
		ClockInDoubt: v.Fresh.ClockDoubt() != "", Unconfirmed: v.Fresh.Unconfirmed() != "",
		Silent: v.Watches.Silent(now), Stale: v.Watches.AllStale(), Deadlines: v.deadlines(now),
	}
	out.ClockSkew, out.ClockCompared = v.Fresh.ClockSkew(now)
	for of, n := range v.Counts {
		state := States[of.Action]
		if of.Notified {
			state = gc.CandidateNotified
		}
		if state != gc.CandidateNone {
			add(out.Candidates, of.Resource, state, n)
		}
		switch of.Action {
		case policy.Delete:
			out.Ready += n
		case policy.Hold:
			add(out.Held, of.Resource, memory.Reasons[of.Reason], n)
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

// OldestDue finds the earliest time since which an object can be deleted; zero if there is none.
func (v *View) OldestDue(since *time.Time) memory.Reading {
	return func(pause func(struct{}) bool) {
		look := func(rec *memory.Record) {
			if at := rec.ReadyAt(); rec.Action == policy.Delete && !rec.Removed() && (since.IsZero() || at.Before(*since)) {
				*since = at
			}
		}
		for _, ns := range slices.Collect(maps.Values(v.Namespaces)) {
			for i := ns.Queue.Len() - 1; i >= 0; i = min(i, ns.Queue.Len()) - 1 { // Later ones take the place of one that is deleted.
				if look(ns.Queue.At(i)); !v.Proceed(1, pause) {
					return
				}
			}
		}
		for _, rec := range v.InFlight {
			look(rec)
		}
	}
}

// OldestOutsideWindow finds the earliest time since which an object waits for a window; zero if there is none.
func (v *View) OldestOutsideWindow(since *time.Time) memory.Reading {
	return func(pause func(struct{}) bool) {
		for _, ns := range slices.Collect(maps.Values(v.Namespaces)) {
			if !ns.Window.Closed {
				continue
			}
			for i := len(ns.Records) - 1; i >= 0; i = min(i, len(ns.Records)) - 1 { // Later ones take the place of one that is removed.
				rec := ns.Records[i]
				if at := rec.ReadyAt(); policy.IsWindow(memory.Reasons[rec.Reason]) && !at.IsZero() && (since.IsZero() || at.Before(*since)) {
					*since = at
				}
				if !v.Proceed(1, pause) {
					return
				}
			}
		}
	}
}
