// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// crowd returns policies of one namespace. Every second one is a Preview. The last of their rules matches, and keeps this number of
// objects.
func crowd(policies, rules int, ttl gc.TTL, keeping int64) []*testbuilders.PolicyBuilder {
	var out []*testbuilders.PolicyBuilder
	for i := range policies {
		var all []*testbuilders.RuleBuilder
		for r := range rules - 1 {
			all = append(all, testbuilders.Rule(fmt.Sprint("other-", r), "1h").Labelled("app", fmt.Sprint("other-", r)))
		}
		p := testbuilders.Policy(fmt.Sprintf("p-%03d", i)).
			Rules(append(all, testbuilders.Rule("mine", ttl).Labelled("app", "mine").Keeping(keeping))...)
		if i%2 == 1 {
			p.Preview()
		}
		out = append(out, p)
	}
	return out
}

// TestPoliciesAreAskedOnce: the policies of a namespace, half of which are Previews, are asked about an object once for each event that
// affects it.
func TestPoliciesAreAskedOnce(t *testing.T) {
	const known = 3
	mine := func(name string, age time.Duration) *testbuilders.JobBuilder {
		return testbuilders.Job(name).Label("app", "mine").Complete(testbuilders.Now.Add(-age))
	}
	policies := crowd(12, 3, "30d", known)
	for name, c := range map[string]struct {
		do   func(*world)
		want int
	}{
		"a new state":                         {func(w *world) { w.upsert(mine("1", time.Hour).Label("run", "2").Fact()) }, 1},
		"one that runs":                       {func(w *world) { w.upsert(testbuilders.Job("runs").Label("app", "mine").Fact()) }, 1},
		"one that pushes one out of pools":    {func(w *world) { w.upsert(mine("new", 0).Fact()) }, 2},
		"one that no policy matches":          {func(w *world) { w.upsert(testbuilders.Job("other").Complete(w.now).Fact()) }, 1},
		"one that is removed":                 {func(w *world) { w.removed("1") }, 0},
		"time":                                {func(w *world) { w.now = w.now.Add(31 * 24 * time.Hour); w.Expire(w.now) }, known},
		"a policy: all counted, then settled": {func(w *world) { w.policy(crowd(12, 3, "20d", known)[4].Generation(2)) }, 2 * known},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policies...)
			for i := range known {
				w.upsert(mine(fmt.Sprint(i), time.Hour).Fact())
			}
			before := w.Asked.Count
			if c.do(w); w.Asked.Count-before != c.want {
				t.Errorf("policies were asked %d times, want %d", w.Asked.Count-before, c.want)
			}
		})
	}
}

// TestOnlyOneNamespaceIsScanned: an event in one namespace does not scan the objects of all namespaces.
func TestOnlyOneNamespaceIsScanned(t *testing.T) {
	for name, do := range map[string]func(*world){
		"a new namespace":     func(w *world) { w.namespace("new") },
		"with a policy":       func(w *world) { w.policy(testbuilders.Policy("p").In("new").Default("1h")); w.namespace("new") },
		"labels":              func(w *world) { w.namespace("other", gc.LabelProtected, "true") },
		"a removed namespace": func(w *world) { w.RemoveNamespace(testbuilders.Namespace("other", w.next()), w.now) },
		"an object":           func(w *world) { w.upsert(job(time.Hour, "new")) },
		"one that is due":     func(w *world) { w.upsert(job(60*24*time.Hour, "new")) },
		"one that is removed": func(w *world) { w.removed(testbuilders.Home + "-0") },
		"a policy":            func(w *world) { w.policy(ttlPolicy("20d", 2)) },
		"a removed policy":    func(w *world) { w.removePolicy(ttlPolicy("30d", 1)) },
		"a quota": func(w *world) {
			w.SetQuota(&memory.Quota{NamespacedName: types.NamespacedName{Namespace: testbuilders.Home, Name: "q"}}, w.now)
		},
		"time":    func(w *world) { w.pass(31 * 24 * time.Hour) },
		"reports": func(w *world) { w.Reports(testbuilders.Home); w.Reports(""); w.Totals(w.now) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.policy(ttlPolicy("30d", 1))
			w.namespace("other")
			w.fill(testbuilders.Home, 4)
			before := w.Records.Scans
			if do(w); w.Records.Scans != before {
				t.Errorf("all objects were scanned %d times", w.Records.Scans-before)
			}
		})
	}
}

// TestBudgetIsKept: with a budget of one object, no call asks policies about more objects than its event affects directly, and one more.
func TestBudgetIsKept(t *testing.T) {
	const objects, most = 12, 3
	for name, do := range map[string]func(*world){
		"a policy changes": func(w *world) { w.observePolicy(ttlPolicy("20d", 2)) },
		"a new ceiling":    func(w *world) { w.observeClusterPolicy(jobCeiling(1, objects/2)) },
		"a list":           func(w *world) { w.Replace(gc.ResourceJobs, w.listing(objects), w.version, w.now) },
		"a merge":          func(w *world) { w.add(w.BeginMerge(gc.ResourceJobs, testbuilders.Home), w.listing(objects), w.now) },
		"time":             func(w *world) { w.now = w.now.Add(31 * 24 * time.Hour); w.expireAll() },
		"a watch is lost":  func(w *world) { w.Observing(gc.ResourceJobs, errors.New("no"), w.now) },
		"an owner of many": func(w *world) {
			w.SetCronJob(&lifecycle.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: testbuilders.Home, UID: testbuilders.UID("nightly")}}, w.now)
		},
		"others that take a share of a ceiling": func(w *world) {
			w.clusterPolicy(jobCeiling(1, objects+2))
			w.observeNamespace("other", gc.LabelProtected, "true")
			w.policy(testbuilders.Policy("p").In("other").Default("never"))
			for i := range objects {
				w.upsert(testbuilders.Job(fmt.Sprint("other-", i)).In("other").Complete(w.now).Fact())
			}
			w.stepAll()
			w.observeNamespace("other")
		},
		"a quota": func(w *world) {
			w.SetQuota(&memory.Quota{NamespacedName: types.NamespacedName{Namespace: testbuilders.Home, Name: "q"}, Counts: map[string]int64{"count/jobs.batch": 4}}, w.now)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.policy(testbuilders.Policy("q").Rules(testbuilders.Rule("half", "30d").KeepingPercent(50)))
			w.policy(ttlPolicy("30d", 1))
			w.fill(testbuilders.Home, objects)
			for i := range objects {
				w.upsert(testbuilders.Job(fmt.Sprint("nightly-", i)).ControlledBy("batch/v1", "CronJob", "nightly").Complete(w.now).Fact())
			}
			w.setBudget(1)
			before, longest := w.Asked.Count, 0
			begun := before
			w.interrupt = func() { longest, before = max(longest, w.Asked.Count-before), w.Asked.Count }
			do(w)
			w.interrupt()
			w.stepAll()
			w.interrupt()
			if longest > most || w.Asked.Count == begun {
				t.Errorf("policies were asked about %d objects, about %d in one call", w.Asked.Count-begun, longest)
			}
		})
	}
}

func (w *world) expireAll() { w.finish(func() bool { return w.Expire(w.now) }) }

func (w *world) stepAll() { w.finish(func() bool { return w.Step(w.now) }) }

// listing returns this number of new objects, as a list brings them.
func (w *world) listing(objects int) []*facts.Compact {
	var out []*facts.Compact
	for i := range objects {
		out = append(out, compressed(w.withVersions(job(time.Duration(i)*time.Second, fmt.Sprint("listed-", i)))...)...)
	}
	return out
}
