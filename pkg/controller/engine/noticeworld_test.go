// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

// noticeWorld is a world whose marks are stored like those of a cluster.
type noticeWorld struct {
	*world
	stored map[types.NamespacedName]*memory.Marks
}

// apart is how much longer than policies demand a notice is out, because clocks may be apart.
const apart = 2 * time.Minute

// nobody is no policy that pauses.
func nobody(types.UID) bool { return false }

// announcing is a generation of policy p, whose rule gives notice.
func announcing(generation int64, ttl, notice gc.TTL) *testbuilders.PolicyBuilder {
	return testbuilders.Policy("p").Generation(generation).Rules(testbuilders.Rule("r", ttl).Notice(notice))
}

func newNoticeWorld(t *testing.T, policies ...*testbuilders.PolicyBuilder) *noticeWorld {
	w := &noticeWorld{newWorld(t, policies...), map[types.NamespacedName]*memory.Marks{}}
	w.list()
	return w
}

func (w *noticeWorld) list() {
	for _, m := range w.stored {
		w.SetMarks(m, w.now)
	}
	w.MarksListed(sets.KeySet(w.stored), w.now)
	w.confirmFresh()
}

// restart starts another engine in the same cluster, with these policies.
func (w *noticeWorld) restart(policies ...*testbuilders.PolicyBuilder) {
	before := w.world
	w.world = newWorld(w.T)
	w.now, w.version = before.now, before.version
	for _, p := range policies {
		w.policy(p)
	}
	for _, f := range before.facts {
		w.upsert(f)
	}
	w.listCovered()
	w.confirmFresh()
}

// startAgain starts another engine, which knows a policy and the stored marks, but no objects yet.
func (w *noticeWorld) startAgain(p *testbuilders.PolicyBuilder) {
	w.world = newWorld(w.T)
	w.observePolicy(p)
	w.list()
}

// keepsNotices lists what is not listed yet, and reports whether any notice stays stored. None must be given.
func (w *noticeWorld) keepsNotices() bool {
	w.Helper()
	w.listCovered()
	w.confirmFresh()
	w.gives()
	w.store()
	return len(w.stored) > 0
}

// gives gives exactly the notices of these objects, and returns them.
func (w *noticeWorld) gives(names ...string) []view.DeletionNotice {
	w.Helper()
	var all []view.DeletionNotice
	for _, ns := range w.NoticeNamespaces() {
		w.read(w.NoticesToGive(ns, nobody, 1000, w.now, &all))
	}
	var got []string
	for _, n := range all {
		got = append(got, n.Fact.Name)
	}
	if slices.Sort(got); !slices.Equal(got, names) {
		w.Fatalf("gives notice of %q, want %q", got, names)
	}
	w.Announced(view.GivenAt(all, w.now), w.now)
	return all
}

// store stores the marks that must be stored, and observes them.
func (w *noticeWorld) store() {
	w.Helper()
	all, known := w.MarksToStore(testbuilders.Home, w.now)
	if !known {
		w.Fatal("the marks are not known")
	}
	w.write(all)
}

func (w *noticeWorld) write(all []*memory.Marks) {
	for _, m := range all {
		if m.Len() == 0 {
			delete(w.stored, m.NamespacedName)
			w.RemoveMarks(m.NamespacedName, w.now)
			continue
		}
		m.ResourceVersion = w.next()
		w.stored[m.NamespacedName] = m
		w.SetMarks(m, w.now)
	}
	w.confirmFresh()
}

// onlyMarks returns the name of the stored marks.
func (w *noticeWorld) onlyMarks() (out types.NamespacedName) {
	for out = range w.stored {
	}
	return out
}

// announces gives the notices of these objects, and stores them.
func (w *noticeWorld) announces(names ...string) {
	w.Helper()
	w.gives(names...)
	w.store()
}

// goesAfter fails unless the object is taken exactly after this time, and not before.
func (w *noticeWorld) goesAfter(d time.Duration, name string) {
	w.Helper()
	w.pass(d - time.Millisecond)
	w.takes()
	w.pass(time.Millisecond)
	w.takes(name)
}

func (w *noticeWorld) candidate(name string) gc.CleanupCandidateStatus {
	return w.Candidate(w.Records.Get(w.facts[name].UID), true).Status
}
