// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/objects/references"
)

const usingPods = "pods"

// old is how long ago the ConfigMaps of these tests were created.
const old = 100 * time.Hour

// unusedWorld is a world with a policy that deletes ConfigMaps a day after their last use. Referrers are listed, and stored has the stored
// marks.
type unusedWorld struct {
	*world
	stored map[types.NamespacedName]*memory.Marks
}

func unusedPolicy() *testbuilders.PolicyBuilder {
	return testbuilders.Policy("p").Rules(testbuilders.Rule("r", "24h").For(gc.ResourceConfigMaps).Labelled("temporary", "yes").AfterUnused())
}

func newUnusedWorld(t *testing.T) *unusedWorld {
	w := &unusedWorld{world: newWorld(t), stored: map[types.NamespacedName]*memory.Marks{}}
	w.start()
	w.listCovered()
	w.MarksListed(nil, w.now)
	return w
}

// start observes everything except ConfigMaps and marks.
func (w *unusedWorld) start() {
	w.SetKinds(drawnKinds, w.now)
	for _, resource := range drawnKinds.Deletable() {
		k, _ := drawnKinds.For(resource)
		w.StartObserving(k)
	}
	w.observePolicy(unusedPolicy())
	w.listReferrers()
	w.confirmFresh()
}

func (w *unusedWorld) listReferrers() {
	w.SetReferrerSources([]string{usingPods}, "", w.now)
	w.BeginReferrers(usingPods, w.now)
	w.EndReferrers(usingPods, w.now)
}

// restart replaces the engine with a new one that has observed the same, except the marks.
func (w *unusedWorld) restart() {
	facts := w.facts
	next := newWorld(w.T)
	next.now, next.version = w.now, w.version
	w.world = next
	w.start()
	w.listCovered()
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		w.upsert(facts[name])
	}
}

func configMap(name string) *lifecycle.Fact {
	return &lifecycle.Fact{
		Resource: gc.ResourceConfigMaps, Namespace: testbuilders.Home, Name: name, UID: types.UID("uid-" + name),
		Created: testbuilders.Now.Add(-old), Labels: labels.Set{"temporary": "yes"},
	}
}

// configMaps observes ConfigMaps.
func (w *unusedWorld) configMaps(names ...string) {
	for _, name := range names {
		w.upsert(configMap(name))
	}
}

// use makes a Pod refer to a ConfigMap, and unuse removes that Pod.
func (w *unusedWorld) use(name string) {
	key := references.Reference{To: references.ConfigMaps, Namespace: testbuilders.Home, Name: name}.Key()
	w.SetReferring([]knowledge.Referring{{
		Source: usingPods, Referrer: references.Referrer{UID: types.UID("pod-" + name), Namespace: testbuilders.Home, Name: name},
		Keys: []references.Key{key},
	}}, w.now)
}

func (w *unusedWorld) unuse(name string) { w.RemoveReferrer(usingPods, types.UID("pod-"+name), w.now) }

// takeUnmarked fails unless the namespace is the only one with marks that may be out of date.
func (w *unusedWorld) takeUnmarked(want ...string) {
	w.Helper()
	if got := w.TakeUnmarked(); !slices.Equal(got, want) {
		w.Fatalf("other marks may have to be stored for %q, want %q", got, want)
	}
}

// wantMarks fails unless these marks must be stored.
func (w *unusedWorld) wantMarks(want ...memory.Marks) {
	w.Helper()
	got, known := w.MarksToStore(testbuilders.Home, w.now)
	if !known {
		w.Fatal("the marks are not known")
	}
	same := func(a *memory.Marks, b memory.Marks) bool {
		return a.NamespacedName == b.NamespacedName && a.ResourceVersion == b.ResourceVersion &&
			maps.EqualFunc(a.Unused, b.Unused, time.Time.Equal) && maps.EqualFunc(a.Finished, b.Finished, memory.FinishMark.Equal) &&
			maps.EqualFunc(a.Matched, b.Matched, memory.MatchMark.Equal)
	}
	if !slices.EqualFunc(got, want, same) {
		w.Fatalf("got these marks to store: %v\nwant %v", dereferenced(got), want)
	}
}

func dereferenced(all []*memory.Marks) []memory.Marks {
	var out []memory.Marks
	for _, m := range all {
		out = append(out, *m)
	}
	return out
}

// store stores the marks that must be stored, and observes them.
func (w *unusedWorld) store() {
	w.Helper()
	marks, known := w.MarksToStore(testbuilders.Home, w.now)
	if !known {
		w.Fatal("the marks are not known")
	}
	for _, m := range marks {
		w.write(m)
	}
}

// write stores marks as the cluster does, and observes them.
func (w *unusedWorld) write(m *memory.Marks) {
	w.Helper()
	var present string
	if stored := w.stored[m.NamespacedName]; stored != nil {
		present = stored.ResourceVersion
	}
	if m.ResourceVersion != present {
		w.Fatalf("%s has resource version %q, got a write over %q", m.Name, present, m.ResourceVersion)
	}
	if m.Len() == 0 {
		delete(w.stored, m.NamespacedName)
		w.RemoveMarks(m.NamespacedName, w.now)
		return
	}
	m.ResourceVersion = w.next()
	w.stored[m.NamespacedName] = m
	w.SetMarks(m, w.now)
}

// version0 is the resource version of the marks with number 0.
func (w *unusedWorld) version0() string { return w.stored[marks("").NamespacedName].ResourceVersion }

// list lists the stored marks.
func (w *unusedWorld) list() {
	for _, m := range w.stored {
		w.SetMarks(m, w.now)
	}
	w.MarksListed(sets.KeySet(w.stored), w.now)
}

// marks are the marks of the namespace with number 0. objects alternate between the name of an object, and how long ago it became unused.
func marks(resourceVersion string, objects ...any) memory.Marks {
	out := memory.Marks{
		NamespacedName:  types.NamespacedName{Namespace: testbuilders.Home, Name: "marks-0"},
		ResourceVersion: resourceVersion, Unused: map[types.UID]time.Time{},
	}
	for i := 0; i < len(objects); i += 2 {
		out.Unused["uid-"+types.UID(objects[i].(string))] = testbuilders.Now.Add(-objects[i+1].(time.Duration))
	}
	return out
}
