// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// Report is what a policy's status is made of.
type Report struct {
	// Stored is the policy as it was observed; it must not be changed.
	Stored *gc.CleanupPolicy
	// Unreadable is why the policy cannot be carried out at all; nil when it can.
	Unreadable error
	// Closed is why nothing is deleted in its namespace; empty when something may be.
	Closed policy.Reason
	// Blind is why objects that the policy covers cannot be observed; empty when they can.
	Blind string
	// DoesNothing says that the policy can match no object.
	DoesNothing bool

	Candidates, Due, Held, Deleted int64
	NextDeletion, LastDeletion     *metav1.Time
	// Holds are the held by reason, Awaiting those that are being deleted but wait for something.
	Holds, Awaiting []Group
}

// Group sums up the objects of a policy that stand still for one reason.
type Group struct {
	Reason policy.Reason
	// Detail and Object are those of the first object by name, as "resource/name".
	Detail, Object string
	Count          int64
}

// TakeDirty returns the namespaces whose reports may have changed since the last call.
func (t *Tracker) TakeDirty() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.dirty.UnsortedList()
	clear(t.dirty)
	return out
}

// Reports sums up all policies of a namespace, in the order of their names.
func (t *Tracker) Reports(namespace string) []Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	ns, ok := t.namespaces[namespace]
	if !ok {
		return nil
	}
	sums := make(map[*policy.Policy]*sum, len(ns.policies))
	for _, ps := range ns.policies {
		if ps.compiled != nil {
			sums[ps.compiled] = &sum{}
		}
	}
	for _, rec := range ns.records {
		if rec.resolution.Policy != nil {
			sums[rec.resolution.Policy].add(rec, rec.decision)
		}
		for _, p := range rec.previews {
			sums[p.policy].add(rec, p.decision)
		}
	}
	out := make([]Report, 0, len(ns.policies))
	for _, ps := range ns.policies {
		r := Report{
			Stored: ps.stored, Unreadable: ps.err, Closed: ns.closed(), Deleted: ps.deleted, LastDeletion: ps.lastDeletion,
		}
		if s := sums[ps.compiled]; s != nil {
			s.fill(&r)
			r.DoesNothing = ps.compiled.DoesNothing()
			for _, resource := range ps.compiled.Resources() {
				if blind := t.blindTo(resource); blind != "" {
					r.Blind = blind
				}
			}
		}
		out = append(out, r)
	}
	return out
}

// sum counts the objects of one policy.
type sum struct {
	candidates, due, held int64
	next                  time.Time
	holds, awaiting       map[policy.Reason]*Group
}

func (s *sum) add(rec *record, d policy.Decision) {
	if !d.Candidate() {
		return
	}
	s.candidates++
	if d.Due() {
		s.due++
	}
	switch d.Action {
	case policy.Wait:
		if s.next.IsZero() || d.At.Before(s.next) {
			s.next = d.At
		}
	case policy.Hold:
		s.held++
		group(&s.holds, rec, d)
	case policy.Await:
		if rec.fact.Terminating {
			group(&s.awaiting, rec, d)
		}
	}
}

func group(groups *map[policy.Reason]*Group, rec *record, d policy.Decision) {
	if *groups == nil {
		*groups = map[policy.Reason]*Group{}
	}
	object := rec.fact.Resource + "/" + rec.fact.Name
	g, ok := (*groups)[d.Reason]
	if !ok {
		g = &Group{Reason: d.Reason, Detail: d.Detail, Object: object}
		(*groups)[d.Reason] = g
	}
	if object < g.Object {
		g.Object, g.Detail = object, d.Detail
	}
	g.Count++
}

func (s *sum) fill(r *Report) {
	r.Candidates, r.Due, r.Held = s.candidates, s.due, s.held
	r.Holds, r.Awaiting = sorted(s.holds), sorted(s.awaiting)
	if !s.next.IsZero() {
		at := metav1.NewTime(s.next)
		r.NextDeletion = &at
	}
}

func sorted(groups map[policy.Reason]*Group) []Group {
	var out []Group
	for _, g := range groups {
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b Group) int { return cmp.Compare(a.Reason, b.Reason) })
	return out
}

// Totals counts what is tracked, for metrics.
type Totals struct {
	Objects, Timers, Ready int
	Held                   map[policy.Reason]int
}

// Totals sums up all namespaces.
func (t *Tracker) Totals() Totals {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := Totals{Objects: len(t.records), Timers: t.timers.Len(), Held: map[policy.Reason]int{}}
	for _, rec := range t.records {
		switch rec.decision.Action {
		case policy.Hold:
			out.Held[rec.decision.Reason]++
		case policy.Delete:
			out.Ready++
		}
	}
	return out
}

// String names the reason, the number and the first of the objects.
func (g Group) String() string {
	s := fmt.Sprintf("%s: %s", g.Reason, g.Object)
	if g.Detail != "" {
		s += fmt.Sprintf(" (%.512s)", g.Detail) // Servers and their webhooks may use many words.
	}
	if g.Count > 1 {
		s += fmt.Sprintf(" and %d more", g.Count-1)
	}
	return s
}

// Namespaces returns the names of all namespaces with policies.
func (t *Tracker) Namespaces() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for name, ns := range t.namespaces {
		if len(ns.policies) > 0 {
			out = append(out, name)
		}
	}
	return out
}
