// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// matchedRule deletes ConfigMaps an hour after they were labelled superseded.
func matchedRule() *testbuilders.RuleBuilder {
	return testbuilders.Rule("r", "1h").For(gc.ResourceConfigMaps).Labelled("superseded", "yes").AfterMatched()
}

func matchedPolicy(generation int64, rules ...*testbuilders.RuleBuilder) *testbuilders.PolicyBuilder {
	if len(rules) == 0 {
		rules = append(rules, matchedRule())
	}
	return testbuilders.Policy("p").Rules(rules...).Generation(generation)
}

// newMatchedWorld is a world with a policy, p. Everything is listed, marks too.
func newMatchedWorld(t *testing.T, rules ...*testbuilders.RuleBuilder) *unusedWorld {
	w := &unusedWorld{world: newWorld(t), stored: map[types.NamespacedName]*memory.Marks{}}
	w.startMatched(rules...)
	w.MarksListed(nil, w.now)
	return w
}

func (w *unusedWorld) startMatched(rules ...*testbuilders.RuleBuilder) {
	w.observeKinds()
	w.policy(matchedPolicy(1, rules...))
	w.confirmFresh()
}

func (w *unusedWorld) observeKinds() {
	w.SetKinds(drawnKinds, w.now)
	for _, resource := range drawnKinds.Deletable() {
		k, _ := drawnKinds.For(resource)
		w.StartObserving(k)
	}
}

// restartEmpty replaces the engine with a new one that knows nothing yet.
func (w *unusedWorld) restartEmpty() {
	next := emptyWorld(w.T)
	next.now, next.version, next.Config.HoldAbove = w.now, w.version, w.Config.HoldAbove
	w.world = next
	w.observeKinds()
}

// restartMatched replaces the engine with a new one that observes the same objects; list lists the marks.
func (w *unusedWorld) restartMatched(rules ...*testbuilders.RuleBuilder) {
	all := w.facts
	w.restartEmpty()
	w.observePolicy(matchedPolicy(1, rules...))
	w.observeNamespace(testbuilders.Home)
	w.begin()
	w.listCovered()
	w.confirmFresh()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		w.upsert(all[name])
	}
}

// superseded is a ConfigMap that the rule matches, and current one that it does not match.
func superseded(name string) *lifecycle.Fact {
	f := configMap(name)
	f.Labels = labels.Set{"superseded": "yes"}
	return f
}

func current(name string) *lifecycle.Fact {
	f := configMap(name)
	f.Labels = labels.Set{}
	return f
}

// matchedFor fails unless the rule has matched an object for so long.
func (w *unusedWorld) matchedFor(name string, ago time.Duration) {
	w.Helper()
	rules := w.Records.Get(w.facts[name].UID).Matching().Rules
	if len(rules) != 1 || !rules[0].Since.Equal(w.now.Add(-ago)) {
		w.Fatalf("%s: got %+v, want one rule since %s ago", name, rules, ago)
	}
}

// TestMatched: the time begins when the rule is seen to match, and anew when it matches again. A state of the object that changes nothing
// else does not matter.
func TestMatched(t *testing.T) {
	w := newMatchedWorld(t)
	w.upsert(superseded("a"), current("b"))
	w.pass(30 * time.Minute)
	w.upsert(superseded("a"), superseded("b"))
	c := w.candidate("a")
	if c.Status.After != gc.AfterMatched || !c.Status.Since.Time.Equal(testbuilders.Now) || !c.Status.DueTime.Time.Equal(testbuilders.Now.Add(time.Hour)) {
		t.Errorf("got %+v", c.Status)
	}
	w.pass(20 * time.Minute)
	w.upsert(current("b"))
	w.upsert(superseded("b"))
	w.pass(10 * time.Minute)
	w.takes("a")
	w.matchedFor("b", 10*time.Minute)
	w.pass(50 * time.Minute)
	w.takes("b")
}

// TestMatchedByAnotherRule: what changes which objects match starts the time anew, and nothing else does. So does an earlier rule that matches.
func TestMatchedByAnotherRule(t *testing.T) {
	for name, c := range map[string]struct {
		rules []*testbuilders.RuleBuilder
		kept  bool
	}{
		"ttl":         {[]*testbuilders.RuleBuilder{testbuilders.Rule("r", "2h").For(gc.ResourceConfigMaps).Labelled("superseded", "yes").AfterMatched()}, true},
		"limit":       {[]*testbuilders.RuleBuilder{matchedRule().Keeping(3)}, true},
		"later rule":  {[]*testbuilders.RuleBuilder{matchedRule(), testbuilders.Rule("s", "1m").For(gc.ResourceConfigMaps)}, true},
		"other rule":  {[]*testbuilders.RuleBuilder{testbuilders.Rule("s", "1h").For(gc.ResourceConfigMaps).Labelled("a", "b").AfterMatched(), matchedRule()}, true},
		"name":        {[]*testbuilders.RuleBuilder{testbuilders.Rule("s", "1h").For(gc.ResourceConfigMaps).Labelled("superseded", "yes").AfterMatched()}, false},
		"condition":   {[]*testbuilders.RuleBuilder{matchedRule().If("true")}, false},
		"selector":    {[]*testbuilders.RuleBuilder{testbuilders.Rule("r", "1h").For(gc.ResourceConfigMaps).Labelled("app", "x").AfterMatched()}, false},
		"first match": {[]*testbuilders.RuleBuilder{testbuilders.Rule("s", "1h").For(gc.ResourceConfigMaps).Labelled("app", "x").AfterMatched(), matchedRule()}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newMatchedWorld(t)
			f := superseded("a")
			f.Labels = labels.Set{"superseded": "yes", "app": "x"}
			w.evaluate(f)
			w.pass(30 * time.Minute)
			w.policy(matchedPolicy(2, c.rules...))
			w.evaluate(f)
			want := time.Duration(0)
			if c.kept {
				want = 30 * time.Minute
			}
			w.matchedFor("a", want)
			w.policy(matchedPolicy(3))
			w.evaluate(f)
			w.matchedFor("a", want)
		})
	}
}

// TestMatchedIsStored: a restart does not start the time anew, in whatever order things are listed, and marks go when nothing needs them.
func TestMatchedIsStored(t *testing.T) {
	w := newMatchedWorld(t)
	w.upsert(superseded("a"), superseded("b"), current("c"))
	w.takeUnmarked(testbuilders.Home)
	if got, known := w.MarksToStore(testbuilders.Home, w.now); len(got) > 0 || known {
		t.Errorf("matches are stored at once, or will not be stored: %v", got)
	}
	w.pass(time.Minute)
	w.store()
	w.wantMarks()
	if n := len(w.stored[marks("").NamespacedName].Matched); n != 2 {
		t.Fatalf("%d marks are stored, want 2", n)
	}
	w.pass(29 * time.Minute)
	w.restartMatched()
	if _, known := w.MarksToStore(testbuilders.Home, w.now); known {
		t.Fatal("marks are changed before they are known")
	}
	w.decided("a", policy.Hold, policy.ReasonFinishTimeUnknown)
	w.list()
	w.matchedFor("a", 30*time.Minute)
	w.matchedFor("b", 30*time.Minute)
	w.upsert(current("a"), superseded("c"))
	w.upsert(superseded("a"))
	w.matchedFor("a", 0) // The mark is still stored.
	w.pass(time.Minute)
	w.store()
	w.restartMatched()
	w.list()
	w.matchedFor("a", time.Minute)
	w.matchedFor("b", 31*time.Minute)
	w.removePolicy(matchedPolicy(1))
	w.store()
	if len(w.stored) != 0 {
		t.Errorf("these marks stay: %v", w.stored)
	}
}

// TestMatchedOnlyLater: once a replica has seen that the rule does not match, no earlier time counts, whatever is stored.
func TestMatchedOnlyLater(t *testing.T) {
	w := newMatchedWorld(t)
	w.upsert(superseded("a"))
	w.pass(time.Minute)
	w.store()
	former := *w.stored[marks("").NamespacedName]
	w.pass(30 * time.Minute)
	w.upsert(current("a"))
	w.upsert(superseded("a"))
	former.ResourceVersion = w.next() // A replica with an older view stores it again.
	w.SetMarks(&former, w.now)
	w.matchedFor("a", 0)
	later := former
	later.Matched = map[memory.MatchKey]memory.MatchMark{}
	for key := range former.Matched {
		later.Matched[key] = memory.MatchMark{Since: w.now.Add(time.Second)}
	}
	w.pass(time.Minute)
	later.ResourceVersion = w.next()
	w.SetMarks(&later, w.now)
	w.matchedFor("a", 59*time.Second)
}

// TestMatchesOfPreviews: where not all matches can be stored, those of Preview policies are not.
func TestMatchesOfPreviews(t *testing.T) {
	const most = 50_000
	w := newMatchedWorld(t)
	w.policy(testbuilders.Policy("preview").Preview().
		Rules(testbuilders.Rule("r", "1h").For(gc.ResourceConfigMaps).Labelled("superseded", "no").AfterMatched()))
	w.confirmFresh()
	for _, name := range names("b-", most) {
		f := configMap(name)
		f.Labels = labels.Set{"superseded": "no"}
		w.upsert(f)
	}
	w.pass(time.Minute)
	w.store()
	w.upsert(superseded("a"))
	w.pass(time.Minute)
	w.store()
	stored, ofA := 0, 0
	for _, m := range w.stored {
		stored += len(m.Matched)
		for key := range m.Matched {
			if key.UID == w.facts["a"].UID {
				ofA++
			}
		}
	}
	if stored != most || ofA == 0 {
		t.Errorf("%d matches are stored, %d of them of the object that is deleted", stored, ofA)
	}
}

// TestMarksOfMatchesStay: marks of objects that are not listed yet, or of rules that are not known yet, stay stored.
func TestMarksOfMatchesStay(t *testing.T) {
	w := newMatchedWorld(t)
	w.upsert(superseded("a"))
	w.pass(time.Minute)
	w.store()
	w.pass(29 * time.Minute)
	w.restartEmpty()
	w.list()
	w.observeNamespace(testbuilders.Home)
	for _, m := range must(w.MarksToStore(testbuilders.Home, w.now)) {
		t.Errorf("%s is changed before policies are listed: %v", m.Name, m.Matched)
	}
	w.observePolicy(matchedPolicy(1))
	w.begin()
	w.confirmFresh()
	for _, m := range must(w.MarksToStore(testbuilders.Home, w.now)) {
		t.Errorf("%s is changed before objects are listed: %v", m.Name, m.Matched)
	}
	w.upsert(superseded("a"))
	w.listCovered()
	w.matchedFor("a", 30*time.Minute)
	w.wantMarks()
}

func must[T any](value T, _ bool) T { return value }

// TestFailedConditionEndsTheMatch: while a condition fails, the object is held, and the time starts anew afterwards.
func TestFailedConditionEndsTheMatch(t *testing.T) {
	w := newMatchedWorld(t, testbuilders.Rule("r", "1h").For(gc.ResourceConfigMaps).If("object.metadata.labels.app == 'x'").AfterMatched())
	labelled := superseded("a")
	labelled.Labels = labels.Set{"app": "x"}
	w.evaluate(labelled)
	w.matchedFor("a", 0)
	w.pass(30 * time.Minute)
	w.evaluate(superseded("a")) // It has no such label.
	w.decided("a", policy.Hold, policy.ReasonExpressionError)
	w.evaluate(labelled)
	w.matchedFor("a", 0)
}

// TestEndedMatchesAreForgotten: once a rule is seen not to match, or not to apply, an earlier mark says nothing any more, even if it is
// still stored, and even if other objects cannot be listed.
func TestEndedMatchesAreForgotten(t *testing.T) {
	pods := testbuilders.Rule("pods", "1h").For(gc.ResourcePods)
	for name, c := range map[string]func(w *unusedWorld){
		"object": func(w *unusedWorld) { w.upsert(current("a")) },
		"rule": func(w *unusedWorld) {
			w.policy(matchedPolicy(2, pods))
			w.policy(matchedPolicy(3, matchedRule(), pods))
		},
		"object, before it is listed": func(w *unusedWorld) {
			w.restartMatched(matchedRule(), pods)
			w.upsert(current("a"))
			w.upsert(superseded("a"))
			w.list()
		},
		"rule, before the object is listed": func(w *unusedWorld) {
			all := w.facts
			w.facts = map[string]*lifecycle.Fact{}
			w.restartMatched(matchedRule(), pods)
			w.list()
			w.policy(matchedPolicy(2, pods))
			w.policy(matchedPolicy(3, matchedRule(), pods))
			w.upsert(all["a"])
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newMatchedWorld(t, matchedRule(), pods)
			w.upsert(superseded("a"))
			w.pass(time.Minute)
			w.store()
			w.pass(30 * time.Minute)
			w.Observing(gc.ResourcePods, errors.New("no right"), w.now)
			c(w)
			w.upsert(superseded("a"))
			w.matchedFor("a", 0)
			for _, m := range must(w.MarksToStore(testbuilders.Home, w.now)) {
				for key, mark := range m.Matched {
					if !mark.ByChange || !mark.Since.Equal(w.now) {
						t.Errorf("%v: %v stays stored", key, mark)
					}
				}
			}
		})
	}
}

// TestStatesThatAreNotEvaluated: while it is not known whether a rule matches, its time goes on only if the same state turns out to match.
// A state that is never evaluated may not have matched.
func TestStatesThatAreNotEvaluated(t *testing.T) {
	condition := "object.metadata.labels.app == 'x'"
	w := newMatchedWorld(t, testbuilders.Rule("r", "1h").For(gc.ResourceConfigMaps).If(condition).AfterMatched())
	matching := func() *lifecycle.Fact {
		f := superseded("a")
		f.Labels = labels.Set{"app": "x"}
		return f
	}
	w.evaluate(matching())
	w.pass(20 * time.Minute)
	w.upsert(matching())
	w.matchedFor("a", 20*time.Minute)
	w.Upsert(w.observed(w.facts["a"]), w.now)
	w.matchedFor("a", 20*time.Minute)
	w.upsert(matching())
	w.evaluate(matching())
	w.matchedFor("a", 0)
}

// TestMatchedWhileClocksAreInDoubt: no time is noted that may be wrong, and a stored time still counts.
func TestMatchedWhileClocksAreInDoubt(t *testing.T) {
	w := newMatchedWorld(t)
	w.upsert(superseded("a"))
	w.pass(time.Minute)
	w.store()
	w.now = w.now.Add(-30 * time.Second) // The clock is behind.
	w.restartMatched()
	w.CompareClocks(w.now.Add(time.Hour), w.now, w.now)
	w.list()
	w.upsert(superseded("b"))
	w.decided("b", policy.Hold, policy.ReasonFinishTimeUnknown)
	w.now = w.now.Add(90 * time.Second)
	w.confirmFresh()
	w.matchedFor("a", 2*time.Minute)
	w.matchedFor("b", 0)
}

// TestMatchesByChange: the objects that match since a change become due because time passes, but the change is assessed then, even if
// Winnow has restarted. Objects that come to match by themselves are not held.
func TestMatchesByChange(t *testing.T) {
	rule := func() *testbuilders.RuleBuilder {
		return testbuilders.Rule("r", "2m").For(gc.ResourceConfigMaps).Labelled("superseded", "yes").AfterMatched()
	}
	for name, restart := range map[string]bool{"": false, "with a restart": true} {
		t.Run(name, func(t *testing.T) {
			w := newMatchedWorld(t, testbuilders.Rule("other", "1h").For(gc.ResourceConfigMaps))
			w.Config.HoldAbove = 1
			w.upsert(superseded("a"), superseded("b"))
			w.policy(matchedPolicy(2, rule()))
			w.upsert(superseded("c"))
			w.decided("a", policy.Wait, policy.ReasonNotDue)
			if restart {
				w.store0()
				w.restartMatched(rule())
				w.list()
			}
			w.pass(2 * time.Minute)
			w.decided("a", policy.Hold, policy.ReasonHeld)
			w.decided("b", policy.Hold, policy.ReasonHeld)
			if c := w.Records.Get(w.facts["c"].UID); !restart && c.Clearance != memory.Cleared { // It waits until the hold of its policy ends.
				t.Errorf("c has clearance %d", c.Clearance)
			}
		})
	}
}

// TestMatchesByChangeAfterAStart: what time has made due while no replica ran does not count together with what matches by a change.
func TestMatchesByChangeAfterAStart(t *testing.T) {
	rules := []*testbuilders.RuleBuilder{
		testbuilders.Rule("r", "2m").For(gc.ResourceConfigMaps).Labelled("superseded", "yes").AfterMatched(),
		testbuilders.Rule("jobs", "10m").For(gc.ResourceJobs),
	}
	for name, c := range map[string]struct {
		match  []string
		action policy.Action
		reason policy.Reason
	}{
		"as many as may be due": {[]string{"a"}, policy.Delete, policy.ReasonExpired},
		"more":                  {[]string{"a", "b"}, policy.Hold, policy.ReasonHeld},
	} {
		t.Run(name, func(t *testing.T) {
			w := newMatchedWorld(t, testbuilders.Rule("other", "1h").For(gc.ResourceConfigMaps))
			w.Config.HoldAbove = 1
			w.upsert(testbuilders.Job("x").Complete(w.now).Fact(), testbuilders.Job("y").Complete(w.now).Fact())
			for _, name := range c.match {
				w.upsert(superseded(name))
			}
			w.policy(matchedPolicy(2, rules...))
			w.pass(time.Minute)
			w.store0()
			all, last := w.facts, w.now
			w.now = w.now.Add(20 * time.Minute)
			w.restartEmpty()
			w.SetLastRun(last)
			w.ReplaceCronJobs(nil, w.now)
			w.lists([]string{testbuilders.Home}, matchedPolicy(2, rules...).Status(statusOf(2)))
			w.confirmFresh()
			for _, name := range slices.Sorted(maps.Keys(all)) {
				w.upsert(all[name])
			}
			w.listCovered()
			w.list()
			for _, name := range append(c.match, "x", "y") {
				w.decided(name, c.action, c.reason)
			}
		})
	}
}

// TestAnApprovalCoversNoLaterMatches: the hold of objects that come to match a rule by a change, and become due later than others of the
// same rule, has an ID that no earlier hold had.
func TestAnApprovalCoversNoLaterMatches(t *testing.T) {
	edit := func(generation int64, label, value string) *testbuilders.PolicyBuilder {
		return matchedPolicy(
			generation,
			testbuilders.Rule("never", "never").For(gc.ResourceConfigMaps, gc.ResourceJobs).Labelled(label, value),
			testbuilders.Rule("r", "2m").For(gc.ResourceConfigMaps).Labelled("superseded", "yes").AfterMatched(),
		)
	}
	for name, c := range map[string]struct {
		again func(w *unusedWorld) (last *testbuilders.PolicyBuilder)
		want  []string
	}{
		"more objects": {func(w *unusedWorld) *testbuilders.PolicyBuilder {
			w.pass(time.Minute)
			return edit(3, "app", "y")
		}, []string{"a", "b", "c", "d"}},
		"the same objects by another edit": {func(w *unusedWorld) *testbuilders.PolicyBuilder {
			w.policy(edit(4, "superseded", "yes"))
			w.noHolds("p")
			w.policy(edit(5, "app", "x"))
			w.pass(2 * time.Minute)
			return edit(5, "app", "x")
		}, []string{"a", "b"}},
		"the same objects by their labels": {func(w *unusedWorld) *testbuilders.PolicyBuilder {
			w.upsert(current("a"), current("b"), current("c"), current("d"))
			w.noHolds("p")
			w.CronJobsListed = false
			w.observeClusterPolicy(guardrailPolicy(1, gc.Guardrails{MinTTL: new(gc.TTL("1s"))}))
			w.upsert(superseded("a"), superseded("b"))
			w.ReplaceCronJobs(nil, w.now)
			w.listCovered()
			w.pass(2 * time.Minute)
			return edit(3, "app", "y")
		}, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newMatchedWorld(t, testbuilders.Rule("other", "1h").For(gc.ResourceConfigMaps))
			w.Config.HoldAbove = 1
			for _, name := range []string{"c", "d"} {
				f := superseded(name)
				f.Labels = labels.Set{"superseded": "yes", "app": "x"}
				w.upsert(f)
			}
			w.upsert(superseded("a"), superseded("b"))
			w.policy(edit(2, "app", "x"))
			w.pass(time.Minute)
			w.policy(edit(3, "app", "y"))
			w.pass(time.Minute)
			first := w.oneHold("p", 2)
			last := c.again(w)
			second := w.oneHold("p", int64(len(c.want)))
			if second.ID == first.ID {
				t.Fatalf("the hold has the ID of before: %+v", second)
			}
			w.policy(last.Annotated(gc.AnnotationApprovedHold, first.ID))
			w.takes()
			w.policy(last.Annotated(gc.AnnotationApprovedHold, second.ID))
			w.takes(c.want...)
		})
	}
}

// store0 stores the marks that must be stored now, though more of them follow.
func (w *unusedWorld) store0() {
	for _, m := range must(w.MarksToStore(testbuilders.Home, w.now)) {
		w.write(m)
	}
}

// TestNothingIsDueByANewRule: without a TTL a new rule makes everything due that matches, and this is held if it is too much.
func TestNothingIsDueByANewRule(t *testing.T) {
	w := newMatchedWorld(t)
	w.Config.HoldAbove = 1
	w.upsert(superseded("a"), superseded("b"))
	w.pass(30 * time.Minute)
	w.policy(matchedPolicy(2, matchedRule(), testbuilders.Rule("all", "1h").For(gc.ResourceConfigMaps).If("true").AfterMatched()))
	w.decided("a", policy.Wait, policy.ReasonNotDue)
	w.policy(matchedPolicy(3, testbuilders.Rule("r", "0s").For(gc.ResourceConfigMaps).Labelled("superseded", "yes").AfterMatched()))
	w.decided("a", policy.Hold, policy.ReasonHeld)
	w.decided("b", policy.Hold, policy.ReasonHeld)
}

// TestUnfinished: a rule can delete what runs, but nothing that has a controller.
func TestUnfinished(t *testing.T) {
	rule := func() *testbuilders.RuleBuilder {
		return testbuilders.Rule("r", "1h").For(gc.ResourcePods, gc.ResourceJobs).Labelled("app", "x").AfterMatched().
			Dependents(gc.DependentsAfterOwnerFinished)
	}
	pod := func(name string) *testbuilders.PodBuilder { return testbuilders.Pod(name).Label("app", "x") }
	w := newMatchedWorld(t, rule().Unfinished(gc.UnfinishedDelete))
	w.upsert(pod("alone").Fact(), testbuilders.Job("job").Label("app", "x").Fact())
	owned := pod("owned").Fact()
	owned.Controller = &lifecycle.Owner{Name: "done", UID: testbuilders.UID("done")}
	owned.Controller.Group, owned.Controller.Kind = "batch", "Job"
	w.upsert(testbuilders.Job("done").Complete(w.now).Fact(), owned)
	w.pass(time.Hour)
	w.decided("owned", policy.Hold, policy.ReasonStillRunning)
	if got := w.candidate("owned").Status.Message; !strings.Contains(got, "deletes nothing that has a controller") {
		t.Errorf("got %q", got)
	}
	w.takes("alone", "job")

	w = newMatchedWorld(t, rule())
	w.upsert(pod("alone").Fact())
	w.pass(time.Hour)
	w.decided("alone", policy.Hold, policy.ReasonStillRunning)

	counted := testbuilders.Rule("r", "").WithoutTTL().For(gc.ResourcePods).Labelled("app", "x").AfterMatched().Keeping(1)
	w = newMatchedWorld(t, counted.Unfinished(gc.UnfinishedDelete))
	w.upsert(pod("first").Fact())
	w.pass(time.Minute)
	w.upsert(pod("second").Fact())
	w.decided("first", policy.Delete, policy.ReasonOverCapacity)
	w.decided("second", policy.Keep, policy.ReasonWithinCapacity)
}
