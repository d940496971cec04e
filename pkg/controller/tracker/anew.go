// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// anew are the namespaces whose objects are being judged anew, since something has changed that may concern all of them. All are
// counted before anything is decided, so that no decision rests on a part of them. Many take their time: others have the lock in
// between, and until the end nothing is deleted where it may depend on them.
type anew struct {
	counting, settling sets.Set[*namespace]
	concluding         int           // how often what weighing has found is being carried out
	listing            int           // lists that are being taken in: what is known in between is no ground to weigh a change, or to end a hold
	paused             []*lane       // until nothing is judged anew or taken in any more
	others             func()        // what a test has them do then
	behind             chan struct{} // wakes whoever is to call CatchUp
}

func newAnew() anew {
	return anew{counting: sets.New[*namespace](), settling: sets.New[*namespace](), others: func() {}, behind: make(chan struct{}, 1)}
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

// rejudge judges all objects of namespaces, as many as possible at once.
func (t *Tracker) rejudge(all []*namespace, now time.Time) {
	begun := t.judging()
	t.mark(all)
	if !begun {
		t.catchUp(now)
	}
	if t.judging() {
		t.putOff(all, begun)
	}
}

// mark has all objects of namespaces judged anew.
func (t *Tracker) mark(all []*namespace) {
	for _, ns := range all {
		t.soil(ns)
		ns.uncounted, ns.unsettled = len(ns.records), len(ns.records)
		t.counting.Insert(ns)
		t.settling.Insert(ns)
	}
}

// putOff leaves the objects of namespaces that are yet to be judged to CatchUp; begun says that there were others already.
func (t *Tracker) putOff(all []*namespace, begun bool) {
	which := sets.New(all...)
	t.pauseDeletes(func(ns *namespace) bool { return which.Has(ns) || !begun && len(ns.ceilings) > 0 })
	wake(t.behind)
}

func (t *Tracker) rejudgeAll(now time.Time) {
	t.rejudge(slices.Collect(maps.Values(t.namespaces)), now)
}

// catchUp counts or decides objects until it is the turn of others, or all are done.
func (t *Tracker) catchUp(now time.Time) {
	if len(t.counting) > 0 {
		t.forSome(t.counting, func(ns *namespace) *int { return &ns.uncounted }, func(rec *record) { t.enlist(rec, now) })
		if len(t.counting) > 0 {
			return
		}
		t.flipped = slices.DeleteFunc(t.flipped, func(rec *record) bool {
			rec.flip(now)
			return rec.removed() || t.settling.Has(rec.ns) && rec.seat < int32(rec.ns.unsettled) // It is decided in its turn.
		})
	}
	t.forSome(t.settling, func(ns *namespace) *int { return &ns.unsettled }, func(rec *record) {
		t.noteAnnotations(rec)
		t.settle(rec, now)
	})
	if t.judging() {
		return
	}
	if t.settleFlipped(now); t.judging() {
		return
	}
	t.weighPending(now)
	t.resumeDeletes()
	wake(t.changed)
}

// forSome does something for records, for one at least, until it is the turn of others. Of each namespace those are yet to come that
// have a seat below what left points to; a namespace of which none is goes out of the set.
func (t *Tracker) forSome(of sets.Set[*namespace], left func(*namespace) *int, do func(*record)) {
	for ns := range of {
		n, spent := left(ns), false
		for *n > 0 && !spent {
			*n--
			do(ns.records[*n])
			spent = t.mu.spent(ns.work())
		}
		if *n == 0 {
			of.Delete(ns)
		}
		if spent {
			return
		}
	}
}

// work is how much it takes to judge an object of the namespace, beside one that nobody matches.
func (ns *namespace) work() int {
	return 1 + len(ns.voters) + len(ns.previews) + len(ns.clusterVoters) + len(ns.clusterPreviews)
}

// workIn is that of a namespace which may not be known.
func (t *Tracker) workIn(namespace string) int {
	if ns, ok := t.namespaces[namespace]; ok {
		return ns.work()
	}
	return 1
}

// breathe is called after each part of a long piece of work; others have the lock when it is their turn.
func (t *Tracker) breathe(work int) {
	if t.mu.spent(work) {
		t.yield()
	}
}

func (t *Tracker) yield() {
	t.mu.Unlock()
	t.others()
	t.mu.Lock()
}

// pauseDeletes stops the deletions of namespaces until nothing is judged anew or taken in any more.
func (t *Tracker) pauseDeletes(which func(*namespace) bool) {
	var lanes []*lane
	for _, ns := range t.namespaces {
		if !ns.lane.Paused() && which(ns) {
			lanes = append(lanes, &ns.lane)
		}
	}
	if len(lanes) > 0 {
		t.ready.Pause(lanes...)
		t.paused = append(t.paused, lanes...)
	}
}

func (t *Tracker) resumeDeletes() {
	if t.judging() || t.concluding > 0 || t.listing > 0 {
		return
	}
	for _, l := range t.paused {
		t.ready.Resume(l)
	}
	t.paused = nil
	wake(t.changed)
}
