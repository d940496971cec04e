// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Batch counts the objects of a namespace that its changes may have made due by one policy.
type Batch struct {
	Namespace string
	// Policy would delete the objects. Cluster says that Policy is a cluster policy.
	Policy    types.UID
	Cluster   bool
	Approvals *Approvals
	// Changes are the changes that may have made the objects due; at least one.
	Changes Changes
	// Objects is the number of objects, Overdue how many of these were due while the previous controller still ran.
	Objects, Overdue int
	// UIDs are the UIDs of the objects; nil if none of them can have become due by an earlier change.
	UIDs iter.Seq[types.UID]
	// States identify the objects as they are now, the same on every replica. They matter only if a change recurs.
	States iter.Seq[string]
	// Unreported is how many objects of the policy, in all namespaces, were due while the previous controller still ran although its last
	// status did not count them. It matters only if the changes are unseen.
	Unreported int
	Limits     Limits
	// Shares are the objects by their rules, without those whose deadline changes; empty if no limit depends on them.
	Shares []Share
	// Recent counts the objects that earlier changes of the namespace made due.
	Recent *Window
}

// Recent counts the objects that earlier changes made due in all namespaces, by the UID of a cluster policy.
type Recent map[types.UID]*Window

// assessed is a batch, with the limits that it exceeds together with the other batches and recent changes; nil if it exceeds none.
type assessed struct {
	*Batch
	shown       Change // the change that messages name
	overObjects *Limit // of the namespace
	overTotal   *Limit // of all namespaces
	overShare   *excess
}

// Assess returns for each batch the hold under which its objects must wait; nil if none of them needs an approval. A batch must wait if it
// exceeds a limit, together with the other batches and with recent changes, and is not approved. Assess adds the batches that exceed no
// limit, except batches of unseen changes, to recent and to the windows of their namespaces.
func Assess(batches []*Batch, recent Recent, now time.Time) []*Hold {
	maps.DeleteFunc(recent, func(_ types.UID, w *Window) bool { return w.Sum(now) == 0 })
	all := make([]*assessed, len(batches))
	for i, b := range batches {
		all[i] = &assessed{Batch: b, shown: b.Changes.Shown()}
	}
	sumTotal(all, recent, now)
	sumObjects(all, now)
	sumUnseen(all)
	sumShares(all, now)
	recurring := digests(all)
	out := make([]*Hold, len(all))
	for i, b := range all {
		h, approved := b.hold(recurring, now)
		switch tooMany := b.exceeds() != nil; {
		case tooMany && !approved:
			out[i] = &h
		case !tooMany && !b.shown.Unseen:
			b.count(recent, now)
		}
	}
	return out
}

// cause is what a hold is about: everything with the same cause waits under one ID.
type cause struct {
	policy    types.UID
	namespace string // empty for all namespaces together
	change    string
}

// cause returns the cause of the hold under which the batch must wait if it exceeds a limit, and the change that messages name. A hold of
// all namespaces together needs the same ID in each namespace, so its cause is the last change that reaches all of them.
func (b *assessed) cause() (cause, Change) {
	if wide := b.wide(); wide >= 0 && b.overTotal != nil && b.Cluster {
		return cause{b.Policy, "", b.Changes[wide].ID}, b.Changes[wide]
	}
	return cause{b.Policy, b.Namespace, b.shown.ID}, b.shown
}

// digests returns a digest of all objects that wait by the same cause, for each cause whose change recurs. Another hold by such a change
// has other objects, or the same objects in another state.
func digests(all []*assessed) map[cause]string {
	states := map[cause][]string{}
	for _, b := range all {
		if by, c := b.cause(); c.Recurs && b.exceeds() != nil {
			states[by] = slices.AppendSeq(states[by], b.States)
		}
	}
	out := map[cause]string{}
	for by, of := range states {
		slices.Sort(of)
		sum := sha256.Sum256([]byte(strings.Join(of, "\n")))
		out[by] = " of " + hex.EncodeToString(sum[:])
	}
	return out
}

// hold returns the hold under which the batch must wait if it exceeds a limit, and whether that hold is approved already. recurring are
// the digests by causes.
func (b *assessed) hold(recurring map[cause]string, now time.Time) (Hold, bool) {
	by, c := b.cause()
	h := Hold{Owner: b.Policy, Since: now, Total: by.namespace == ""}
	c.ID += recurring[by]
	id, approved := b.Approvals.holdID(b.Policy, by.namespace, c)
	if approved && len(b.Changes) > 1 { // The approval must not cover objects that the other changes made due.
		joined := b.Changes.join()
		joined.ID += recurring[by]
		h.Total = false
		id, approved = b.Approvals.holdID(b.Policy, b.Namespace, joined)
	}
	h.ID = id
	if l := b.exceeds(); l != nil {
		h.Why = fmt.Sprintf("%s made more objects due at once than %s allows (%s%s)", c.Text, l, l.allows, b.within())
	}
	return h, approved
}

// exceeds returns the exceeded limit that messages name; nil if none is exceeded.
func (b *assessed) exceeds() *excess {
	for _, l := range []*Limit{b.overTotal, b.overObjects} {
		if l != nil {
			return &excess{l, strconv.Itoa(l.max)}
		}
	}
	return b.overShare
}

// within says how long changes count together. Unseen changes are compared with the last status instead.
func (b *assessed) within() string {
	if b.shown.Unseen {
		return ""
	}
	if b.exceeds() == b.overShare {
		return ", in ten minutes"
	}
	return " in ten minutes"
}

// wide returns the index of the last change that reaches many namespaces: a change of a cluster policy, or an unseen change; -1 if there is
// none.
func (b *assessed) wide() int {
	return b.Changes.last(func(c Change) bool { return c.Wide || c.Unseen && b.shown.Unseen })
}

// count adds the batch to the windows, so that it counts together with later changes.
func (b *assessed) count(recent Recent, now time.Time) {
	b.Recent.Add(b.Objects, b.Limits.Objects.remembers(b.UIDs), now)
	for i := range b.Shares {
		b.Shares[i].Recent.Add(b.Shares[i].Objects, b.Shares[i].UIDs, now)
	}
	for uid := range b.reach() {
		if recent[uid] == nil {
			recent[uid] = &Window{}
		}
		recent[uid].Add(b.Objects, b.Limits.Total.remembers(b.UIDs), now)
	}
}

// reach returns the cluster policies whose changes count together with this batch in all namespaces: the policy that deletes the objects,
// and the policies that were changed.
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

// sumObjects finds the batches that exceed the limit of their namespace, together with the batches of all policies there.
func sumObjects(all []*assessed, now time.Time) {
	n := map[string]int{} // beyond the objects that count already
	for _, b := range all {
		if !b.shown.Unseen {
			n[b.Namespace] += b.Recent.With(b.Objects, b.UIDs, now) - b.Recent.Sum(now)
		}
	}
	for _, b := range all {
		if !b.shown.Unseen {
			b.overObjects = b.Limits.Objects.exceeded(n[b.Namespace] + b.Recent.Sum(now))
		}
	}
}

// sumTotal finds the batches that exceed the limit of all namespaces, together with the batches of the same cluster policies elsewhere.
func sumTotal(all []*assessed, recent Recent, now time.Time) {
	n, limits := map[types.UID]int{}, map[types.UID]Limit{}
	for _, b := range all {
		if b.shown.Unseen {
			continue
		}
		for uid := range b.reach() {
			limitTotal(limits, uid, b.Limits.Total)
			n[uid] += recent[uid].With(b.Objects, b.UIDs, now) - recent[uid].Sum(now)
		}
	}
	for uid := range n {
		n[uid] += recent[uid].Sum(now)
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

// limitTotal lowers the limit of a cluster policy to the total limit of a namespace, so that the strictest namespace decides.
func limitTotal(limits map[types.UID]Limit, uid types.UID, total Limit) {
	if known, ok := limits[uid]; !ok || total.stricter(&known) {
		limits[uid] = total
	}
}

// sumUnseen finds the batches of unseen changes that exceed a limit. Overdue objects that the last status did not count were made due by an
// unseen change. It is not known which of the overdue objects these are, but there are at most Unreported of them.
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
