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

	"github.com/winnow-dev/winnow/pkg/controller/approval"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// Object is what a sum asks of an object.
type Object interface {
	Named() (namespace, resource, name string)
	Terminating() bool
}

// Sums are those of a namespace by policy.
type Sums map[*policy.Policy]*Sum

// Of returns the sum of a policy, which is made if there is none.
func (all Sums) Of(p *policy.Policy) *Sum {
	s := all[p]
	if s == nil {
		s = &Sum{}
		all[p] = s
	}
	return s
}

// Waiting returns how many objects wait under a hold, and their resources. It counts the objects of all policies if the policy with the UID
// owns the hold, and else those of that policy, p, alone.
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
	ready                          int64 // due, and nothing holds them
	under                          map[*approval.Hold]*holdSum
	next                           time.Time
	heldByReason, awaitingByReason map[policy.Reason]*Group
}

// Add counts an object and what the policy decides for it. detail is called only if the object is shown.
func (s *Sum) Add(p *policy.Policy, o Object, d policy.Decision, detail func() string) {
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
		group(&s.heldByReason, d.Reason, 1, nameOf(o, p), detail)
	case policy.Await:
		if o.Terminating() {
			group(&s.awaitingByReason, d.Reason, 1, nameOf(o, p), detail)
		}
	case policy.Ignore, policy.Keep: // Counted above, if it is a candidate.
	}
}

func (s *Sum) soonest(at time.Time) {
	if !at.IsZero() && (s.next.IsZero() || at.Before(s.next)) {
		s.next = at
	}
}

// nameOf names an object, with its namespace where the policy has none.
func nameOf(o Object, p *policy.Policy) string {
	namespace, resource, name := o.Named()
	if p.Namespace == "" {
		return namespace + "/" + resource + "/" + name
	}
	return resource + "/" + name
}

// group adds objects to the group of a reason, which shows the first of them.
func group(groups *map[policy.Reason]*Group, reason policy.Reason, count int64, object string, detail func() string) {
	if *groups == nil {
		*groups = map[policy.Reason]*Group{}
	}
	g, ok := (*groups)[reason]
	if !ok {
		g = &Group{Reason: reason}
		(*groups)[reason] = g
	}
	if !ok || object < g.Object {
		g.Object, g.Detail = object, detail()
	}
	g.Count += count
}

// Merge adds the counts of another sum, which may be nil.
func (s *Sum) Merge(o *Sum) {
	if o == nil {
		return
	}
	s.candidates += o.candidates
	s.due += o.due
	s.held += o.held
	s.soonest(o.next)
	for _, g := range o.heldByReason {
		group(&s.heldByReason, g.Reason, g.Count, g.Object, func() string { return g.Detail })
	}
	for _, g := range o.awaitingByReason {
		group(&s.awaitingByReason, g.Reason, g.Count, g.Object, func() string { return g.Detail })
	}
}

// Fill writes the counts into a report.
func (s *Sum) Fill(r *Report) {
	r.Candidates, r.Due, r.Held = s.candidates, s.due, s.held
	r.HeldByReason, r.AwaitingByReason = sorted(s.heldByReason), sorted(s.awaitingByReason)
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

// Ready is how many objects are due, and nothing holds them.
func (s *Sum) Ready() int64 {
	if s == nil {
		return 0
	}
	return s.ready
}

// In returns the objects that stand still in a namespace; false if none does.
func (s *Sum) In(namespace string) (NamespaceGroups, bool) {
	if s == nil || len(s.heldByReason)+len(s.awaitingByReason) == 0 {
		return NamespaceGroups{}, false
	}
	return NamespaceGroups{namespace, sorted(s.heldByReason), sorted(s.awaitingByReason)}, true
}

// holdSum is what waits holdSum a hold.
type holdSum struct {
	objects   int64
	resources sets.Set[string]
}

// AddToHold counts an object of a resource that waits under a hold, unless that is nil.
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
