// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

const isA, isB = "object.metadata.name == 'a'", "object.metadata.name == 'b'"

// conditional is policy p, which deletes objects that meet an expression after an hour.
func conditional(generation int64, expression string) *testbuilders.PolicyBuilder {
	return testbuilders.Policy("p").Generation(generation).Rules(testbuilders.Rule("r", "1h").If(expression))
}

// readAgain lists the objects that are known in the namespace, with the results of their match conditions.
func (w *world) readAgain(namespace string) {
	merge := w.BeginMerge(gc.ResourceJobs, namespace)
	for _, f := range w.facts {
		if f.Namespace == namespace {
			w.add(merge, []*facts.Compact{w.observed(f)}, w.now)
		}
	}
	merge.End(true, w.now)
	w.listCovered() // of Pods
}

// TestANewConditionReadsTheNamespaceAgain: no other namespace is read again. Until then, objects that the rule may match are held, and the
// change is not assessed.
func TestANewConditionReadsTheNamespaceAgain(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default(gc.TTLNever))
	w.namespace("other")
	w.policy(testbuilders.Policy("p").In("other").Rules(testbuilders.Rule("r", "1h").If(isA)))
	w.Config.HoldAbove = 1
	w.upsert(jobs(2*time.Hour, "a", "b")...)
	before := w.Coverage()[gc.ResourceJobs]

	w.observePolicy(conditional(2, isA))
	after := w.Coverage()[gc.ResourceJobs]
	if after[testbuilders.Home] == before[testbuilders.Home] || after["other"] != before["other"] {
		t.Errorf("the coverage was %v and is %v", before, after)
	}
	if effects := w.TakeEffects(); !effects.Coverage || !effects.Conditions {
		t.Errorf("effects %+v", effects)
	}
	w.confirmFresh()
	w.decided("a", policy.Hold, policy.ReasonUnobserved)
	w.decided("b", policy.Hold, policy.ReasonUnobserved)
	w.takes()
	if len(w.report("p").Holds) > 0 {
		t.Error("the change was assessed before anything was evaluated")
	}

	w.readAgain(testbuilders.Home)
	w.confirmFresh()
	w.decided("b", policy.Ignore, policy.ReasonNoPolicy)
	w.takes("a")
}

// TestAConditionIsAssessed: objects that a change of a condition makes due at once wait for approval.
func TestAConditionIsAssessed(t *testing.T) {
	w := newWorld(t, conditional(1, "object.metadata.name == 'c'"))
	w.Config.HoldAbove = 1
	w.upsert(jobs(2*time.Hour, "a", "b")...)
	w.readAgain(testbuilders.Home)
	w.observePolicy(conditional(2, "object.metadata.name != 'c'"))
	w.readAgain(testbuilders.Home)
	w.confirmFresh()
	w.takes()
	w.oneHold("p", 2)
}

// TestAConditionLess: nothing is read again when a condition is no longer needed. If it is needed again later, it is a new condition:
// tables with conditions that are not needed would differ between replicas.
func TestAConditionLess(t *testing.T) {
	both := testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h").If(isA), testbuilders.Rule("s", "1h").If(isB))
	w := newWorld(t, both)
	w.upsert(jobs(2*time.Hour, "a", "b")...)
	w.readAgain(testbuilders.Home)
	before := w.Coverage()[gc.ResourceJobs][testbuilders.Home]
	w.observePolicy(conditional(2, isB))
	w.confirmFresh()
	if w.Coverage()[gc.ResourceJobs][testbuilders.Home] != before {
		t.Error("the namespace is listed again for one condition less")
	}
	w.decided("a", policy.Ignore, policy.ReasonNoPolicy)
	w.observePolicy(conditional(3, isA))
	if before = w.Coverage()[gc.ResourceJobs][testbuilders.Home]; before == 0 {
		t.Error("the namespace is not listed")
	}
	w.readAgain(testbuilders.Home)
	w.confirmFresh()
	w.decided("b", policy.Ignore, policy.ReasonNoPolicy)
	w.takes("a")
	w.observePolicy(ttlPolicy("1h", 4))
	if w.Coverage()[gc.ResourceJobs][testbuilders.Home] != before || len(w.Conditions()) != 0 {
		t.Errorf("without conditions: %v", w.Conditions())
	}
}

// TestFewerConditionsThatCostTooMuch: conditions that failed because all of them together cost too much are evaluated again when there are
// fewer, so that a replica that starts later makes the same decisions.
func TestFewerConditionsThatCostTooMuch(t *testing.T) {
	// In alphabetical order, in which the budget is spent, the costly condition comes first.
	costly := "[" + strings.Repeat("1, ", 60) + "1].all(x, [" + strings.Repeat("1, ", 60) + "1].all(y, x + y + size(object.metadata.name) > 0))"
	both := testbuilders.Policy("p").Rules(testbuilders.Rule("s", "1h").If(costly), testbuilders.Rule("r", "1h").If(isA))
	w := newWorld(t, both)
	w.upsert(jobs(2*time.Hour, "a", "b")...)
	w.readAgain(testbuilders.Home)
	w.confirmFresh()
	w.decided("a", policy.Hold, policy.ReasonExpressionError)
	before := w.Coverage()[gc.ResourceJobs][testbuilders.Home]
	w.observePolicy(conditional(2, isA))
	w.confirmFresh()
	if w.Coverage()[gc.ResourceJobs][testbuilders.Home] == before {
		t.Fatal("the namespace is not listed again")
	}
	w.readAgain(testbuilders.Home)
	w.confirmFresh()
	w.decided("b", policy.Ignore, policy.ReasonNoPolicy)

	w.observePolicy(both.Generation(3))
	w.readAgain(testbuilders.Home)
	w.observePolicy(ttlPolicy("1h", 4))
	w.readAgain(testbuilders.Home) // Without any results.
	w.confirmFresh()
	w.takes("a", "b")
}

// TestFewerConditionsThanTooMany: conditions that failed because there were too many are evaluated again when there are fewer.
func TestFewerConditionsThanTooMany(t *testing.T) {
	many := testbuilders.Policy("p") // In alphabetical order, the condition of the last rule is the last one.
	for i := range lifecycle.MaxConditions / 15 {
		rule := testbuilders.Rule(fmt.Sprint("r", i), "1h")
		for j := range 15 {
			rule.If(fmt.Sprintf("'a' == 'b%d.%d'", i, j))
		}
		many.Rules(rule)
	}
	many.Rules(testbuilders.Rule("r", "1h").If("'b' == 'a'").If("object.metadata.name == 'c'"), testbuilders.Rule("s", "1h").If(isA))
	w := newWorld(t, many)
	w.upsert(jobs(2*time.Hour, "a")...)
	w.readAgain(testbuilders.Home)
	w.confirmFresh()
	w.decided("a", policy.Hold, policy.ReasonExpressionError)
	w.observePolicy(conditional(2, isA))
	w.readAgain(testbuilders.Home)
	w.confirmFresh()
	w.takes("a")
}

// TestPublishedConditions: the result of Conditions does not change later, and many namespaces share the conditions of cluster policies.
func TestPublishedConditions(t *testing.T) {
	w := newWorld(t)
	p := ttlClusterPolicy("c", gc.TTLNever, 1)
	p.Spec.NamespaceSelector, p.Spec.Rules = &metav1.LabelSelector{}, conditional(1, isA).Obj().Spec.Rules
	w.clusterPolicy(p)
	w.namespace("other")
	first := w.Conditions()
	if of := first[gc.ResourceJobs]; of[testbuilders.Home] == nil || of[testbuilders.Home] != of["other"] {
		t.Errorf("the namespaces have %v", of)
	}
	w.observePolicy(conditional(1, isB))
	second := w.Conditions()
	if first[gc.ResourceJobs][testbuilders.Home] != first[gc.ResourceJobs]["other"] {
		t.Error("the result has changed")
	}
	if of := second[gc.ResourceJobs]; of[testbuilders.Home] == first[gc.ResourceJobs][testbuilders.Home] || of["other"] != first[gc.ResourceJobs]["other"] {
		t.Errorf("after a change, the namespaces have %v", of)
	}
	w.RemoveNamespace(testbuilders.Namespace("other", w.next()), w.now)
	if of := w.Conditions()[gc.ResourceJobs]; of["other"] != nil {
		t.Error("a removed namespace has conditions")
	}
}

// TestResultsOfTheSameState: a list may add results to a state that the watch has brought without them, but not to an older state.
func TestResultsOfTheSameState(t *testing.T) {
	w := newWorld(t, conditional(1, isA))
	w.upsert(jobs(2*time.Hour, "a")...) // It was decoded before the condition was known.
	w.confirmFresh()
	w.decided("a", policy.Hold, policy.ReasonUnobserved)
	older := *w.facts["a"]
	older.ResourceVersion--
	w.Upsert(w.observed(&older), w.now)
	w.decided("a", policy.Hold, policy.ReasonUnobserved)
	w.Upsert(w.observed(w.facts["a"]), w.now)
	w.takes("a")
}

// TestConditionsOfAClusterPolicy: they are evaluated in the namespaces that it selects.
func TestConditionsOfAClusterPolicy(t *testing.T) {
	w := newWorld(t)
	w.namespace("selected", "team", "x")
	p := ttlClusterPolicy("c", gc.TTLNever, 1)
	p.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}}
	p.Spec.Rules = conditional(1, isA).Obj().Spec.Rules
	w.clusterPolicy(p)
	all := w.Conditions()[gc.ResourceJobs]
	if len(all) != 1 || all["selected"] == nil {
		t.Errorf("conditions %v", all)
	}
	w.namespace(testbuilders.Home, "team", "x")
	if all := w.Conditions()[gc.ResourceJobs]; len(all) != 2 {
		t.Errorf("conditions %v", all)
	}
}

// TestSnapshotConditions: to forecast a change, objects that the conditions before and after the change may match are read.
func TestSnapshotConditions(t *testing.T) {
	w := newWorld(t, conditional(1, isA))
	w.upsert(jobs(2*time.Hour, "a", "b")...)
	w.readAgain(testbuilders.Home)
	for expression, again := range map[string]bool{isA: false, isB: true} {
		s := w.Snapshot(gc.PolicyChange{Before: conditional(1, isA).Obj(), After: conditional(2, expression).Obj()}, 100, w.now)
		if listed := len(s.Missing[gc.ResourceJobs]) == 1; listed != again {
			t.Errorf("%s: lists Jobs in %v", expression, s.Missing[gc.ResourceJobs])
		}
		if !again {
			continue
		}
		r := s.Conditions[gc.ResourceJobs][testbuilders.Home].Evaluate(map[string]any{"metadata": map[string]any{"name": "a"}})
		for text, want := range map[string]bool{isA: true, isB: false} {
			if matches, _, known := r.Result(text); !known || matches != want {
				t.Errorf("%s: %t, known: %t", text, matches, known)
			}
		}
	}
}

// TestCeilingsGoOnCounting: while the match conditions of one namespace are evaluated, its share of a ceiling stays, so that the change
// does not make the due objects of another namespace due again.
func TestCeilingsGoOnCounting(t *testing.T) {
	w := newWorld(t)
	w.namespace("other")
	w.clusterPolicy(jobCeiling(1, 2))
	for _, namespace := range []string{testbuilders.Home, "other"} {
		for i, name := range []string{"old", "new"} {
			w.upsert(testbuilders.Job(namespace + "-" + name).In(namespace).Complete(w.now.Add(-time.Hour + time.Duration(i)*time.Minute)).Fact())
		}
	}
	w.confirmFresh()
	w.decided("other-old", policy.Delete, policy.ReasonOverCeiling)
	w.Config.HoldAbove = 0
	w.observePolicy(testbuilders.Policy("p").Rules(testbuilders.Rule("r", gc.TTLNever).If(isA)))
	w.decided("other-old", policy.Delete, policy.ReasonOverCeiling)
	w.decided("other-new", policy.Keep, policy.ReasonUnderCeiling)
	w.readAgain(testbuilders.Home)
	w.confirmFresh()
	w.decided("other-old", policy.Delete, policy.ReasonOverCeiling)
}

// waiting is a state of an object whose match conditions are evaluated later.
func (w *world) waiting(f *lifecycle.Fact) *facts.Compact {
	read := *f
	read.Conditions = w.Conditions()[f.Resource][f.Namespace].Waiting()
	return facts.Compress(&read)
}

// TestConditionsThatWait: an object is held until its match conditions are evaluated. The same state brings the results, and a state
// without them does not take them away.
func TestConditionsThatWait(t *testing.T) {
	w := newWorld(t, conditional(1, isA))
	w.upsert(jobs(2*time.Hour, "a")...)
	w.readAgain(testbuilders.Home)
	known := w.facts["a"]
	w.Upsert(w.waiting(known), w.now)
	w.confirmFresh()
	w.decided("a", policy.Delete, policy.ReasonExpired)

	later := *known
	later.ResourceVersion++
	w.facts["a"] = &later
	w.Upsert(w.waiting(&later), w.now)
	w.confirmFresh()
	w.decided("a", policy.Hold, policy.ReasonExpressionError)
	w.takes()
	w.readAgain(testbuilders.Home)
	w.confirmFresh()
	w.takes("a")
}

// TestConditionsThatWaitAreAssessedTogether: a change of a condition is not assessed before the condition is evaluated for all objects.
func TestConditionsThatWaitAreAssessedTogether(t *testing.T) {
	w := newWorld(t, conditional(1, "object.metadata.name == 'c'"))
	w.Config.HoldAbove = 1
	w.upsert(jobs(2*time.Hour, "a", "b")...)
	w.readAgain(testbuilders.Home)
	w.observePolicy(conditional(2, "object.metadata.name != 'c'"))

	list := w.BeginList(gc.ResourceJobs)
	merge := w.BeginMerge(gc.ResourceJobs, testbuilders.Home)
	list.Add([]*facts.Compact{w.waiting(w.facts["a"]), w.observed(w.facts["b"])}, w.now)
	w.finish(func() bool { return list.End(1_000_000, w.now) })
	w.BeginMerge(gc.ResourcePods, testbuilders.Home).End(true, w.now)
	w.confirmFresh()
	w.decided("b", policy.Hold, policy.ReasonUnobserved)
	w.takes()

	w.add(merge, []*facts.Compact{w.observed(w.facts["a"]), w.observed(w.facts["b"])}, w.now)
	merge.End(true, w.now)
	w.confirmFresh()
	w.takes()
	w.oneHold("p", 2)
}
