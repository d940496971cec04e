// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// slice is how many objects are taken in, or judged anew, before others may have the lock: some milliseconds.
const slice = 2000

// anew are the namespaces whose objects are being judged anew, since something has changed that may concern all of them. All are
// counted before anything is decided, so that no decision rests on a part of them. Many take their time: others have the lock in
// between, and until the end nothing is deleted where it may depend on them.
type anew struct {
	counting, settling sets.Set[*namespace]
	concluding         int // how often what weighing has found is being carried out
	listing            int // lists that are being taken in: what is known in between is no ground to weigh a change, or to end a hold
	parked             []*namespace
	slice              int
	worked             int           // objects since others could have the lock
	others             func()        // what a test has them do then
	behind             chan struct{} // wakes whoever is to call CatchUp
}

func newAnew() anew {
	return anew{counting: sets.New[*namespace](), settling: sets.New[*namespace](), slice: slice, others: func() {}, behind: make(chan struct{}, 1)}
}

// Behind receives when CatchUp has something to do.
func (t *Tracker) Behind() <-chan struct{} { return t.behind }

// CatchUp judges some of the objects that are to be judged anew, and tells whether there are more.
func (t *Tracker) CatchUp(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.judging() {
		t.catchUp(now)
	}
	return t.judging()
}

// judging tells whether objects are being judged anew.
func (t *Tracker) judging() bool { return len(t.settling) > 0 }

// rejudge judges all objects of namespaces; when they are few, at once.
func (t *Tracker) rejudge(all []*namespace, now time.Time) {
	behind, n := t.judging(), 0
	for _, ns := range all {
		t.soil(ns)
		ns.uncounted, ns.unsettled = len(ns.records), len(ns.records)
		n += ns.uncounted
		t.counting.Insert(ns)
		t.settling.Insert(ns)
	}
	if behind || n > t.slice {
		t.park(func(ns *namespace) bool { return t.settling.Has(ns) || len(ns.ceilings) > 0 })
		wake(t.behind)
		return
	}
	if t.catchUp(now); t.judging() {
		t.catchUp(now) // If others have added many more in between, they have woken whoever sees to those.
	}
}

func (t *Tracker) rejudgeAll(now time.Time) {
	t.rejudge(slices.Collect(maps.Values(t.namespaces)), now)
}

// catchUp counts or decides a slice of the objects.
func (t *Tracker) catchUp(now time.Time) {
	left := t.slice
	if len(t.counting) > 0 {
		left = forSome(t.counting, left, func(ns *namespace) *int { return &ns.uncounted }, func(rec *record) { t.enlist(rec, now) })
		if len(t.counting) > 0 {
			return
		}
		t.flipped = slices.DeleteFunc(t.flipped, func(rec *record) bool {
			rec.flip(now)
			return rec.removed() || t.settling.Has(rec.ns) && rec.seat < int32(rec.ns.unsettled) // It is decided in its turn.
		})
	}
	forSome(t.settling, left, func(ns *namespace) *int { return &ns.unsettled }, func(rec *record) { t.settle(rec, now) })
	if t.judging() {
		return
	}
	t.settleFlipped(now)
	t.weighPending(now)
	t.unpark()
	wake(t.changed)
}

// forSome does something for so many records, and returns how many more it could have been. Of each namespace those are yet to come
// that have a seat below what left points to; a namespace of which none is goes out of the set.
func forSome(of sets.Set[*namespace], most int, left func(*namespace) *int, do func(*record)) int {
	for ns := range of {
		n := left(ns)
		for ; most > 0 && *n > 0; most-- {
			*n--
			do(ns.records[*n])
		}
		if *n > 0 {
			break
		}
		of.Delete(ns)
	}
	return most
}

// breathe is called for each object of a long piece of work; others have the lock when a slice of them was worked through.
func (t *Tracker) breathe() {
	if t.worked++; t.worked < t.slice {
		return
	}
	t.worked = 0
	t.mu.Unlock()
	t.others()
	t.mu.Lock()
}

// park stops the deletions of namespaces until nothing is judged anew or taken in any more.
func (t *Tracker) park(which func(*namespace) bool) {
	for _, ns := range t.namespaces {
		if !ns.parked && which(ns) {
			ns.parked = true
			t.parked = append(t.parked, ns)
		}
	}
	t.ready.park()
}

func (t *Tracker) unpark() {
	if t.judging() || t.concluding > 0 || t.listing > 0 {
		return
	}
	for _, ns := range t.parked {
		t.ready.unpark(ns)
	}
	t.parked = nil
	wake(t.changed)
}
