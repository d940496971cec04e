// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// These are the notices in TestEngine. The World has the stored ones. A notice counts only once it is stored, so that a leader that ends
// before that gives it again.

// toGive returns the notices that a replica would give now.
func (e *simulation) toGive(t *driver) []view.DeletionNotice {
	var out []view.DeletionNotice
	for _, name := range t.NoticeNamespaces() {
		t.read(t.NoticesToGive(name, 1000, e.Now, &out))
	}
	return out
}

// giveNotices gives the notices that must be given, and compares them with the model. What was given before, and is not stored yet, is not
// given again.
func (e *simulation) giveNotices(t *rapid.T) {
	e.both(e.stepAll)
	wants, needs := e.wants(), e.NeedsNotice()
	maps.DeleteFunc(needs, func(uid types.UID, due time.Time) bool {
		rec := e.leader.Records.Get(uid)
		if rec == nil || e.clockInDoubt {
			return true
		}
		sent := rec.NS.Announcing[rec].Sent
		kept := !slices.Contains([]string{"NotDue", "NoticePending", "WaitingForArchive"}, wants[uid].Reason)
		return kept || !sent.Given.IsZero() && !due.After(sent.At.Add(time.Second))
	})
	given := e.toGive(e.leader)
	got := map[types.UID]time.Time{}
	for _, n := range given {
		got[n.Fact.UID] = n.Due
		if lead := e.Lead(n.Fact.UID); n.At.Before(n.Due) || n.At.Before(e.Now.Add(lead)) {
			t.Fatalf("the notice of %s names %s: it is due at %s, and the notice is out for %s", n.Fact.UID, n.At, n.Due, lead)
		}
	}
	if !maps.EqualFunc(got, needs, time.Time.Equal) {
		t.Fatalf("must give notice of %v, want %v", got, needs)
	}
	e.leader.Announced(view.GivenAt(given, e.Now))
	if again := e.toGive(e.leader); len(again) > 0 {
		t.Fatalf("gives %d notices twice", len(again))
	}
}

// loseNotices removes the notices of a namespace from what is stored.
func (e *simulation) loseNotices(t *rapid.T) {
	name := types.NamespacedName{Namespace: rapid.SampledFrom(model.DrawnNamespaces).Draw(t, "namespace"), Name: "marks-0"}
	m := e.stored[name]
	if m == nil || len(m.Announced) == 0 {
		t.Skip()
	}
	without := *m
	without.Announced, without.ResourceVersion = nil, e.next()
	e.stored[name] = &without
	e.both(func(t *driver) { e.observeMarks(t, &without) })
	e.readNotices()
	e.clearDue()
}

// readNotices sets the notices of the World to the stored ones.
func (e *simulation) readNotices() {
	e.Notices = map[types.UID]model.Notice{}
	for _, m := range e.stored {
		for uid, n := range m.Announced {
			e.Notices[uid] = model.Notice(n)
		}
	}
}

// checkStoredNotices fails unless exactly the notices are stored that are needed.
func (e *simulation) checkStoredNotices(t *rapid.T) {
	e.both(e.stepAll)
	for uid := range e.KeepsNotice() {
		rec := e.leader.Records.Get(uid)
		if rec == nil {
			continue
		}
		if a := rec.NS.Announcing[rec]; a.Announced != policy.Announcement(e.Notices[uid]) {
			t.Fatalf("%s was given notice %+v, and the engine has %+v", uid, e.Notices[uid], a)
		}
	}
	for _, name := range model.DrawnNamespaces {
		changed, known := e.leader.MarksToStore(name)
		if known && slices.ContainsFunc(changed, func(m *memory.Marks) bool { return len(m.Announced) > 0 }) {
			t.Fatalf("notices of namespace %s must be stored again", name)
		}
		if !known {
			continue
		}
		for _, m := range e.stored {
			for uid := range m.Announced {
				if m.Namespace == name && !e.KeepsNotice()[uid] {
					t.Fatalf("the notice of %s is stored, and not needed", uid)
				}
			}
		}
	}
}

// checkAnnounced fails if an object is to be deleted without a notice, or before its notice was out for long enough.
func (e *simulation) checkAnnounced(t *rapid.T, orders []*deletion.Order) {
	for _, o := range orders {
		lead := e.Lead(o.Fact.UID)
		if o.Deadline != nil || lead == 0 {
			continue
		}
		if n, ok := e.Notices[o.Fact.UID]; !ok || e.Now.Before(n.Given.Add(lead)) || e.Now.Before(n.At) {
			t.Fatalf("deletes %s at %s, and it was given notice %+v, which must be out for %s", o.Fact.UID, e.Now, n, lead)
		}
	}
}
