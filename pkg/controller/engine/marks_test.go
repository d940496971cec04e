// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// TestMarksFollowTheUse: a mark is stored when an object becomes unused, and removed when the object is used again, or is gone.
func TestMarksFollowTheUse(t *testing.T) {
	w := newUnusedWorld(t)
	w.configMaps("a", "b")
	w.use("b")
	w.takeUnmarked(testbuilders.Home)
	w.takeUnmarked()
	w.wantMarks(marks("", "a", time.Duration(0)))
	w.store()
	w.takeUnmarked(testbuilders.Home)
	w.wantMarks() // The stored marks are the right ones.

	w.pass(90 * time.Minute)
	w.unuse("b")
	w.takeUnmarked(testbuilders.Home)
	version := w.version0()
	w.wantMarks(marks(version, "a", time.Duration(0), "b", -90*time.Minute))
	w.use("a")
	w.wantMarks(marks(version, "b", -90*time.Minute))
	w.removed("b")
	w.wantMarks(marks(version))
	w.store()
	w.wantMarks()
	if len(w.stored) != 0 {
		t.Errorf("left: %v", w.stored)
	}
}

// TestMarksAreNotOlderThanTheUse: stored times are exact, so that nothing is deleted a fraction of a second early. Objects that were never
// seen in use are unused since they were first seen.
func TestMarksAreNotOlderThanTheUse(t *testing.T) {
	w := newUnusedWorld(t)
	w.now = w.now.Add(300 * time.Millisecond)
	w.configMaps("a", "never")
	w.use("a")
	w.unuse("a")
	w.wantMarks(marks("", "a", -300*time.Millisecond, "never", -300*time.Millisecond))
	w.store()
	w.wantMarks()
	due := testbuilders.Now.Add(24*time.Hour + time.Second) // Rounded up, as it is shown.
	for _, name := range []string{"a", "never"} {
		w.pass(due.Add(-1).Sub(w.now))
		w.decided(name, policy.Wait, policy.ReasonNotDue)
		if shown := w.Engine.Candidate(w.Records.Get(w.facts[name].UID), true).Status.DueTime; !shown.Time.Equal(due) {
			t.Errorf("%s is due at %v, and %v is shown", name, due, shown)
		}
	}
	w.pass(1)
	w.takes("a", "never")
}

// TestMarksSurviveARestart: stored marks count, and are not written again.
func TestMarksSurviveARestart(t *testing.T) {
	w := newUnusedWorld(t)
	w.configMaps("a", "b", "c")
	w.use("c")
	w.store()
	w.pass(20 * time.Hour)
	w.unuse("c")
	w.restart()
	w.use("b")
	if _, known := w.MarksToStore(testbuilders.Home, w.now); known {
		t.Error("marks must be stored before the stored marks were listed")
	}
	w.list()
	w.wantMarks(marks(w.version0(), "a", time.Duration(0), "c", -20*time.Hour))
	w.pass(4 * time.Hour)
	w.takes("a")
	w.decided("c", policy.Wait, policy.ReasonNotDue)
}

// TestMarksBeforeObjects: marks may be listed before the objects.
func TestMarksBeforeObjects(t *testing.T) {
	w := newUnusedWorld(t)
	m := marks("1", "a", 25*time.Hour)
	w.SetMarks(&m, w.now)
	w.configMaps("a", "b")
	w.takes("a")
}

// TestMarksOfOthers: nobody but Winnow may write marks, but if somebody does, objects are not deleted too early.
func TestMarksOfOthers(t *testing.T) {
	elsewhere := marks("1", "a", 30*time.Hour)
	elsewhere.Namespace = "elsewhere"
	later := marks("2", "a", time.Hour)
	later.Name = "others"
	for name, c := range map[string]struct {
		stored []memory.Marks
		ago    time.Duration // since when a is unused
	}{
		"of another namespace":         {[]memory.Marks{elsewhere}, 0},
		"of before the creation":       {[]memory.Marks{marks("1", "a", 1000*time.Hour)}, old},
		"of a clock that is ahead":     {[]memory.Marks{marks("1", "a", -30*time.Second)}, -30 * time.Second},
		"of the future":                {[]memory.Marks{marks("1", "a", -1000*time.Hour)}, 0},
		"twice, with the latest first": {[]memory.Marks{later, marks("1", "a", 30*time.Hour)}, time.Hour},
		"twice, with the latest last":  {[]memory.Marks{marks("1", "a", 30*time.Hour), later}, time.Hour},
	} {
		for _, before := range []bool{true, false} {
			w := newUnusedWorld(t)
			w.namespace("elsewhere")
			if !before {
				w.configMaps("a")
			}
			for _, m := range c.stored {
				w.SetMarks(&m, w.now)
			}
			if before {
				w.configMaps("a")
			}
			if got := w.UsageOf(w.Records.Get("uid-a")).Since; !got.Equal(w.now.Add(-c.ago)) {
				t.Errorf("%s, marks first %t: unused since %v, want %v", name, before, got, w.now.Add(-c.ago))
			}
		}
	}
}

// TestMarksThatAreNotNeeded: marks are deleted if their objects do not exist, are in use, or no rule applies to them.
func TestMarksThatAreNotNeeded(t *testing.T) {
	w := newUnusedWorld(t)
	w.configMaps("used")
	w.use("used")
	m := marks("7", "gone", time.Hour, "used", time.Hour)
	w.SetMarks(&m, w.now)
	w.wantMarks(marks("7"))
	w.configMaps("a")
	w.wantMarks(marks("7", "a", time.Duration(0)))
	w.removePolicy(unusedPolicy())
	w.wantMarks(marks("7"))
}

// TestMarksThatAreGone: marks that somebody has deleted are stored again.
func TestMarksThatAreGone(t *testing.T) {
	w := newUnusedWorld(t)
	w.configMaps("a")
	w.store()
	clear(w.stored)
	w.pass(time.Hour)
	w.list()
	w.takeUnmarked(testbuilders.Home)
	w.wantMarks(marks("", "a", time.Duration(0)))
}

// TestMarksAreKeptWhileTheUseIsUnknown: stored marks stay until it is known which marks are needed.
func TestMarksAreKeptWhileTheUseIsUnknown(t *testing.T) {
	unknown := func(w *unusedWorld) {
		t.Helper()
		if _, known := w.MarksToStore(testbuilders.Home, w.now); known {
			t.Error("it is known which marks to store")
		}
	}
	w := newUnusedWorld(t)
	w.configMaps("a")
	w.store()
	w.BeginReferrers(usingPods, w.now)
	unknown(w)
	w.EndReferrers(usingPods, w.now)
	w.wantMarks()
	w.ObservingReferrers(usingPods, fmt.Errorf("forbidden"), w.now)
	unknown(w)

	w.world = newWorld(t)
	w.start()
	w.list()
	unknown(w) // The ConfigMaps are not listed.
	w.Observing(gc.ResourceConfigMaps, fmt.Errorf("forbidden"), w.now)
	unknown(w) // They cannot be listed.
	w.listCovered()
	w.wantMarks(marks(w.version0()))
}

// TestManyMarks: many marks are divided, and each object stays where it is stored.
func TestManyMarks(t *testing.T) {
	w := newUnusedWorld(t)
	for i := range knowledge.MaxMarks + 2 {
		w.configMaps(fmt.Sprint("c-", i))
	}
	w.store()
	sizes := func() map[string]int {
		out := map[string]int{}
		for name, m := range w.stored {
			out[name.Name] = len(m.Unused)
		}
		return out
	}
	if got, want := sizes(), map[string]int{"marks-0": knowledge.MaxMarks, "marks-1": 2}; !maps.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	one := w.stored[types.NamespacedName{Namespace: testbuilders.Home, Name: "marks-1"}].ResourceVersion
	first := slices.Sorted(maps.Keys(w.stored[marks("").NamespacedName].Unused))[0]
	w.use(string(first[len("uid-"):]))
	w.store()
	w.configMaps("new")
	w.store()
	if got, want := sizes(), map[string]int{"marks-0": knowledge.MaxMarks, "marks-1": 2}; !maps.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	if got := w.stored[types.NamespacedName{Namespace: testbuilders.Home, Name: "marks-1"}].ResourceVersion; got != one {
		t.Error("marks were written that have not changed")
	}
}

// TestNamespaceWithMarksOnly: a namespace is forgotten when its marks are gone.
func TestNamespaceWithMarksOnly(t *testing.T) {
	w := newUnusedWorld(t)
	m := marks("1", "a", time.Hour)
	m.Namespace = "elsewhere"
	w.SetMarks(&m, w.now)
	if _, known := w.MarksToStore("elsewhere", w.now); known {
		t.Error("the marks of a namespace that was not observed are known")
	}
	w.RemoveMarks(m.NamespacedName, w.now)
	if out, known := w.MarksToStore("elsewhere", w.now); len(out) != 0 || !known || w.Engine.Namespaces["elsewhere"] != nil {
		t.Errorf("got %v, %t, and the namespace is remembered: %v", out, known, w.Engine.Namespaces["elsewhere"] != nil)
	}
}
