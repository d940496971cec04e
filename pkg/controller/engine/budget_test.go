// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

// TestBudget makes two engines observe the same events: one has no budget, and the other has a budget of a few objects and is interrupted.
// The second engine must never delete an object that the first would keep, and once it has done all its work, both must have the same
// decisions.
func TestBudget(t *testing.T) {
	testbuilders.Checks(t, 300)
	testbuilders.Steps(t, 80)
	rapid.Check(t, func(t *rapid.T) {
		s := newBudgetRun(t)
		t.Repeat(map[string]func(*rapid.T){
			"object":         s.object,
			"object again":   s.object,
			"relist":         s.relist,
			"policy":         s.policy,
			"cluster policy": s.clusterPolicy,
			"namespace":      s.namespace,
			"quota":          s.quota,
			"time":           s.time,
			"step":           s.step,
			"step again":     s.step,
			"take":           s.take,
			"rest":           s.rest,
		})
		s.rest(t)
	})
}

type budgetRun struct {
	now                time.Time
	version            int
	unlimited, limited *driver
	objects            map[int]*lifecycle.Fact
	usages             map[types.UID]lifecycle.Usage
	generations        map[string]int64
	wrong              []string // objects that the second engine would have deleted while it was interrupted
}

func newBudgetRun(t *rapid.T) *budgetRun {
	s := &budgetRun{now: testbuilders.Now, objects: map[int]*lifecycle.Fact{}, generations: map[string]int64{}, usages: map[types.UID]lifecycle.Usage{}}
	s.unlimited, s.limited = newDriver(memory.Config{HoldAbove: -1, HoldAboveTotal: -1}), newDriver(memory.Config{HoldAbove: -1, HoldAboveTotal: -1})
	s.limited.setBudget(rapid.IntRange(1, 4).Draw(t, "budget"))
	s.both(func(t *driver) {
		t.CopiedUsages = s.usages
		t.ReplaceNamespaces(nil, "", s.now)
		t.ReplacePolicies(nil, "", s.now)
		t.ReplaceClusterPolicies(nil, "", s.now)
		t.ReplaceCronJobs(nil, s.now)
		t.ReplaceQuotas(nil, s.now)
		t.MarksListed(nil, s.now)
	})
	for _, name := range model.DrawnNamespaces {
		s.both(func(t *driver) { t.SetNamespace(testbuilders.Namespace(name, s.next()), s.now) })
	}
	for range 3 {
		s.policy(t)
		s.clusterPolicy(t)
	}
	for i := range model.DrawnObjects {
		s.draw(t, i)
	}
	s.list(gc.ResourceJobs)
	s.list(gc.ResourcePods)
	s.limited.interrupt = s.takeAll
	return s
}

// draw draws an object.
func (s *budgetRun) draw(t *rapid.T, i int) *lifecycle.Fact {
	f := model.DrawObject(t, s.now, i)
	s.objects[i], s.usages[f.UID] = f, f.Usage
	return f
}

func (s *budgetRun) both(do func(*driver)) {
	do(s.unlimited)
	do(s.limited)
	for resource, namespaces := range s.unlimited.Coverage() { // Everything that is newly covered is listed at once.
		for name := range namespaces {
			for _, t := range []*driver{s.unlimited, s.limited} {
				if resource == kinds.ResourceQuotas || t.Namespaces[name].Listed[resource] == t.Namespaces[name].Covered[resource] {
					continue
				}
				m := t.BeginMerge(resource, name)
				for _, f := range s.objects {
					if f.Resource == resource && f.Namespace == name {
						t.add(m, []*facts.Compact{t.observed(f)}, s.now)
					}
				}
				m.End(true, s.now)
			}
		}
	}
}

func (s *budgetRun) next() string {
	s.version++
	return strconv.Itoa(s.version)
}

func (s *budgetRun) list(resource string) {
	s.version += model.DrawnObjects
	s.both(func(t *driver) {
		var all []*facts.Compact
		for _, f := range s.objects {
			if f.Resource == resource {
				all = append(all, t.observed(f))
			}
		}
		t.Replace(resource, all, uint64(s.version), s.now)
	})
}

func (s *budgetRun) relist(t *rapid.T) {
	s.list(rapid.SampledFrom([]string{gc.ResourceJobs, gc.ResourcePods}).Draw(t, "resource"))
}

func (s *budgetRun) object(t *rapid.T) {
	i := rapid.IntRange(0, model.DrawnObjects-1).Draw(t, "object")
	if f := s.objects[i]; f != nil && rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
		delete(s.objects, i)
		s.both(func(t *driver) { t.Remove(facts.Compress(f), s.now) })
		return
	}
	f := s.draw(t, i)
	s.next()
	f.ResourceVersion = uint64(s.version)
	s.both(func(t *driver) { t.Upsert(t.observed(f), s.now) })
}

// generation returns the next generation of a policy that is created, changed or removed; 0 if it is removed.
func (s *budgetRun) generation(t *rapid.T, policy string) int64 {
	if s.generations[policy] > 0 && rapid.IntRange(0, 4).Draw(t, "delete") == 0 {
		s.generations[policy] = 0
	} else {
		s.generations[policy]++
	}
	return s.generations[policy]
}

func (s *budgetRun) policy(t *rapid.T) {
	ns := rapid.SampledFrom(model.DrawnNamespaces).Draw(t, "namespace")
	p := model.DrawPolicy(t, ns, rapid.SampledFrom(model.DrawnPolicies).Draw(t, "name"))
	p.Generation, p.ResourceVersion = s.generation(t, ns+"/"+p.Name), s.next()
	p.Spec.Suspend = false // Which policy decides for a due object depends on the objects that are not counted yet.
	withoutMatched(p.Spec.Rules)
	s.both(func(t *driver) {
		if p.Generation == 0 {
			t.RemovePolicy(p, s.now)
		} else {
			t.SetPolicy(p, s.now)
		}
	})
}

// withoutMatched makes rules with after: Matched count from the creation: an engine that is interrupted sees later that they match. TestEngine
// has engines with a budget and such rules.
func withoutMatched(rules []gc.CleanupRule) {
	for i := range rules {
		if rules[i].After == gc.AfterMatched {
			rules[i].After = gc.AfterCreated
		}
	}
}

func (s *budgetRun) clusterPolicy(t *rapid.T) {
	p := model.DrawClusterPolicy(t, rapid.SampledFrom(model.DrawnClusterPolicies).Draw(t, "name"))
	p.Generation, p.ResourceVersion = s.generation(t, p.Name), s.next()
	p.Spec.Suspend = false
	withoutMatched(p.Spec.Rules)
	if p.Spec.Guardrails != nil {
		p.Spec.Guardrails.HoldAbove = nil // The two engines assess other changes together.
	}
	s.both(func(t *driver) {
		if p.Generation == 0 {
			t.RemoveClusterPolicy(p, s.now)
		} else {
			t.SetClusterPolicy(p, s.now)
		}
	})
}

func (s *budgetRun) namespace(t *rapid.T) {
	m := testbuilders.Namespace(rapid.SampledFrom(model.DrawnNamespaces).Draw(t, "namespace"), s.next())
	if rapid.IntRange(0, 9).Draw(t, "remove") == 0 {
		s.both(func(t *driver) { t.RemoveNamespace(m, s.now) })
		return
	}
	m.Labels = model.DrawNamespace(t).Labels
	s.both(func(t *driver) { t.SetNamespace(m, s.now) })
}

func (s *budgetRun) quota(t *rapid.T) {
	q := model.DrawQuota(
		t,
		rapid.SampledFrom(model.DrawnNamespaces).Draw(t, "namespace"),
		rapid.SampledFrom(model.DrawnQuotas).Draw(t, "name"),
	)
	s.both(func(t *driver) { t.SetQuota(memory.QuotaOf(q), s.now) })
}

func (s *budgetRun) time(t *rapid.T) {
	s.now = s.now.Add(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour}).Draw(t, "passes"))
	s.both(func(t *driver) { t.Expire(s.now) })
}

func (s *budgetRun) step(*rapid.T) { s.limited.Step(s.now) }

// take makes the second engine delete everything that it can.
func (s *budgetRun) take(t *rapid.T) {
	s.takeAll()
	if len(s.wrong) > 0 {
		t.Fatal(s.wrong)
	}
}

// takeAll takes all orders of the second engine, and records the objects that the first engine would not delete.
func (s *budgetRun) takeAll() {
	for _, t := range []*driver{s.unlimited, s.limited} {
		read := freshness.Contents{Revisions: revisions{}}
		r := freshness.ConsistentRead{Began: s.now, Policies: read, ClusterPolicies: read, Namespaces: read}
		t.Fresh.Confirm(r, func(freshness.Collection, revisions) bool { return true })
	}
	var orders []*deletion.Order
	for o, ok := s.limited.Take(s.now); ok; o, ok = s.limited.Take(s.now) {
		if rec := s.unlimited.Records.Get(o.Fact.UID); rec == nil || !rec.Decision().Ready() {
			s.wrong = append(s.wrong, fmt.Sprintf("deletes %s, but the other engine decided %+v", o.Fact.UID, rec))
		}
		orders = append(orders, o)
	}
	for _, o := range orders {
		s.limited.Release(o, s.now)
	}
}

// rest finishes the work of the second engine, and compares all decisions.
func (s *budgetRun) rest(t *rapid.T) {
	for s.limited.Step(s.now) {
	}
	s.take(t)
	for more := true; more; more = s.limited.HasWork() { // Lists at the end may make more work.
		s.both(func(t *driver) {
			for t.Expire(s.now) {
			}
			for t.Step(s.now) { // One object may put many others above a limit.
			}
		})
	}
	if got, want := s.decisions(s.limited), s.decisions(s.unlimited); !slices.Equal(got, want) {
		t.Fatalf("decided\n%v\nwant\n%v", got, want)
	}
	if got, want := s.limited.Queue.Waiting(), s.unlimited.Queue.Waiting(); got != want || s.limited.Queue.Paused() > 0 {
		t.Fatalf("%d wait to be deleted, want %d; %d namespaces are paused", got, want, s.limited.Queue.Paused())
	}
}

func (s *budgetRun) decisions(t *driver) []string {
	var out []string
	for rec := range t.Records.All() {
		answer := answerOf(rec.Resolution, rec.Decision())
		answer.At = time.Time{} // The engines do not see an object above a limit at the same time.
		out = append(out, fmt.Sprintf("%s %+v", rec.UID(), answer))
	}
	slices.Sort(out)
	return out
}

// TestReportsWaitForStep: while objects of a namespace wait to be settled again, its report would be incomplete and as expensive as the
// full one, so the namespace is not to be reported yet.
func TestReportsWaitForStep(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("30d"), testbuilders.Policy("p").In("other").Default("30d"))
	w.clusterPolicy(guardrailPolicy(1, gc.Guardrails{}))
	w.fill(testbuilders.Home, 4)
	w.fill("other", 1)
	w.TakeUnwritten()
	for _, ok := w.PopUrgent(); ok; _, ok = w.PopUrgent() {
	}
	w.setBudget(2)
	w.policy(testbuilders.Policy("p").Default("20d").Generation(2))
	w.upsert(testbuilders.Job("elsewhere").In("other").Complete(w.now).Fact())
	if got := w.TakeUnwritten(); !slices.Equal(got, []string{"other"}) {
		t.Errorf("while objects in %s are settled, %v are to be reported", testbuilders.Home, got)
	}
	if ns, ok := w.PopUrgent(); ok {
		t.Errorf("while objects in %s are settled, %q is urgent", testbuilders.Home, ns)
	}
	w.stepAll()
	if got := w.TakeUnwritten(); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"", testbuilders.Home}) {
		t.Errorf("once they were settled, %v are to be reported", got)
	}
	if ns, ok := w.PopUrgent(); !ok || ns != testbuilders.Home {
		t.Errorf("once they were settled, %q is urgent: %v", ns, ok)
	}
}

// TestReportsAreRepeatedAfterStep: a namespace that was reported while objects elsewhere were still being settled must be reported again,
// because the change is assessed only once all are settled.
func TestReportsAreRepeatedAfterStep(t *testing.T) {
	names := []string{testbuilders.Home, "other"}
	changed := func(ns string, generation int64) *testbuilders.PolicyBuilder {
		return testbuilders.Policy("p").In(ns).Default("30d").Generation(generation)
	}
	w := newWorld(t, changed(names[0], 1), changed(names[1], 1))
	for _, ns := range names {
		w.fill(ns, 4)
	}
	w.TakeUnwritten()
	w.setBudget(1)
	for _, ns := range names {
		w.policy(changed(ns, 2))
	}
	uncleared, read := false, map[string]report.Report{}
	for more := true; more; {
		more = w.Step(w.now)
		for _, ns := range w.TakeUnwritten() {
			for _, r := range w.Reports(ns) {
				uncleared, read[ns] = uncleared || r.Unassessed, r
			}
		}
	}
	for _, ns := range names {
		if r := read[ns]; r.Unassessed || r.Candidates != 4 || r.Generation != 2 {
			t.Errorf("%s was last reported as %+v", ns, r)
		}
	}
	if !uncleared {
		t.Error("no report was read before all was assessed")
	}
}
