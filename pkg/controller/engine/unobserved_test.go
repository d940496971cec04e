// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// TestUnobservedResourcesAreHeld: if a resource cannot be listed or watched, its objects are held, and so are the objects that it may own.
func TestUnobservedResourcesAreHeld(t *testing.T) {
	for resource, c := range map[string]struct {
		taken []string
		held  map[string]string // by object, why
	}{
		"pods":           {[]string{"j"}, map[string]string{"a": "pods cannot be observed: no right"}},
		"jobs.batch":     {nil, map[string]string{"j": "jobs.batch cannot be observed: no right", "a": "jobs.batch cannot be observed: no right"}},
		"cronjobs.batch": {[]string{"a"}, map[string]string{"j": "cronjobs.batch cannot be observed: no right"}},
	} {
		t.Run(resource, func(t *testing.T) {
			w := newWorld(t, ttlPolicy("0s", 1))
			w.upsert(job(0, "j"), testbuilders.Pod("a").Succeeded(w.now).Fact())
			w.TakeUnwritten()
			w.Observing(resource, errors.New("no right"), w.now)
			for name, why := range c.held {
				w.decided(name, policy.Hold, policy.ReasonUnobserved)
				if got := w.Explain(w.Records.Get(testbuilders.UID(name))).Detail; got != why {
					t.Errorf("%s is held with detail %q", name, got)
				}
			}
			w.counts("p", counts{candidates: 2, due: 2, held: int64(len(c.held))})
			if w.report("p").Unobserved != resource+" cannot be observed: no right" {
				t.Errorf("the report has %q", w.report("p").Unobserved)
			}
			if len(w.TakeUnwritten()) != 1 {
				t.Error("no namespace is to be reported")
			}
			w.takes(c.taken...)
			w.Observing(resource, errors.New("no right, still"), w.now)
			w.takes()
			w.Observing(resource, nil, w.now)
			w.Observing(resource, nil, w.now)
			if w.report("p").Unobserved != "" {
				t.Errorf("the report has %q", w.report("p").Unobserved)
			}
			for name := range c.held {
				w.decided(name, policy.Delete, policy.ReasonExpired)
			}
		})
	}
	t.Run("other resources are not held", func(t *testing.T) {
		w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", "0s").For(gc.ResourceJobs)))
		w.upsert(job(0, "j"))
		w.Observing("pods", errors.New("no right"), w.now)
		if w.report("p").Unobserved != "" {
			t.Errorf("the report has %q", w.report("p").Unobserved)
		}
		w.takes("j")
	})
}

// TestChangesDoNotWaitForever: a change waits until all resources are listed, but not for a resource that fails for long. The objects of
// that resource are held. Once it can be observed, their return is a separate change.
func TestChangesDoNotWaitForever(t *testing.T) {
	w := newWorld(t)
	w.Config.HoldAbove = 1
	failed := errors.New("no right")
	w.Observing("pods", failed, w.now)
	w.observePolicy(ttlPolicy("0s", 1))
	list := func(resource string, all ...*lifecycle.Fact) {
		merge := w.BeginMerge(resource, testbuilders.Home)
		for _, f := range all {
			f.ResourceVersion, w.facts[f.Name] = 1, f
		}
		w.add(merge, compressed(all...), w.now)
		merge.End(true, w.now)
		w.confirmFresh()
	}
	list(gc.ResourceJobs, job(time.Minute, "j"))
	w.decided("j", policy.Hold, policy.ReasonUnobserved)
	w.Observing("pods", failed, w.now.Add(knowledge.GiveUpAfter-1))
	w.takes()
	w.now = w.now.Add(knowledge.GiveUpAfter)
	w.Observing("pods", failed, w.now)
	w.confirmFresh()
	w.deletes("j")
	w.removed("j")

	w.Observing("pods", nil, w.now)
	list("pods", testbuilders.Pod("a").Succeeded(w.now.Add(-time.Hour)).Fact(), testbuilders.Pod("b").Succeeded(w.now.Add(-time.Hour)).Fact())
	w.takes()
	w.oneHold("p", 2)
}

// TestObservedAgainAfterAStart: at a start, Pods fail for so long that changes no longer wait for them, but nothing could be assessed yet. Once
// they can be observed, only what was due before the start counts as the work of a change.
func TestObservedAgainAfterAStart(t *testing.T) {
	for name, c := range map[string]struct {
		due  time.Duration // for so long; everything becomes due before Pods can be observed
		held bool
	}{
		"they were due before the start":  {due: 10 * time.Minute, held: true},
		"they became due since the start": {due: knowledge.GiveUpAfter},
	} {
		t.Run(name, func(t *testing.T) {
			w := restarted(t, testbuilders.Now)
			w.lists([]string{testbuilders.Home}, ttlPolicy("30m", 1).Status(statusOf(1)))
			failed := errors.New("no right")
			w.Observing("pods", failed, w.now)
			w.now = w.now.Add(knowledge.GiveUpAfter)
			w.Observing("pods", failed, w.now)
			finished := w.now.Add(-30*time.Minute - c.due)
			for _, name := range names("pod-", 2) {
				w.upsert(testbuilders.Pod(name).Succeeded(finished).Fact())
			}
			for _, name := range names("job-", 2) {
				w.upsert(testbuilders.Job(name).Complete(finished).Fact())
			}
			w.Observing("pods", nil, w.now)
			w.listCovered()
			w.confirmFresh()
			if c.held {
				w.takes()
				w.oneHold("p", 4)
				return
			}
			w.takes(slices.Concat(names("pod-", 2), names("job-", 2))...)
		})
	}
}

// TestQuotasInDoubt: while quotas cannot be observed, or their watch is silent, objects that are due because of a percentage of a quota are
// held, with that reason. Objects that have outlived their TTL are deleted.
func TestQuotasInDoubt(t *testing.T) {
	for name, c := range map[string]struct {
		begin, end func(w *world)
		why        string
	}{
		"forbidden": {
			func(w *world) { w.Observing(kinds.ResourceQuotas, errors.New("no right"), w.now) },
			func(w *world) { w.Heard(kinds.ResourceQuotas, w.now) },
			"resourcequotas cannot be observed: no right",
		},
		"silent": {
			func(w *world) { w.pass(freshness.StaleAfter) },
			func(w *world) { w.Heard(kinds.ResourceQuotas, w.now) },
			"the watch of resourcequotas has been silent for 1m30s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t,
				testbuilders.Policy("p").Rules(testbuilders.Rule("half", "1h").For(gc.ResourceJobs).Labelled("both", "").KeepingPercent(50),
					testbuilders.Rule("alone", "1h").For(gc.ResourceJobs).KeepingPercent(25)),
				testbuilders.Policy("q").Rules(testbuilders.Rule("both", "30s").Labelled("both", "")))
			w.ReplaceQuotas([]*memory.Quota{quota(4)}, w.now)
			w.Heard(kinds.ResourceQuotas, w.now)
			c.begin(w)
			now := w.now.Add(-2 * time.Minute)
			w.upsert(testbuilders.Job("kept").Complete(now.Add(time.Second)).Fact(), testbuilders.Job("over").Complete(now).Fact(),
				testbuilders.Job("old").Complete(w.now.Add(-2*time.Hour)).Fact())
			for i, name := range []string{"x", "y", "z"} {
				w.upsert(testbuilders.Job(name).Label("both", "").Complete(now.Add(-time.Duration(i) * time.Second)).Fact())
			}
			for _, name := range []string{"over", "z"} { // z has outlived the TTL of q, but p keeps it because of the quota.
				w.decided(name, policy.Hold, policy.ReasonUnobserved)
				if got := w.Explain(w.Records.Get(testbuilders.UID(name))).Detail; got != c.why {
					t.Errorf("%s is held with detail %q", name, got)
				}
			}
			if got := w.report("p").QuotaDoubt; got != c.why {
				t.Errorf("the report has %q", got)
			}
			if got := w.report("q").QuotaDoubt; got != "" {
				t.Errorf("the report of a policy without such a limit has %q", got)
			}
			w.decided("old", policy.Delete, policy.ReasonExpired)
			w.deletes("old")
			c.end(w)
			if got := w.report("p").QuotaDoubt; got != "" {
				t.Errorf("the report still has %q", got)
			}
			w.takes("over", "z")
		})
	}
	t.Run("until the TTL has passed", func(t *testing.T) {
		w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("half", "1h").For(gc.ResourceJobs).KeepingPercent(50)))
		w.ReplaceQuotas([]*memory.Quota{quota(2)}, w.now)
		w.upsert(jobs(time.Minute, "a", "b")...)
		w.Observing(kinds.ResourceQuotas, errors.New("no right"), w.now)
		w.takes()
		if next, ok := w.Next(); !ok || !next.Equal(testbuilders.Now.Add(59*time.Minute)) {
			t.Errorf("the next time is %s, %v", next, ok)
		}
		w.pass(59 * time.Minute)
		w.decided("b", policy.Delete, policy.ReasonExpired)
		w.takes("a", "b")
	})
	t.Run("a preview reports them as held", func(t *testing.T) {
		w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("half", "1h").For(gc.ResourceJobs).KeepingPercent(50)).Preview())
		w.ReplaceQuotas([]*memory.Quota{quota(2)}, w.now)
		w.upsert(jobs(time.Minute, "a", "b")...)
		w.upsert(job(2*time.Hour, "old"))
		w.Observing(kinds.ResourceQuotas, errors.New("no right"), w.now)
		w.counts("p", counts{candidates: 3, due: 2, held: 1})
	})
	t.Run("other limits apply", func(t *testing.T) {
		w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("one", "").For(gc.ResourceJobs).WithoutTTL().Keeping(1)),
			testbuilders.Policy("q").Rules(testbuilders.Rule("half", "").For(gc.ResourcePods).WithoutTTL().KeepingPercent(50)))
		w.ReplaceQuotas(nil, w.now)
		w.Observing(kinds.ResourceQuotas, errors.New("no right"), w.now)
		w.upsert(jobs(time.Minute, "a", "b")...)
		w.decided("b", policy.Delete, policy.ReasonOverCapacity)
		w.takes("b")
	})
}
