// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/engine/trial"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/references"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
)

// ticking returns a clock on which a turn ends whenever the clock is read.
func ticking() func() time.Time {
	now := testbuilders.Now
	return func() time.Time {
		now = now.Add(turn)
		return now
	}
}

// newTracker returns a tracker with one namespace, a policy and Jobs.
func newTracker(clock func() time.Time, jobs int) *Tracker {
	t := New(memory.Config{HoldAbove: -1, HoldAboveTotal: -1}, clock)
	t.ReplaceNamespaces([]*metav1.PartialObjectMetadata{testbuilders.Namespace(testbuilders.Home, "1")}, "1", testbuilders.Now)
	t.ReplaceClusterPolicies(nil, "1", testbuilders.Now)
	t.ReplacePolicies([]*gc.CleanupPolicy{testbuilders.Policy("p").Default("1h").Version("1").Obj()}, "1", testbuilders.Now)
	t.ReplaceCronJobs(nil, testbuilders.Now)
	var all []*facts.Compact
	for i := range jobs {
		all = append(all, job(i, 1))
	}
	for resource, page := range map[string][]*facts.Compact{gc.ResourceJobs: all, gc.ResourcePods: nil} {
		l := t.BeginList(resource)
		l.Add(page, testbuilders.Now)
		l.End(1, testbuilders.Now)
	}
	for t.Step(testbuilders.Now) {
	}
	return t
}

func job(i, version int) *facts.Compact {
	b := testbuilders.Job(fmt.Sprint("job-", i)).Complete(testbuilders.Now.Add(-2 * time.Hour)).Version(fmt.Sprint(version))
	return facts.Compress(b.Fact())
}

func received(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestSignals: an effect is received once, however many events have it.
func TestSignals(t *testing.T) {
	tr := newTracker(ticking(), 0)
	if !received(tr.CoverageChanged()) || received(tr.CoverageChanged()) || !received(tr.Changed()) || received(tr.Changed()) {
		t.Error("a first policy changes the coverage and what is due, once")
	}
	if received(tr.Behind()) {
		t.Error("there is no work yet")
	}
	for i := range 2 * clockEvery {
		tr.Upsert(job(i, 2), testbuilders.Now)
	}
	if received(tr.CoverageChanged()) || received(tr.Behind()) || !received(tr.Changed()) {
		t.Error("objects change what is due, and nothing else")
	}
	tr.SetPolicy(testbuilders.Policy("p").Default("3h").Generation(2).Version("2").Obj(), testbuilders.Now)
	if !received(tr.Behind()) {
		t.Error("a change that takes longer than a turn leaves work")
	}
	for tr.Step(testbuilders.Now) {
	}
	received(tr.Behind())
	if tr.TakeUnwritten(); received(tr.Behind()) {
		t.Error("there is no work left")
	}
}

// TestSpent: the clock is read after some work, and a turn begins when the lock is taken.
func TestSpent(t *testing.T) {
	now := testbuilders.Now
	tr := New(memory.Config{}, func() time.Time { return now })
	for _, took := range []time.Duration{turn - 1, turn, 2 * turn} {
		tr.lock()
		now = now.Add(took)
		if tr.spent(clockEvery - 1) {
			t.Errorf("after %s: the clock was read too early", took)
		}
		if got, want := tr.spent(1), took >= turn; got != want {
			t.Errorf("after %s: the turn is over: %t, want %t", took, got, want)
		}
		tr.unlock()
	}
}

// TestReferrersInTurns: each call processes all keys, in as many turns as it needs.
func TestReferrersInTurns(t *testing.T) {
	tr, now := New(memory.Config{}, ticking()), testbuilders.Now
	all := []knowledge.Referring{{Source: "pods", Referrer: references.Referrer{UID: "u", Namespace: "ns", Name: "u"}, Keys: make([]references.Key, 100*clockEvery)}}
	for i := range all[0].Keys {
		all[0].Keys[i] = references.Key(4 * i)
	}
	tr.SetReferrerSources([]string{"pods"}, "", now)
	tr.BeginReferrers("pods", now)
	for i, do := range []func(){
		func() { tr.SetReferring(all, now) },
		func() { tr.Reread(all, now) },
		func() { tr.RemoveReferrer("pods", "u", now) },
		func() { tr.SetReferring(all, now) },
		func() { tr.BeginReferrers("pods", now); tr.EndReferrers("pods", now) },
		func() { tr.SetReferring(all, now) },
		func() { tr.ForgetReferrers(now) },
	} {
		do()
		if call(tr, func(e *engine.Engine) bool { return e.StepReferrers(now) }) {
			t.Errorf("call %d has not taken in everything", i)
		}
	}
}

// TestConcurrentUse: whichever methods are called at the same time, no event is lost.
func TestConcurrentUse(t *testing.T) {
	const jobs = 4 * clockEvery
	tr, now := newTracker(time.Now, jobs), testbuilders.Now
	var group sync.WaitGroup
	for _, do := range []func(i int){
		func(i int) { tr.Upsert(job(jobs+i, 2), now) },
		func(i int) { tr.Upsert(job(i, 2), now) },
		func(i int) {
			tr.SetPolicy(testbuilders.Policy("q").Default("3h").Generation(int64(i)).Version(fmt.Sprint(i)).Obj(), now)
		},
		func(int) { tr.Reports(testbuilders.Home); tr.TakeUnwritten() },
		func(int) { tr.Holds(testbuilders.Policy("p").Obj()) },
		func(i int) {
			m := tr.BeginMerge(gc.ResourceJobs, testbuilders.Home)
			m.Add([]*facts.Compact{job(i, 3)}, now)
			m.End(true, now)
		},
		func(i int) {
			l := tr.BeginList(gc.ResourcePods)
			if i%2 == 0 {
				l.Abandon(now)
			}
			l.End(uint64(i), now)
		},
		func(int) {
			change := gc.PolicyChange{After: testbuilders.Policy("p").Default("2h").Obj()}
			tr.Snapshot(t.Context(), trial.Propose(change), jobs, now)
		},
		func(int) {
			tr.ConfirmFresh(freshness.ConsistentRead{Began: now}, now)
			if o, ok := tr.Take(now); ok {
				tr.Done(o, deletion.Result{Outcome: deletion.Conflict}, now)
			}
		},
		func(int) { tr.Step(now); tr.Expire(now); tr.Next() },
	} {
		group.Go(func() {
			for i := range jobs {
				do(i)
			}
		})
	}
	group.Wait()
	for tr.Step(now) {
	}
	if got := tr.Totals(testbuilders.Now).Objects; got != 2*jobs {
		t.Errorf("%d objects are tracked, want %d", got, 2*jobs)
	}
	candidates := int64(0)
	for _, r := range tr.Reports(testbuilders.Home) {
		candidates += r.Candidates
	}
	if candidates != 2*jobs {
		t.Errorf("%d candidates are reported, want %d", candidates, 2*jobs)
	}
}

// TestCandidatesTakeTurns: a page is found in several turns, and none is returned once its context has ended.
func TestCandidatesTakeTurns(t *testing.T) {
	const jobs = 3 * clockEvery
	turns := 0
	clock := ticking()
	tr := newTracker(func() time.Time { turns++; return clock() }, jobs)
	q := gc.CandidateQuery{Resources: sets.KeySet(tr.CandidateResources("")), Labels: labels.Everything(), Fields: fields.Everything()}
	before := turns
	page, err := tr.Candidates(t.Context(), q)
	if err != nil || len(page.Items) != jobs || turns-before < 3 {
		t.Errorf("%d candidates in %d turns, %v", len(page.Items), turns-before, err)
	}
	for checks := range 3 {
		if _, err := tr.Candidates(&testbuilders.Countdown{Context: t.Context(), Left: checks}, q); err == nil {
			t.Errorf("a page after the context ended, after %d checks", checks)
		}
	}
}

// TestSnapshotEndsWithItsContext: a copy is cut when its context ends.
func TestSnapshotEndsWithItsContext(t *testing.T) {
	tr := newTracker(ticking(), 3*clockEvery)
	change := trial.Propose(gc.PolicyChange{After: testbuilders.Policy("p").Default("1d").Obj()})
	for checks, cut := range map[int]bool{0: true, 1: true, 1000: false} {
		s := tr.Snapshot(&testbuilders.Countdown{Context: t.Context(), Left: checks}, change, 1000, testbuilders.Now)
		if s.Cut != cut || len(s.Facts) == 3*clockEvery == cut {
			t.Errorf("the context ended after %d checks: %d facts, cut: %t", checks, len(s.Facts), s.Cut)
		}
	}
}
