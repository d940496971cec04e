// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// newFirstSeenWorld is a world with a policy that deletes finished objects after an hour. Marks are listed.
func newFirstSeenWorld(t *testing.T, policies ...*testbuilders.PolicyBuilder) *unusedWorld {
	if len(policies) == 0 {
		policies = append(policies, ttlPolicy("1h", 1))
	}
	w := &unusedWorld{world: newWorld(t, policies...), stored: map[types.NamespacedName]*memory.Marks{}}
	w.MarksListed(nil, w.now)
	return w
}

// rejected is a Pod that the kubelet rejected: it does not say when.
func rejected(name string) *lifecycle.Fact {
	return testbuilders.Pod(name).Phase(corev1.PodFailed).Fact()
}

// finishMarks are the marks of the namespace with number 0 about Pods, each first seen this long after testbuilders.Now, in a version.
func finishMarks(resourceVersion, name string, after time.Duration, version uint64) *memory.Marks {
	return &memory.Marks{
		NamespacedName: types.NamespacedName{Namespace: testbuilders.Home, Name: "marks-0"}, ResourceVersion: resourceVersion,
		Finished: map[types.UID]memory.FinishMark{testbuilders.UID(name): {Since: testbuilders.Now.Add(after), Version: version}},
	}
}

// TestFirstSeen: objects that do not say when they finished count from exactly when they were first seen finished, and the message says so.
func TestFirstSeen(t *testing.T) {
	w := newFirstSeenWorld(t)
	w.now = w.now.Add(300 * time.Millisecond)
	due := testbuilders.Now.Add(time.Hour + time.Second) // Rounded up, as it is shown.
	w.upsert(rejected("a"))
	w.pass(time.Minute)
	w.upsert(testbuilders.Pod("a").Label("touched", "yes").Phase(corev1.PodFailed).Fact())
	w.decided("a", policy.Wait, policy.ReasonNotDue)
	c := w.candidate("a")
	if got := c.Status.DueTime; !got.Time.Equal(due) {
		t.Errorf("due at %v, want %v", got, due)
	}
	const why = "neither a container nor a condition says when it finished, so it counts from when Winnow first saw it finished"
	if !strings.Contains(c.Status.Message, why) {
		t.Errorf("got %q", c.Status.Message)
	}
	w.pass(due.Add(-1).Sub(w.now))
	w.takes()
	w.pass(1)
	w.takes("a")
}

// TestFirstSeenAtOnce: objects that a policy without delay makes due are attributed to the policy, and held if there are too many.
func TestFirstSeenAtOnce(t *testing.T) {
	w := newFirstSeenWorld(t, ttlPolicy("never", 1))
	w.Config.HoldAbove = 2
	w.upsert(rejected("a"), rejected("b"), rejected("c"))
	w.policy(ttlPolicy("0s", 2))
	for _, name := range []string{"a", "b", "c"} {
		w.decided(name, policy.Hold, policy.ReasonHeld)
	}
	w.confirmFresh()
	w.takes()
}

// TestFirstSeenDoesNotMatterAfterCreated: the creation alone decides.
func TestFirstSeenDoesNotMatterAfterCreated(t *testing.T) {
	w := newFirstSeenWorld(t, testbuilders.Policy("p").Rules(
		testbuilders.Rule("r", "1h").For(gc.ResourcePods).Labelled("app", "x").AfterCreated(),
	))
	uncreated := testbuilders.Pod("uncreated").Label("app", "x").Phase(corev1.PodFailed).Created(time.Time{}).Fact()
	w.upsert(testbuilders.Pod("a").Label("app", "x").Phase(corev1.PodFailed).Fact(), uncreated)
	w.decided("uncreated", policy.Hold, policy.ReasonFinishTimeUnknown)
	c := w.candidate("a")
	if want := testbuilders.Now.Add(-23 * time.Hour); !c.Status.DueTime.Time.Equal(want) || strings.Contains(c.Status.Message, "first saw") {
		t.Errorf("due at %v, want %v: %s", c.Status.DueTime, want, c.Status.Message)
	}
	w.takes("a")
}

// TestFirstSeenMarks: the time is stored once, and forgotten when the object has a finish time itself, runs again or is gone.
func TestFirstSeenMarks(t *testing.T) {
	w := newFirstSeenWorld(t)
	w.takeUnmarked()
	w.upsert(rejected("a"))
	version := w.version
	w.takeUnmarked(testbuilders.Home)
	w.wantMarks(*finishMarks("", "a", 0, version))
	w.store()
	w.takeUnmarked(testbuilders.Home)
	w.pass(time.Minute)
	w.upsert(rejected("a"))
	w.wantMarks()

	empty := memory.Marks{NamespacedName: finishMarks("", "", 0, 0).NamespacedName, ResourceVersion: w.version0()}
	w.upsert(testbuilders.Pod("a").Failed(w.now).Fact())
	w.wantMarks(empty)
	if got := w.Records.Get(testbuilders.UID("a")).FinishedAt(); !got.Equal(w.now) {
		t.Errorf("counts from %v, want its finish time", got)
	}
	w.upsert(rejected("a"))
	w.wantMarks(*finishMarks(w.version0(), "a", time.Minute, w.version))
	w.upsert(testbuilders.Pod("a").Phase(corev1.PodRunning).Fact())
	w.wantMarks(empty)
	w.upsert(rejected("a"))
	w.removed("a")
	w.wantMarks(empty)
	w.store()
	if len(w.stored) != 0 || len(w.Engine.Namespaces[testbuilders.Home].FirstSeen) != 0 {
		t.Errorf("left: %v", w.stored)
	}
}

// TestFirstSeenSurvivesARestart: stored marks count, whether they are listed before the objects or after them, and are not written again.
func TestFirstSeenSurvivesARestart(t *testing.T) {
	for _, first := range []bool{true, false} {
		w := newFirstSeenWorld(t)
		w.upsert(rejected("a"), rejected("b"))
		w.store()
		w.pass(50 * time.Minute)
		next := newWorld(t)
		next.now, next.version = w.now, w.version
		facts := w.facts
		w.world = next
		if first {
			w.list()
		}
		w.policy(ttlPolicy("1h", 1))
		w.upsert(facts["a"], facts["b"])
		w.list()
		w.wantMarks()
		w.pass(10*time.Minute - 1)
		w.takes()
		w.pass(1)
		w.takes("a", "b")
	}
}

// TestFirstSeenOfAnEarlierRun: a mark from before the object ran again does not count, however late it arrives.
func TestFirstSeenOfAnEarlierRun(t *testing.T) {
	w := newFirstSeenWorld(t)
	w.upsert(rejected("a"))
	early := finishMarks("1000", "a", 0, w.version)
	w.pass(30 * time.Minute)
	w.upsert(testbuilders.Pod("a").Phase(corev1.PodRunning).Fact())
	w.pass(40 * time.Minute)
	w.upsert(rejected("a"))
	w.SetMarks(early, w.now)
	w.decided("a", policy.Wait, policy.ReasonNotDue)
	w.wantMarks(*finishMarks("1000", "a", 70*time.Minute, w.version))

	// Another replica saw the same run first, so all count from its time.
	w.SetMarks(finishMarks("1001", "a", 69*time.Minute, w.version), w.now)
	w.wantMarks()
	w.pass(59*time.Minute - 1)
	w.takes()
	w.pass(1)
	w.takes("a")
}

// TestFirstSeenMarksOfOthers: nobody but Winnow may write marks, but if somebody does, objects are not deleted too early.
func TestFirstSeenMarksOfOthers(t *testing.T) {
	for name, c := range map[string]struct{ mark, want time.Duration }{
		"of before the creation":   {-1000 * time.Hour, -24 * time.Hour},
		"of a clock that is ahead": {30 * time.Second, 30 * time.Second},
		"of the future":            {1000 * time.Hour, 0},
	} {
		for _, before := range []bool{true, false} {
			w := newFirstSeenWorld(t)
			m := finishMarks("1", "a", c.mark, 1_000)
			if before {
				w.SetMarks(m, w.now)
			}
			w.upsert(rejected("a"))
			if !before {
				w.SetMarks(m, w.now)
			}
			if got := w.Records.Get(testbuilders.UID("a")).FinishedAt(); !got.Equal(testbuilders.Now.Add(c.want)) {
				t.Errorf("%s, marks first %t: counts from %v, want %v", name, before, got, testbuilders.Now.Add(c.want))
			}
		}
	}
}

// TestFirstSeenMarksStayUntilAllIsListed: an object that is not listed yet may still need its mark. New marks are stored anyway.
func TestFirstSeenMarksStayUntilAllIsListed(t *testing.T) {
	w := newFirstSeenWorld(t)
	m := finishMarks("7", "a", -time.Minute, 1)
	w.SetMarks(m, w.now)
	w.observePolicy(testbuilders.Policy("q").Rules(testbuilders.Rule("r", "1h").For("workflows.argoproj.io")))
	w.SetKinds(drawnKinds, w.now)
	w.upsert(rejected("b"))
	version := w.version
	got, known := w.MarksToStore(testbuilders.Home, w.now)
	if known || len(got) != 1 || len(got[0].Finished) != 2 || got[0].ResourceVersion != "7" {
		t.Errorf("got %v, known %t", dereferenced(got), known)
	}
	for _, resource := range drawnKinds.Deletable() {
		k, _ := drawnKinds.For(resource)
		w.StartObserving(k)
	}
	w.listCovered()
	w.wantMarks(*finishMarks("7", "b", 0, version))
}

// TestFirstSeenCounts: pools and ceilings count these objects, from the same time.
func TestFirstSeenCounts(t *testing.T) {
	w := newFirstSeenWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", "never").For(gc.ResourcePods).Keeping(2)))
	for i := range 4 {
		w.upsert(rejected(fmt.Sprint("p-", i)))
		w.pass(time.Minute)
	}
	w.deletes("p-0", "p-1")
	// By the marks, p-3 was seen before p-2, so it is ranked again.
	w.SetMarks(finishMarks("1000", "p-3", time.Minute, w.version), w.now)
	w.upsert(rejected("p-4"))
	w.takes("p-3")
}

// TestFirstSeenUnderACeiling: the ceiling counts objects that do not say when they finished. The explanation does not say that an object is
// under the ceiling if the ceiling does not count it.
func TestFirstSeenUnderACeiling(t *testing.T) {
	w := newFirstSeenWorld(t, testbuilders.Policy("p"))
	one := int64(1)
	w.clusterPolicy(guardrailPolicy(1, gc.Guardrails{Ceilings: []gc.Ceiling{{Resources: []string{gc.ResourcePods}, MaxObjects: &one}}}))
	w.upsert(rejected("old"))
	w.pass(time.Minute)
	uncounted := rejected("uncounted")
	uncounted.Uncounted = true
	w.upsert(rejected("new"), uncounted, testbuilders.Pod("ahead").Failed(w.now.Add(time.Minute)).Fact())
	if got := w.Reports("")[0].Ceilings; len(got) != 1 || got[0].Objects != 2 || got[0].Over != 1 {
		t.Errorf("got %+v", got)
	}
	for name, want := range map[string]string{
		"old":       "It is over a ceiling: newer objects fill the share of the namespace; neither a container",
		"new":       "Only a ceiling counts it, and it is not over the ceiling; neither a container",
		"uncounted": "No policy matches it, and no ceiling counts it: the Job controller has not counted this Pod yet",
		"ahead":     "No policy matches it, and no ceiling counts it: its finish time is in the future",
	} {
		if got := w.candidate(name).Status.Message; !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	w.confirmFresh()
	w.takes("old")
}
