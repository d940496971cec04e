// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/approval"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// Report is what a policy's status is made of.
type Report struct {
	Stored
	// Unreadable is why the policy cannot be carried out at all; nil when it can.
	Unreadable error
	// Closed is why nothing is deleted in its namespace; empty when something may be.
	Closed policy.Reason
	// Blind is why objects that the policy covers cannot be observed; empty when they can.
	Blind string
	// QuotaDoubt is why a limit that is a share of a quota deletes nothing; empty when it does, or when the policy has none.
	QuotaDoubt string
	// Suspended names the cluster policy that stops everything in the namespace; of that policy itself, its own name.
	Suspended string
	// Unselected says that Winnow starts suspended, and no enforcing cluster policy selects the namespace of the policy yet.
	Unselected bool
	// Doubt is why no clock is believed.
	Doubt string
	// Paced are the namespaces in which deletions wait for their turn in the minute.
	Paced []string
	// WithoutQuota are the "count/<resource>" that a limit needs and no quota has; nothing is limited there.
	WithoutQuota []string
	// DoesNothing says that the policy can match no object.
	DoesNothing bool
	// Waiting are the changes that wait for approval, and Unlisted is how many more there are.
	Waiting  []gc.PolicyHold
	Unlisted int64
	// Ceilings, of a cluster policy, are by resource.
	Ceilings []gc.CeilingStatus
	// Unweighed says that it is yet to be found out whether changes must wait.
	Unweighed bool

	Candidates, Due, Held, Deleted int64
	NextDeletion, LastDeletion     *metav1.Time
	// Holds are the held by reason, Awaiting those that are being deleted but wait for something.
	Holds, Awaiting []Group
	// Within, of a cluster policy, are those in each namespace.
	Within []Within
}

// Within sums up the objects of a cluster policy that stand still in a namespace.
type Within struct {
	Namespace       string
	Holds, Awaiting []Group
}

// Group sums up the objects of a policy that stand still for one reason.
type Group struct {
	Reason policy.Reason
	// Detail and Object are those of the first object by namespace, resource and name. Object is "resource/name", and of a cluster
	// policy "namespace/resource/name".
	Detail, Object string
	Count          int64
}

// TakeDirty returns the namespaces whose reports may have changed since it returned them last, "" for that of the cluster policies.
// Of what is being judged anew, a report would tell but a part: it is returned once that has ended.
func (e *Engine) TakeDirty() []string {
	var out []string
	for name := range e.dirty {
		if e.busyIn(name) {
			continue
		}
		e.dirty.Delete(name)
		out = append(out, name)
		if ns, ok := e.namespaces[name]; ok {
			ns.dirty = false
		}
	}
	return out
}

// Judging tells whether a report on a namespace would tell but a part, since objects are being judged anew.
func (e *Engine) Judging(namespace string) bool {
	return e.busyIn(namespace)
}

// busyIn reports whether there is work for Step in a namespace, in any at all for "".
func (e *Engine) busyIn(name string) bool {
	ns, ok := e.namespaces[name]
	return name == "" && e.working() || ok && e.busy(ns)
}

// PopUrgent returns that of them where a policy has got a new spec last; false when none has.
func (e *Engine) PopUrgent() (string, bool) {
	latest, found := "", false
	for ns, at := range e.urgent {
		if (!found || at > e.urgent[latest]) && !e.busyIn(ns) {
			latest, found = ns, true
		}
	}
	if found {
		delete(e.urgent, latest)
	}
	return latest, found
}

// sum counts the objects of one policy.
type sum struct {
	candidates, due, held int64
	ready                 int64 // due and free
	under                 map[*approval.Hold]*under
	next                  time.Time
	holds, awaiting       map[policy.Reason]*Group
}

func (s *sum) add(p *policy.Policy, rec *record, d policy.Decision, detail func() string) {
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
		group(&s.holds, d.Reason, 1, objectOf(p, rec), detail)
	case policy.Await:
		if rec.Terminating() {
			group(&s.awaiting, d.Reason, 1, objectOf(p, rec), detail)
		}
	}
}

func (s *sum) soonest(at time.Time) {
	if !at.IsZero() && (s.next.IsZero() || at.Before(s.next)) {
		s.next = at
	}
}

// objectOf names the namespace too where the policy does not.
func objectOf(p *policy.Policy, rec *record) string {
	object := rec.Resource + "/" + rec.Name()
	if p.Namespace == "" {
		return rec.Namespace + "/" + object
	}
	return object
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

// merge adds the counts of another sum, which may be nil.
func (s *sum) merge(o *sum) {
	if o == nil {
		return
	}
	s.candidates += o.candidates
	s.due += o.due
	s.held += o.held
	s.soonest(o.next)
	for _, g := range o.holds {
		group(&s.holds, g.Reason, g.Count, g.Object, func() string { return g.Detail })
	}
	for _, g := range o.awaiting {
		group(&s.awaiting, g.Reason, g.Count, g.Object, func() string { return g.Detail })
	}
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
	// Waiting are the changes that wait for approval, Paced the namespaces whose deletions wait for their turn in the minute.
	Waiting, Paced int
	// ClockInDoubt says that no clock is believed, Stale are the resources whose watch has been silent for too long.
	ClockInDoubt bool
	Stale        []string
}

// Totals sums up all namespaces.
func (e *Engine) Totals() Totals {
	out := Totals{
		Objects: e.records.count, Timers: e.timers.Len(), Ready: e.deleting, Held: map[policy.Reason]int{},
		Paced: e.ready.Resting(), ClockInDoubt: e.fresh.ClockDoubt() != "",
	}
	for reason, n := range e.held {
		if n > 0 {
			out.Held[reasons[reason]] = n
		}
	}
	out.Waiting = e.holdIDs().Len()
	out.Stale = e.watches.AllStale()
	return out
}

// count counts a record among those that are held, by the code of the reason, and those that are to be deleted.
func (e *Engine) count(rec *record, by int) {
	switch rec.action {
	case policy.Hold:
		e.held[rec.reason] += by
	case policy.Delete:
		e.deleting += by
	}
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

// Families returns the names of all namespaces with policies, and "" for the cluster policies.
func (e *Engine) Families() []string {
	out := []string{""}
	for name, ns := range e.namespaces {
		if len(ns.policies) > 0 {
			out = append(out, name)
		}
	}
	return out
}
