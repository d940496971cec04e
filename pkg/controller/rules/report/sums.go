// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// Object has what Sum.Add needs to know about an object.
type Object interface {
	Named() (namespace, resource, name string)
	Terminating() bool
}

// Sums are the sums of a namespace, by policy.
type Sums map[*policy.Policy]*Sum

// Of returns the sum of a policy, and creates it if there is none.
func (all Sums) Of(p *policy.Policy) *Sum {
	s := all[p]
	if s == nil {
		s = &Sum{}
		all[p] = s
	}
	return s
}

// Waiting returns how many objects wait under a hold, and their resources, for the report on policy p with this UID. If the policy owns the
// hold, the objects of all policies count; otherwise, only its own do.
func (all Sums) Waiting(h *approval.Hold, p *policy.Policy, uid types.UID) (int64, []string) {
	objects, resources := int64(0), sets.New[string]()
	for of, s := range all {
		if under := s.under[h]; under != nil && (h.Owner == uid || of == p) {
			objects += under.objects
			resources = resources.Union(under.resources)
		}
	}
	return objects, sets.List(resources)
}

// Sum counts the objects of one policy.
type Sum struct {
	candidates, due, held          int64
	waiting                        int64 // of held, those that wait for what their rule says, for a window, or for the end of a doubt
	waitingForWindow               int64 // of waiting, those that wait for a window
	ready                          int64 // due and not held
	under                          map[*approval.Hold]*holdSum
	next                           time.Time
	heldByReason, awaitingByReason map[policy.Reason]*Group
}

// Add counts an object for which policy p has made decision d. Add calls detail only if the object becomes the first of its group.
func (s *Sum) Add(p *policy.Policy, o Object, d policy.Decision, detail func() string) {
	if d.Action == policy.HoldDeadline { // Its reason is reported, although it is no candidate.
		addTo(&s.heldByReason, groupOf(o, p, d.Reason), detail)
	}
	if !d.Candidate() {
		return
	}
	s.candidates++
	if d.Due() {
		s.due++
	}
	switch d.Action {
	case policy.Wait:
		s.soonest(d.At)
	case policy.Delete:
		s.ready++
	case policy.Hold:
		s.held++
		if policy.IsWait(d.Reason) {
			s.waiting++
		}
		if policy.IsWindow(d.Reason) {
			s.waitingForWindow++
		}
		addTo(&s.heldByReason, groupOf(o, p, d.Reason), detail)
	case policy.Await:
		if o.Terminating() {
			addTo(&s.awaitingByReason, groupOf(o, p, d.Reason), detail)
		}
	case policy.Ignore, policy.Keep, policy.SetDeadline, policy.HoldDeadline: // Neither due nor waiting.
	}
}

// AddWaiting counts an object as waiting that only a doubt keeps. Add counts it as held.
func (s *Sum) AddWaiting() { s.waiting++ }

// soonest notes when an object becomes due, if that is earlier than for all objects before.
func (s *Sum) soonest(at time.Time) {
	if !at.IsZero() && (s.next.IsZero() || at.Before(s.next)) {
		s.next = at
	}
}

// groupOf returns the group of a single object, without its detail.
func groupOf(o Object, p *policy.Policy, reason policy.Reason) Group {
	namespace, resource, name := o.Named()
	g := Group{Reason: reason, Object: resource + "/" + name, Unnamed: !MayName(resource), Count: 1}
	if p.Namespace == "" {
		g.Object = namespace + "/" + g.Object
	}
	return g
}

// before reports whether the first object of g comes before the first object of another group.
func (g *Group) before(other *Group) bool {
	if g.Unnamed != other.Unnamed {
		return other.Unnamed
	}
	return g.Object < other.Object
}

// addTo adds a group to the group of the same reason. It calls detail if the first object of the added group comes first in the sum.
func addTo(groups *map[policy.Reason]*Group, added Group, detail func() string) {
	if *groups == nil {
		*groups = map[policy.Reason]*Group{}
	}
	g, ok := (*groups)[added.Reason]
	if !ok {
		g = &Group{}
		(*groups)[added.Reason] = g
	}
	count := g.Count + added.Count
	if !ok || added.before(g) {
		*g = added
		g.Detail = detail()
	}
	g.Count = count
}

// Merge adds what Fill needs of another sum, which may be nil. Holds and ready objects are read per namespace, not merged.
func (s *Sum) Merge(o *Sum) {
	if o == nil {
		return
	}
	s.candidates += o.candidates
	s.due += o.due
	s.held += o.held
	s.waiting += o.waiting
	s.waitingForWindow += o.waitingForWindow
	s.soonest(o.next)
	for _, g := range o.heldByReason {
		addTo(&s.heldByReason, *g, func() string { return g.Detail })
	}
	for _, g := range o.awaitingByReason {
		addTo(&s.awaitingByReason, *g, func() string { return g.Detail })
	}
}

// Fill sets the counts and groups of a report.
func (s *Sum) Fill(r *Report) {
	r.Candidates, r.Due, r.Held, r.Waiting, r.WaitingForWindow = s.candidates, s.due, s.held, s.waiting, s.waitingForWindow
	r.HeldByReason, r.AwaitingByReason = sorted(s.heldByReason), sorted(s.awaitingByReason)
	if !s.next.IsZero() {
		at := metav1.NewTime(gc.WholeSecond(s.next))
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

// Ready returns how many objects are due and not held. s may be nil.
func (s *Sum) Ready() int64 {
	if s == nil {
		return 0
	}
	return s.ready
}

// In returns the groups of s, which is the sum of a namespace; false if there are none. s may be nil.
func (s *Sum) In(namespace string) (NamespaceGroups, bool) {
	if s == nil || len(s.heldByReason)+len(s.awaitingByReason) == 0 {
		return NamespaceGroups{}, false
	}
	return NamespaceGroups{namespace, sorted(s.heldByReason), sorted(s.awaitingByReason)}, true
}

// CountIn returns the counts of s, which is the sum of a namespace; false if there are no candidates. s may be nil.
func (s *Sum) CountIn(namespace string) (gc.NamespaceStatus, bool) {
	if s == nil || s.candidates == 0 {
		return gc.NamespaceStatus{}, false
	}
	return gc.NamespaceStatus{Namespace: namespace, Candidates: s.candidates, Due: s.due, Held: s.held}, true
}

// holdSum counts the objects that wait under a hold.
type holdSum struct {
	objects   int64
	resources sets.Set[string]
}

// AddToHold counts an object that waits under hold h; it does nothing if h is nil.
func (s *Sum) AddToHold(h *approval.Hold, resource string) {
	if h == nil {
		return
	}
	if s.under == nil {
		s.under = map[*approval.Hold]*holdSum{}
	}
	if s.under[h] == nil {
		s.under[h] = &holdSum{resources: sets.New[string]()}
	}
	s.under[h].objects++
	s.under[h].resources.Insert(resource)
}
