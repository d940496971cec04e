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

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/objects/references"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// TestUsage: referrers, objects and policies come and go, sources fail, marks are stored, and the engine starts again. After each step it
// must decide for each ConfigMap like a model that looks at everything again.
func TestUsage(t *testing.T) {
	testbuilders.Checks(t, 200)
	testbuilders.Steps(t, 60)
	rapid.Check(t, func(t *rapid.T) {
		s := &usageRun{
			now: testbuilders.Now, policies: map[string]bool{}, objects: map[int]*usageObjectRun{}, stored: map[types.NamespacedName]*memory.Marks{},
			referrers: map[string]map[string]int{"pods": {}, "widgets.example.com": {}}, failing: map[string]bool{}, unlisted: map[string]bool{},
			budget: rapid.SampledFrom([]int{0, 2}).Draw(t, "budget"),
		}
		s.start(t)
		t.Repeat(map[string]func(*rapid.T){
			"referrer": s.referrer, "referrer again": s.referrer, "object": s.object, "object again": s.object, "policy": s.policy,
			"failing": s.fail, "relist": s.relist, "time": s.time, "store": s.store, "restart": s.start, "": s.check,
		})
	})
}

// TestUsageDetail: for policies of both modes, candidates and reports say why the referrers of an object are not known.
func TestUsageDetail(t *testing.T) {
	for _, mode := range []gc.PolicyMode{gc.ModeEnforce, gc.ModePreview} {
		s := &usageRun{
			now: testbuilders.Now, policies: map[string]bool{}, objects: map[int]*usageObjectRun{}, stored: map[types.NamespacedName]*memory.Marks{},
			referrers: map[string]map[string]int{"pods": {}}, failing: map[string]bool{"pods": true}, unlisted: map[string]bool{},
			engine: newDriver(memory.Config{HoldAbove: -1, HoldAboveTotal: -1}),
		}
		s.observe()
		p := s.policyIn("n1")
		p.Spec.Mode = mode
		s.engine.SetPolicy(p, s.now)
		allListed(s.engine)
		s.create(0)
		s.listReferrers()
		s.cover()
		const want = "pods cannot be observed: forbidden"
		all := allCandidates()
		all.Resources = sets.New(gc.ResourceConfigMaps)
		found := s.engine.find(all)
		if len(found.Items) != 1 || !strings.Contains(found.Items[0].Status.Message, want) {
			t.Errorf("%s: got candidates %+v, want one with %q", mode, found.Items, want)
		}
		reports := s.engine.Reports("n1")
		if len(reports) != 1 || len(reports[0].HeldByReason) != 1 || reports[0].HeldByReason[0].Detail != want {
			t.Errorf("%s: got reports %+v, want one with %q", mode, reports, want)
		}
	}
}

const (
	usageTTL     = 10 * time.Minute
	usageObjects = 8
)

var usageNamespaces = []string{"n1", "n2"}

type usageRun struct {
	now       time.Time
	engine    *driver
	budget    int
	version   int
	policies  map[string]bool // by namespace
	objects   map[int]*usageObjectRun
	referrers map[string]map[string]int // by source and name: the number of the object
	// failing are the sources that cannot be watched, and unlisted the sources that were not listed since the start.
	failing, unlisted map[string]bool
	unstored          sets.Set[string] // the namespaces with marks that may be out of date
	stored            map[types.NamespacedName]*memory.Marks
}

type usageObjectRun struct {
	fact      *lifecycle.Fact
	since     time.Time
	seenInUse bool
}

func usageHome(i int) string { return usageNamespaces[i%2] }

func (s *usageRun) next() string {
	s.version++
	return fmt.Sprint(s.version)
}

// start starts the engine, or starts it again with the stored marks.
func (s *usageRun) start(t *rapid.T) {
	s.unstored = sets.New[string]()
	s.engine = newDriver(memory.Config{HoldAbove: -1, HoldAboveTotal: -1})
	if s.budget > 0 {
		s.engine.setBudget(s.budget)
	}
	s.observe()
	for _, o := range s.objects {
		o.since, o.seenInUse = s.storedSince(o.fact.UID), false
	}
	for _, first := range rapid.Permutation([]func(){s.setMarks, s.setPolicies, s.listReferrers}).Draw(t, "order") {
		first()
		s.store(t) // No stored mark may be lost before everything is known.
		s.cover()
		s.store(t)
	}
}

// observe makes an engine observe the cluster for the first time.
func (s *usageRun) observe() {
	s.engine.SetKinds(drawnKinds, s.now)
	for _, resource := range drawnKinds.Deletable() {
		k, _ := drawnKinds.For(resource)
		s.engine.StartObserving(k)
	}
	s.engine.ReplaceCronJobs(nil, s.now)
	for _, ns := range usageNamespaces {
		s.engine.SetNamespace(testbuilders.Namespace(ns, s.next()), s.now)
	}
}

func (s *usageRun) setMarks() {
	for _, m := range s.stored {
		s.engine.SetMarks(m, s.now)
	}
	s.engine.MarksListed(sets.KeySet(s.stored), s.now)
}

func (s *usageRun) setPolicies() {
	for _, ns := range usageNamespaces {
		if s.policies[ns] {
			s.setPolicy(ns)
		}
	}
	allListed(s.engine)
}

func (s *usageRun) listReferrers() {
	s.engine.SetReferrerSources(slices.Sorted(maps.Keys(s.referrers)), "", s.now)
	for source := range s.referrers {
		if s.unlisted[source] = s.failing[source]; s.failing[source] {
			s.engine.ObservingReferrers(source, errTest, s.now)
			continue
		}
		s.list(source)
	}
}

// list lists the referrers of a source.
func (s *usageRun) list(source string) {
	s.engine.BeginReferrers(source, s.now)
	for name := range s.referrers[source] {
		s.setReferrer(source, name)
	}
	s.engine.EndReferrers(source, s.now)
}

func (s *usageRun) setReferrer(source, name string) {
	i := s.referrers[source][name]
	s.engine.SetReferring([]knowledge.Referring{{
		Source: source, Referrer: references.Referrer{UID: types.UID(source + name), Namespace: usageHome(i), Name: name},
		Keys: references.Keys([]references.Reference{{To: references.ConfigMaps, Namespace: usageHome(i), Name: fmt.Sprint("cm-", i)}}),
	}}, s.now)
}

// cover lists everything that is covered and not listed yet.
func (s *usageRun) cover() {
	for s.engine.Step(s.now) {
	}
	for name, covering := range s.engine.Coverage()[gc.ResourceConfigMaps] {
		if s.engine.Namespaces[name].Listed[gc.ResourceConfigMaps] == covering {
			continue
		}
		m := s.engine.BeginMerge(gc.ResourceConfigMaps, name)
		for _, o := range s.objects {
			if o.fact.Namespace == name {
				s.engine.add(m, []*facts.Compact{facts.Compress(o.fact)}, s.now)
			}
		}
		m.End(true, s.now)
	}
}

func (s *usageRun) policyIn(ns string) *gc.CleanupPolicy {
	p := testbuilders.Policy("p").Version(s.next()).Rules(
		testbuilders.Rule("r", "10m").For(gc.ResourceConfigMaps).Labelled("app", "web").AfterUnused()).Obj()
	p.Namespace, p.UID = ns, types.UID("p-"+ns)
	return p
}

func (s *usageRun) setPolicy(ns string) { s.engine.SetPolicy(s.policyIn(ns), s.now) }

func (s *usageRun) policy(t *rapid.T) {
	ns := rapid.SampledFrom(usageNamespaces).Draw(t, "namespace")
	if s.policies[ns] = !s.policies[ns]; s.policies[ns] {
		s.setPolicy(ns)
		for _, o := range s.objects {
			if o.fact.Namespace == ns {
				o.since, o.seenInUse = s.storedSince(o.fact.UID), false
			}
		}
	} else {
		s.engine.RemovePolicy(s.policyIn(ns), s.now)
	}
	s.cover()
}

func (s *usageRun) object(t *rapid.T) {
	i := rapid.IntRange(0, usageObjects-1).Draw(t, "object")
	if o := s.objects[i]; o != nil {
		delete(s.objects, i)
		s.engine.Remove(facts.Compress(o.fact), s.now)
		return
	}
	s.create(i)
}

func (s *usageRun) create(i int) {
	s.next()
	f := &lifecycle.Fact{
		Resource: gc.ResourceConfigMaps, Namespace: usageHome(i), Name: fmt.Sprint("cm-", i), UID: types.UID(fmt.Sprint("uid-", s.version)),
		ResourceVersion: uint64(s.version), Labels: labels.Set{"app": "web"}, Created: s.now.Add(-time.Hour),
	}
	s.objects[i] = &usageObjectRun{fact: f}
	s.engine.Upsert(facts.Compress(f), s.now)
}

func (s *usageRun) referrer(t *rapid.T) {
	source := rapid.SampledFrom(slices.Sorted(maps.Keys(s.referrers))).Draw(t, "source")
	name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "referrer")
	if s.unlisted[source] {
		t.Skip("no events come from there")
	}
	if _, ok := s.referrers[source][name]; ok && rapid.Bool().Draw(t, "remove") {
		delete(s.referrers[source], name)
		s.engine.RemoveReferrer(source, types.UID(source+name), s.now)
		return
	}
	s.referrers[source][name] = rapid.IntRange(0, usageObjects-1).Draw(t, "to")
	s.setReferrer(source, name)
}

var errTest = fmt.Errorf("forbidden")

func (s *usageRun) fail(t *rapid.T) {
	source := rapid.SampledFrom(slices.Sorted(maps.Keys(s.referrers))).Draw(t, "source")
	if s.failing[source] = !s.failing[source]; s.failing[source] {
		s.engine.ObservingReferrers(source, errTest, s.now)
	} else {
		s.engine.ObservingReferrers(source, nil, s.now) // The watch continues.
	}
}

func (s *usageRun) relist(t *rapid.T) {
	source := rapid.SampledFrom(slices.Sorted(maps.Keys(s.referrers))).Draw(t, "source")
	s.list(source)
	s.failing[source], s.unlisted[source] = false, false
}

func (s *usageRun) time(t *rapid.T) {
	s.now = s.now.Add(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, 5 * time.Minute, 10 * time.Minute}).Draw(t, "passes"))
	for s.engine.Expire(s.now) {
	}
}

// store stores the marks of a namespace, and the engine observes them.
func (s *usageRun) store(t *rapid.T) {
	s.unstored.Insert(s.engine.TakeUnmarked()...)
	namespace := rapid.SampledFrom(usageNamespaces).Draw(t, "namespace")
	if !s.unstored.Has(namespace) {
		return
	}
	all, known := s.engine.MarksToStore(namespace, s.now)
	if known {
		s.unstored.Delete(namespace)
	}
	for _, m := range all {
		if m.ResourceVersion = s.next(); len(m.Unused) == 0 {
			delete(s.stored, m.NamespacedName)
			s.engine.RemoveMarks(m.NamespacedName, s.now)
			continue
		}
		s.stored[m.NamespacedName] = m
		s.engine.SetMarks(m, s.now)
	}
}

func (s *usageRun) storedSince(uid types.UID) time.Time {
	for _, m := range s.stored {
		if since, ok := m.Unused[uid]; ok {
			return since
		}
	}
	return time.Time{}
}

// used reports whether anything refers to an object.
func (s *usageRun) used(i int) bool {
	for source, to := range s.referrers {
		if s.unlisted[source] {
			continue
		}
		if slices.Contains(slices.Collect(maps.Values(to)), i) {
			return true
		}
	}
	return false
}

func (s *usageRun) known() bool {
	for source := range s.referrers {
		if s.failing[source] || s.unlisted[source] {
			return false
		}
	}
	return true
}

// expected returns the expected decision for an object.
func (s *usageRun) expected(i int, o *usageObjectRun) policy.Decision {
	switch {
	case s.used(i):
		return policy.Decision{Action: policy.Ignore, Reason: policy.ReasonInUse}
	case o.since.IsZero():
		return policy.Decision{Action: policy.Hold, Reason: policy.ReasonReferrersUnknown}
	}
	at := gc.WholeSecond(o.since.Add(usageTTL))
	switch {
	case s.now.Before(at):
		return policy.Decision{Action: policy.Wait, Reason: policy.ReasonNotDue, At: at}
	case !s.known():
		return policy.Decision{Action: policy.Hold, Reason: policy.ReasonReferrersUnknown, At: at}
	}
	return policy.Decision{Action: policy.Delete, Reason: policy.ReasonExpired, At: at}
}

func (s *usageRun) check(t *rapid.T) {
	for s.engine.Step(s.now) {
	}
	for i, o := range s.objects {
		rec := s.engine.Records.Get(o.fact.UID)
		if !s.policies[o.fact.Namespace] {
			if rec != nil {
				t.Fatalf("%s is tracked without a policy", o.fact.Name)
			}
			continue
		}
		switch {
		case s.used(i):
			o.since, o.seenInUse = time.Time{}, true
		case o.since.IsZero() && s.known():
			o.since = s.now
		}
		want := s.expected(i, o)
		if got := rec.Decision(); got.Action != want.Action || got.Reason != want.Reason || !got.At.Equal(want.At) {
			t.Fatalf("%s: got %+v, want %+v", o.fact.Name, got, want)
		}
		if m := s.storedSince(o.fact.UID); !o.since.IsZero() && !m.IsZero() && !m.Equal(o.since) && !s.unstored.Union(s.engine.Unmarked).Has(o.fact.Namespace) {
			t.Fatalf("%s is unused since %s, the mark says %s, and nothing will change that", o.fact.Name, o.since, m)
		}
	}
}

// TestReferrersInSteps: between any few keys of a large object that comes, changes or goes, others may get the lock.
func TestReferrersInSteps(t *testing.T) {
	d, turns := newDriver(memory.Config{}), 0
	d.interrupt = func() { turns++ }
	d.SetReferrerSources([]string{"pods"}, "", testbuilders.Now)
	set := func(first, n int) {
		keys := make([]references.Key, n)
		for i := range keys {
			keys[i] = references.Key(4 * (first + i))
		}
		d.SetReferring([]knowledge.Referring{{Source: "pods", Referrer: references.Referrer{UID: "u", Namespace: "ns", Name: "u"}, Keys: keys}}, testbuilders.Now)
	}
	d.setBudget(1)
	const keys = 100 * knowledge.StepKeys
	for _, tc := range []struct {
		what string
		do   func()
		want int // interruptions at least
	}{
		{"comes", func() { set(0, keys) }, 98},
		{"changes", func() { set(keys, keys) }, 198},
		{"has too many for its namespace", func() { set(0, references.MaxKeys+1) }, references.MaxKeys/knowledge.StepKeys + 98},
		{"has few again", func() { set(0, keys) }, 98},
		{"goes", func() { d.RemoveReferrer("pods", "u", testbuilders.Now) }, 98},
	} {
		turns = 0
		if tc.do(); turns < tc.want || d.StepReferrers(testbuilders.Now) {
			t.Errorf("a referrer that %s was taken in with %d interruptions, want %d", tc.what, turns, tc.want)
		}
	}
}
