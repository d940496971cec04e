// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Batch is what the changes of a namespace made due by one policy.
type Batch struct {
	Namespace string
	// Policy would delete the objects. Cluster says that it is a cluster policy.
	Policy    types.UID
	Cluster   bool
	Approvals *Approvals
	// Changes are all that may have made the objects due; at least one.
	Changes Changes
	// Objects is how many objects these are, Overdue how many of them should have gone while a controller still ran.
	Objects, Overdue int
	// Unreported is how many objects of the policy, in all namespaces, should have gone while a controller still ran although no status told of
	// them. It matters only if nobody saw the changes.
	Unreported int
	Limits     Limits
	// Recent counts what the earlier changes of the namespace made due.
	Recent *Window
}

// Recent counts what earlier changes made due, by the UID of a cluster policy.
type Recent map[types.UID]*Window

// Verdict is what follows for a batch: all of it waits under Hold, or if that is nil, it needs no approval.
type Verdict struct{ Hold *Hold }

// assessed is a batch and the limits of the namespace and of all namespaces that it exceeds, together with all else that counts; nil where
// it exceeds none.
type assessed struct {
	*Batch
	shown       Change
	overObjects *Limit
	overTotal   *Limit
}

// Assess decides for each batch whether it must wait: whether it exceeds a limit together with all else that counts, and is not approved.
// It counts the batches that need no approval in recent and in the windows of their namespaces.
func Assess(batches []*Batch, recent Recent, now time.Time) []Verdict {
	maps.DeleteFunc(recent, func(_ types.UID, w *Window) bool { return w.Sum(now) == 0 })
	all := make([]*assessed, len(batches))
	for i, b := range batches {
		all[i] = &assessed{Batch: b, shown: b.Changes.Shown()}
	}
	sumTotal(all, recent, now)
	sumObjects(all, now)
	sumUnseen(all)
	out := make([]Verdict, len(all))
	for i, b := range all {
		h, approved := b.hold(now)
		switch tooMany := b.limit() != nil; {
		case tooMany && !approved:
			out[i].Hold = &h
		case !tooMany && !b.shown.Unseen:
			b.count(recent, now)
		}
	}
	return out
}

// hold returns the hold that keeps a batch if it is too large, and whether that is approved already. A hold of all namespaces together has
// the same change as its cause in each: the last that reaches all of them.
func (b *assessed) hold(now time.Time) (Hold, bool) {
	h := Hold{Owner: b.Policy, Since: now}
	c, where := b.shown, b.Namespace
	if wide := b.wide(); wide >= 0 && b.overTotal != nil && b.Cluster {
		c, where, h.Total = b.Changes[wide], "", true
	}
	id, approved := b.Approvals.HoldID(b.Policy, where, c)
	if approved && len(b.Changes) > 1 { // The approval would cover what other changes made due, too.
		h.Total = false
		id, approved = b.Approvals.HoldID(b.Policy, b.Namespace, b.Changes.Join())
	}
	h.ID = id
	if l := b.limit(); l != nil {
		h.Why = fmt.Sprintf("%s made more objects due at once than %s allows (%d%s)", c.Text, l, l.max, b.within())
	}
	return h, approved
}

// limit returns the limit that people are told of; nil if none is exceeded.
func (b *assessed) limit() *Limit {
	if b.overTotal != nil {
		return b.overTotal
	}
	return b.overObjects
}

// within says how long changes count together. What nobody saw is compared with the last status instead.
func (b *assessed) within() string {
	if b.shown.Unseen {
		return ""
	}
	return " in ten minutes"
}

// wide returns the index of the last change that reaches many namespaces: of a cluster policy, or one that nobody saw; -1 if there is none.
func (b *assessed) wide() int {
	return b.Changes.last(func(c Change) bool { return c.Wide || c.Unseen && b.shown.Unseen })
}

// count has a batch count together with the changes that follow.
func (b *assessed) count(recent Recent, now time.Time) {
	b.Recent.Add(b.Objects, now)
	for uid := range b.reach() {
		if recent[uid] == nil {
			recent[uid] = &Window{}
		}
		recent[uid].Add(b.Objects, now)
	}
}

// reach are the cluster policies whose changes count together with this batch in all namespaces: the one that deletes, and those that were
// changed.
func (b *assessed) reach() sets.Set[types.UID] {
	out := sets.New[types.UID]()
	if b.Cluster {
		out.Insert(b.Policy)
	}
	for _, c := range b.Changes {
		if c.Wide {
			out.Insert(c.Policy)
		}
	}
	return out
}

// sumObjects finds what is too much in a namespace, whichever policies delete it.
func sumObjects(all []*assessed, now time.Time) {
	n := map[string]int{}
	for _, b := range all {
		if !b.shown.Unseen {
			n[b.Namespace] += b.Objects
		}
	}
	for _, b := range all {
		if n[b.Namespace] > 0 {
			b.overObjects = b.Limits.Objects.exceeded(n[b.Namespace] + b.Recent.Sum(now))
		}
	}
}

// sumTotal finds what is too much in all namespaces that a cluster policy or a change of one reaches.
func sumTotal(all []*assessed, recent Recent, now time.Time) {
	n, limits := map[types.UID]int{}, map[types.UID]Limit{}
	for _, b := range all {
		if b.shown.Unseen {
			continue
		}
		for uid := range b.reach() {
			limitTotal(limits, uid, b.Limits.Total)
			n[uid] += b.Objects
		}
	}
	for uid := range n {
		if w := recent[uid]; w != nil {
			n[uid] += w.Sum(now)
		}
	}
	for _, b := range all {
		for uid := range b.reach() {
			over := limits[uid].exceeded(n[uid])
			if over != nil && !b.shown.Unseen && (b.overTotal == nil || over.stricter(b.overTotal)) {
				b.overTotal = over
			}
		}
	}
}

// limitTotal limits what counts for a cluster policy to what a namespace allows in all, the strictest of several.
func limitTotal(limits map[types.UID]Limit, uid types.UID, total Limit) {
	if known, ok := limits[uid]; !ok || total.stricter(&known) {
		limits[uid] = total
	}
}

// sumUnseen finds what is too much of what should have gone while a controller still ran, although no status told of it.
func sumUnseen(all []*assessed) {
	n, limits := map[types.UID]int{}, map[types.UID]Limit{}
	for _, b := range all {
		if b.shown.Unseen && b.Cluster {
			limitTotal(limits, b.Policy, b.Limits.Total)
			n[b.Policy] += b.Overdue
		}
	}
	for _, b := range all {
		if !b.shown.Unseen {
			continue
		}
		b.overObjects = b.Limits.Objects.exceeded(min(b.Overdue, b.Unreported))
		if total, ok := limits[b.Policy]; ok {
			b.overTotal = total.exceeded(min(n[b.Policy], b.Unreported))
		}
	}
}
