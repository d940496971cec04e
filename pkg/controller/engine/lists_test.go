// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

// known fails unless exactly these objects are known.
func (w *world) known(names ...string) {
	w.Helper()
	for _, name := range names {
		if w.Records.Get(w.facts[name].UID) == nil {
			w.Errorf("%q is not known", name)
		}
	}
	if w.Records.Count != len(names) {
		w.Errorf("%d objects are known, want %d", w.Records.Count, len(names))
	}
}

// TestListsOfTwoResources: a list of Pods that begins after a page of Jobs does not affect the list of Jobs.
func TestListsOfTwoResources(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	w.upsert(job(0, "a"), testbuilders.Pod("b").Succeeded(w.now).Fact())
	jobs, version := w.BeginList(gc.ResourceJobs), w.version
	jobs.Add(compressed(w.facts["a"]), w.now)
	pods := w.BeginList(gc.ResourcePods)
	pods.Add(compressed(w.facts["b"]), w.now)
	for jobs.End(version, w.now) || pods.End(version, w.now) {
	}
	w.known("a", "b")
}

// TestBrokenList: the next list of a resource starts from the beginning, whatever a broken list has added.
func TestBrokenList(t *testing.T) {
	for name, end := range map[string]func(*world, *drivenList){
		"it is followed by another": func(*world, *drivenList) {},
		"it is abandoned":           func(w *world, l *drivenList) { l.Abandon(w.now) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ttlPolicy("1h", 1))
			w.upsert(job(0, "kept"), job(0, "removed"))
			broken := w.BeginList(gc.ResourceJobs)
			broken.Add(compressed(w.facts["removed"]), w.now)
			end(w, broken)
			w.known("kept", "removed")
			w.Replace(gc.ResourceJobs, compressed(w.facts["kept"]), w.version, w.now)
			w.known("kept")
			broken.Add(compressed(w.facts["removed"]), w.now) // It is too late.
			if broken.End(w.version, w.now) {
				t.Error("a broken list continues")
			}
			w.known("kept")
		})
	}
}

// TestNothingIsDeletedDuringAList: until a list ends, memory is a mixture of two states.
func TestNothingIsDeletedDuringAList(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	w.upsert(job(2*time.Hour, "a"), job(0, "b"))
	list := w.BeginList(gc.ResourceJobs)
	list.Add(compressed(w.facts["a"]), w.now)
	w.confirmFresh()
	w.takes()
	list.End(w.version, w.now)
	w.takes("a")

	list = w.BeginList(gc.ResourceJobs)
	w.upsert(job(2*time.Hour, "c"))
	w.takes()
	list.Abandon(w.now)
	w.takes("c")
}

// TestNamespaceCoveredDuringAList: the objects of a namespace that is covered after a list began are known once a merge has added them.
func TestNamespaceCoveredDuringAList(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	w.namespace("late")
	f := w.withVersions(testbuilders.Job("a").In("late").Complete(w.now).Fact())[0]
	w.facts["a"] = f
	list, version := w.BeginList(gc.ResourceJobs), w.version
	list.Add(compressed(f), w.now) // It is not covered yet.
	w.observePolicy(testbuilders.Policy("q").In("late").Default("1h"))
	merge := w.BeginMerge(gc.ResourceJobs, "late")
	w.add(merge, compressed(f), w.now)
	list.End(version, w.now)
	w.known("a")
	if ns := w.namespaceNamed("late"); ns.Listed[gc.ResourceJobs] != 0 {
		t.Error("the namespace counts as listed before the merge has ended")
	}
	merge.End(true, w.now)
	if ns := w.namespaceNamed("late"); ns.Listed[gc.ResourceJobs] == 0 {
		t.Error("the namespace does not count as listed")
	}
	w.known("a")
}

func (w *world) namespaceNamed(name string) *memory.Namespace { return w.Engine.Namespaces[name] }
