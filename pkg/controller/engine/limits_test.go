// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// guardrailPolicy returns a cluster policy for all namespaces with these guardrails.
func guardrailPolicy(generation int64, g gc.Guardrails) *gc.ClusterCleanupPolicy {
	return &gc.ClusterCleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "all", UID: "uid-all", Generation: generation},
		Spec: gc.ClusterCleanupPolicySpec{
			Mode: gc.ModeEnforce, NamespaceSelector: &metav1.LabelSelector{}, AnnotationTTL: gc.AnnotationExtendOnly, Guardrails: &g,
		},
	}
}

// jobCeiling returns a cluster policy with a ceiling of Jobs in all namespaces.
func jobCeiling(generation, most int64) *gc.ClusterCleanupPolicy {
	return guardrailPolicy(generation, gc.Guardrails{Ceilings: []gc.Ceiling{{Resources: []string{gc.ResourceJobs}, MaxObjects: &most}}})
}

// fill creates a namespace with finished Jobs of distinct ages.
func (w *world) fill(namespace string, n int) {
	w.namespace(namespace)
	for i := range n {
		name := fmt.Sprintf("%s-%d", namespace, i)
		w.upsert(testbuilders.Job(name).In(namespace).Complete(w.now.Add(-time.Duration(i) * time.Second)).Fact())
	}
}

// work deletes everything that is due, a few objects at a time.
func (w *world) work() {
	w.Helper()
	for {
		var batch []*deletion.Order
		for len(batch) < 7 {
			o, ok := w.Take(w.now)
			if !ok {
				break
			}
			batch = append(batch, o)
		}
		if len(batch) == 0 {
			return
		}
		for i, o := range batch {
			if i%2 == 0 { // Half of the events arrive before the answer.
				w.Remove(facts.Compress(o.Fact), w.now)
			}
			w.Done(o, deletion.Result{Outcome: deletion.Accepted}, w.now)
			if i%2 != 0 {
				w.Remove(facts.Compress(o.Fact), w.now)
			}
			delete(w.facts, o.Fact.Name)
		}
	}
}

// left counts the objects of each namespace, and fails unless the remaining objects are the ones that finished last.
func (w *world) left() map[string]int {
	w.Helper()
	out := map[string]int{}
	oldest := map[string]time.Time{}
	for _, f := range w.facts {
		out[f.Namespace]++
		if at := oldest[f.Namespace]; at.IsZero() || f.FinishedAt.Before(at) {
			oldest[f.Namespace] = f.FinishedAt
		}
	}
	for ns, n := range out {
		if want := w.now.Add(-time.Duration(n-1) * time.Second); !oldest[ns].Equal(want) {
			w.Errorf("the oldest remaining object of namespace %s finished at %s, want %s", ns, oldest[ns], want)
		}
	}
	return out
}

func TestCeilingKeepsTheShares(t *testing.T) {
	w := newWorld(t)
	w.Config.HoldAbove = -1
	w.fill("a", 10)
	w.fill("b", 200)
	w.fill("c", 3000)
	for _, step := range []struct {
		do   func()
		want map[string]int
	}{
		{func() {
			w.clusterPolicy(jobCeiling(1, 600))
			for _, f := range w.facts { // They are covered only now.
				w.Upsert(facts.Compress(f), w.now)
			}
		}, map[string]int{"a": 10, "b": 200, "c": 390}},
		{func() { w.fill("d", 500) }, map[string]int{"a": 10, "b": 197, "c": 197, "d": 196}},
	} {
		step.do()
		w.confirmFresh()
		w.work()
		if got := w.left(); !maps.Equal(got, step.want) {
			t.Fatalf("left %v, want %v", got, step.want)
		}
	}
	w.upsert(testbuilders.Job("one too many").In("d").Complete(w.now).Fact())
	w.takes("d-195")
}

// terminating returns an object that is being deleted and waits for a finalizer.
func terminating(f *lifecycle.Fact) *lifecycle.Fact {
	out := *f
	out.Terminating, out.Finalizers = true, []string{"example.com/hold"}
	return &out
}

// TestACeilingDoesNotCountDeletedObjects: an object that is being deleted leaves its place to others, even while a finalizer keeps it.
func TestACeilingDoesNotCountDeletedObjects(t *testing.T) {
	w := newWorld(t)
	w.clusterPolicy(jobCeiling(1, 2))
	w.upsert(jobs(time.Minute, "p1")...)
	w.upsert(jobs(2*time.Minute, "p2")...)
	w.upsert(jobs(time.Hour, "p3")...)
	w.confirmFresh()
	w.deletes("p3")
	w.decided("p3", policy.Await, policy.ReasonTerminating)
	w.upsert(terminating(w.facts["p3"]))
	w.removed("p2") // By somebody else.
	w.upsert(jobs(2*time.Hour, "p4")...)
	w.confirmFresh()
	w.takes()
	w.decided("p4", policy.Keep, policy.ReasonUnderCeiling)
	w.removed("p3")
	w.confirmFresh()
	w.takes()
}

// TestATerminatingObjectTakesNoShare: an object that is being deleted in one namespace leaves its place to other namespaces.
func TestATerminatingObjectTakesNoShare(t *testing.T) {
	w := newWorld(t)
	w.clusterPolicy(jobCeiling(1, 4))
	w.fill("x", 3)
	w.fill("y", 2)
	w.confirmFresh()
	w.deletes("x-2")
	w.upsert(terminating(w.facts["x-2"]))
	w.removed("x-0", "x-1")
	w.fill("y", 4)
	w.confirmFresh()
	w.takes()
}

// TestAnnotationsDoNotExemptFromACeiling: objects that an annotation keeps are deleted after all others, and like all others once the
// annotation has expired.
func TestAnnotationsDoNotExemptFromACeiling(t *testing.T) {
	w := newWorld(t)
	w.clusterPolicy(jobCeiling(1, 0))
	w.pass(time.Hour)
	until := func(d time.Duration) string { return w.now.Add(d).Format(time.RFC3339) }
	at := func(name string, ago time.Duration) *testbuilders.JobBuilder {
		return testbuilders.Job(name).Complete(w.now.Add(-ago))
	}
	w.upsert(
		at("until", 2*time.Minute).KeepUntil(until(100*24*time.Hour)).Fact(),
		at("soon", time.Minute).KeepUntil(until(time.Minute)).Fact(),
	)
	w.upsert(at("never", 3*time.Minute).TTL("never").Fact(), at("plain", 0).Fact())
	taken := func(want ...string) {
		t.Helper()
		var got []string
		var orders []*deletion.Order
		for o, ok := w.Take(w.now); ok; o, ok = w.Take(w.now) {
			got, orders = append(got, o.Fact.Name), append(orders, o)
		}
		for _, o := range orders {
			w.Release(o, w.now)
		}
		if !slices.Equal(got, want) {
			t.Errorf("took %q, want %q", got, want)
		}
	}
	w.confirmFresh()
	taken("plain", "never", "until", "soon")
	w.pass(time.Minute)
	taken("soon", "plain", "never", "until")
	w.clusterPolicy(jobCeiling(2, 3))
	w.confirmFresh()
	taken("soon")
	w.clusterPolicy(jobCeiling(3, 1))
	w.confirmFresh()
	taken("soon", "plain", "never")
}

// TestACeilingWaitsForExpiredAnnotations: an object whose annotation has expired is deleted first, even if its timer was not processed yet.
func TestACeilingWaitsForExpiredAnnotations(t *testing.T) {
	w := newWorld(t)
	w.clusterPolicy(jobCeiling(1, 1))
	w.upsert(jobs(time.Minute, "plain")...)
	w.upsert(testbuilders.Job("kept").Complete(w.now.Add(-time.Hour)).KeepUntil(w.now.Add(time.Minute).Format(time.RFC3339)).Fact())
	w.decided("plain", policy.Delete, policy.ReasonOverCeiling)
	w.now = w.now.Add(time.Minute)
	w.confirmFresh()
	w.takes()
	w.pass(0)
	w.takes("kept")
}

// TestTheOrderOfDeletionsDoesNotMatter: while the objects above a ceiling are deleted, in any order and with or without finalizers, no
// other object gets above the ceiling, and none gets below it.
func TestTheOrderOfDeletionsDoesNotMatter(t *testing.T) {
	over := []string{"x-3", "y-2", "y-3"}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		for _, stay := range []bool{false, true} {
			w := newWorld(t)
			w.clusterPolicy(jobCeiling(1, 5)) // Three for x, two for y.
			w.fill("x", 4)
			w.fill("y", 4)
			w.confirmFresh()
			for i := range order {
				var left []string
				for _, j := range order[i:] {
					left = append(left, over[j])
				}
				w.takes(left...)
				w.done(over[order[i]], deletion.Accepted)
				if stay {
					w.upsert(terminating(w.facts[over[order[i]]]))
				} else {
					w.removed(over[order[i]])
				}
				for _, o := range w.orders {
					w.Release(o, w.now)
				}
				clear(w.orders)
				w.confirmFresh()
			}
			w.takes()
		}
	}
}

func TestAStaleWatchHoldsLimits(t *testing.T) {
	w := newWorld(
		t,
		testbuilders.Policy("p").
			Rules(testbuilders.Rule("few", "").WithoutTTL().Keeping(1), testbuilders.Rule("r", "0s").For(gc.ResourcePods)),
	)
	w.Heard(gc.ResourceJobs, w.now)
	w.Heard(kinds.CronJobs, w.now)
	w.pass(freshness.StaleAfter - time.Second)
	w.upsert(jobs(time.Minute, "a", "b")...)
	w.takes("b")
	w.done("b", deletion.Refused)
	w.pass(time.Second)
	w.decided("b", policy.Hold, policy.ReasonUnobserved)
	if next, ok := w.Next(); ok && !next.After(w.now) {
		t.Errorf("the next time is %s, but that is in the past", next)
	}
	w.Heard(gc.ResourceJobs, w.now)
	w.pass(time.Minute)
	w.takes("b")
}

// quota returns a ResourceQuota that allows n Jobs.
func quota(n int64) *memory.Quota {
	return memory.QuotaOf(&corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: testbuilders.Home, Name: "q", UID: types.UID("uid-q"), ResourceVersion: fmt.Sprint(n)},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/jobs.batch": *resource.NewQuantity(n, resource.DecimalSI)}},
	})
}

func TestQuotasChangeLimits(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("half", "").For(gc.ResourceJobs).WithoutTTL().KeepingPercent(50)))
	quota := func(n int64) *memory.Quota {
		q := quota(n)
		q.ResourceVersion = w.next()
		return q
	}
	w.upsert(jobs(time.Minute, "a", "b", "c")...)
	w.takes()
	w.ReplaceQuotas(nil, w.now)
	w.takes()
	if got := w.report("p").WithoutQuota; len(got) != 1 || got[0] != "count/jobs.batch" {
		t.Errorf("without quota: %q", got)
	}
	w.SetQuota(quota(6), w.now)
	w.takes()
	w.SetQuota(quota(5), w.now) // Half of it is two, rounded down.
	w.takes("c")
	w.done("c", deletion.Conflict)
	w.SetQuota(quota(6), w.now)
	w.pass(time.Minute)
	w.decided("c", policy.Keep, policy.ReasonWithinCapacity)
	w.RemoveQuota(quota(6), w.now)
	w.decided("c", policy.Keep, policy.ReasonNever) // Nothing limits it now.
	w.upsert(jobs(time.Minute, "d", "e")...)
	w.takes()
}

// TestDeletedObjectsTakeNoShareOfANewGeneration: objects that one generation of a ceiling has deleted, or will delete, take no share under
// the next generation, which keeps as many of the others as if it were the first.
func TestDeletedObjectsTakeNoShareOfANewGeneration(t *testing.T) {
	for name, c := range map[string]struct {
		most int64
		gone bool // whether the deleted object is removed already
		want int  // how many are due under the next generation
	}{
		"the same total, to go":  {5, false, 2},
		"the same total, gone":   {5, true, 2},
		"a larger total, to go":  {6, false, 1},
		"a larger total, gone":   {6, true, 1},
		"a smaller total, to go": {4, false, 3},
		"a smaller total, gone":  {4, true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.clusterPolicy(jobCeiling(1, 5))
			w.fill("x", 4)
			w.fill("y", 4)
			w.confirmFresh()
			w.takes("x-3", "y-2", "y-3") // Of five, the first namespace by name keeps three.
			w.done("x-3", deletion.Accepted)
			if c.gone {
				w.removed("x-3")
			}
			for _, due := range []string{"y-2", "y-3"} {
				w.Release(w.orders[due], w.now)
			}
			if got := len(w.Due()); got != 2 {
				t.Errorf("%d are due before, not 2", got)
			}
			w.clusterPolicy(jobCeiling(2, c.most))
			w.confirmFresh()
			if got := len(w.Due()); got != c.want {
				t.Errorf("%d are due under the next generation, not %d", got, c.want)
			}
		})
	}
}

// TestPreviewsOfJobsAndPods: a Preview policy reports the objects of both resources that it would delete.
func TestPreviewsOfJobsAndPods(t *testing.T) {
	w := newWorld(t, ttlPolicy("0s", 1).Preview())
	w.upsert(job(time.Minute, "job"), testbuilders.Pod("pod").Succeeded(w.now.Add(-time.Minute)).Fact())
	for _, name := range []string{"job", "pod"} {
		previews := w.Records.Get(w.facts[name].UID).Previews()
		if len(previews) != 1 || previews[0].Decision().Action != policy.Delete {
			t.Errorf("%s: previews %+v", name, previews)
		}
	}
}

// TestOutsideCapacity: objects that a limit by number does not count are kept, and the explanation says why no limit counts them.
func TestOutsideCapacity(t *testing.T) {
	perOwner := testbuilders.Rule("owners", "").WithoutTTL().Keeping(1)
	perOwner.Capacity().Per = gc.CapacityPerOwner
	perLabel := testbuilders.Rule("branches", "").WithoutTTL().Keeping(1)
	perLabel.Capacity().Per, perLabel.Capacity().LabelKey = gc.CapacityPerLabel, "branch"
	all := testbuilders.Rule("all", "").WithoutTTL().Keeping(1)
	x := func() *testbuilders.JobBuilder {
		return testbuilders.Job("x").Complete(testbuilders.Now.Add(-time.Hour))
	}
	for name, c := range map[string]struct {
		rule *testbuilders.RuleBuilder
		x    *testbuilders.JobBuilder
		want string
	}{
		"no controller": {perOwner, x(), `it has no controller, and rule "owners" of CleanupPolicy "p" counts the objects of each controller`},
		"no label":      {perLabel, x(), `it has no label "branch", and rule "branches" of CleanupPolicy "p" counts the objects of each value`},
		"an unknown controller": {all, x().ControlledBy("example.com/v1", "Thing", "t"),
			"OwnerActive: Thing/t is of the kind Thing.example.com, which the cluster does not serve"},
		"a malformed annotation": {all, x().TTL("2 hours"), "InvalidAnnotation: annotation gc.winnow.dev/ttl"},
		"an annotation":          {all, x().TTL("1d"), `its annotations keep it longer than rule "all" of CleanupPolicy "p" may`},
		"a finish in the future": {all, testbuilders.Job("x").Complete(testbuilders.Now.Add(time.Hour)), "it counts from its finish, which is in the future: "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, testbuilders.Policy("p").Rules(c.rule))
			w.upsert(c.x.Fact())
			w.decided("x", policy.Keep, policy.ReasonOutsideCapacity)
			if got, want := w.candidate("x").Status.Message, "It is kept, because no limit counts it: "+c.want; !strings.HasPrefix(got, want) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			w.counts("p", counts{candidates: 1})
			w.policy(testbuilders.Policy("q").Default("never"))
			w.decided("x", policy.Keep, policy.ReasonNever)
		})
	}
}

// TestAConditionThatFailsHoldsForever: if the condition of a rule that keeps objects forever fails, it is not known whether the rule
// matches.
func TestAConditionThatFailsHoldsForever(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("1h").Rules(testbuilders.Rule("keep", "never").If("object.metadata.labels.app == 'x'")))
	f := job(2*time.Hour, "bare")
	w.withVersions(f)
	w.facts[f.Name] = f
	w.Upsert(w.observed(f), w.now)
	w.decided("bare", policy.Hold, policy.ReasonExpressionError)
	w.counts("p", counts{candidates: 1, due: 1, held: 1})
	s := w.candidate("bare").Status
	if s.State != gc.CandidateHeld || s.TTL != "" || s.Policies[0].KeepsUntil != "" || !strings.Contains(s.Message, `match condition "c0" of rule "keep"`) {
		t.Errorf("got %+v", s)
	}
}
