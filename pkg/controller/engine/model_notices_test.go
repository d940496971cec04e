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

// These are the notices in TestEngine. The World has the stored ones that count for the leader. A notice counts only once it is stored, which
// may be long after people were told, or never, so that a leader that ends before that gives it again.

// simNotices are what people were told, and what does not count any more.
type simNotices struct {
	// told has the last notice of each object, until the object needs none any more, or is due later than it says.
	told map[types.UID]model.Notice
	// forgotten are the stored notices of objects that needed none since the replica started.
	forgotten map[*driver]map[types.UID]model.Notice
}

// storedNotices returns all notices that are stored.
func (e *simulation) storedNotices() map[types.UID]model.Notice {
	out := map[types.UID]model.Notice{}
	for _, m := range e.stored {
		for uid, n := range m.Announced {
			out[uid] = model.Notice(n)
		}
	}
	return out
}

// startNotices is called when a replica starts, or when another one leads. It forgets nothing that is stored.
func (e *simulation) startNotices(t *driver, started bool) {
	if e.forgotten == nil {
		e.forgotten, e.told = map[*driver]map[types.UID]model.Notice{}, map[types.UID]model.Notice{}
	}
	if started {
		e.forgotten[t] = map[types.UID]model.Notice{}
	}
	e.forgetNotices()
	if t != e.leader {
		return
	}
	e.readNotices()
	stored := e.storedNotices()
	maps.DeleteFunc(e.told, func(uid types.UID, n model.Notice) bool {
		return !stored[uid].Given.Equal(n.Given) // This replica cannot know of it. It gives notice again, if that is still demanded.
	})
	for uid, n := range e.Notices {
		if _, ok := e.told[uid]; !ok {
			e.told[uid] = n // This replica cannot know that the one before it had forgotten it.
		}
	}
}

// forgetNotices is called after each event that both replicas have settled.
func (e *simulation) forgetNotices() {
	keeps := e.KeepsNotices(e.told)
	maps.DeleteFunc(e.told, func(uid types.UID, _ model.Notice) bool { return !keeps[uid] })
	stored := e.storedNotices()
	keeps = e.KeepsNotices(stored)
	for uid, n := range stored {
		for _, forgotten := range e.forgotten {
			if !keeps[uid] {
				forgotten[uid] = n
			}
		}
	}
	e.readNotices()
}

// readNotices sets the notices of the World to the stored ones that the leader has not forgotten.
func (e *simulation) readNotices() {
	e.Notices = e.storedNotices()
	maps.DeleteFunc(e.Notices, func(uid types.UID, n model.Notice) bool {
		forgotten, ok := e.forgotten[e.leader][uid]
		return ok && policy.Announcement(forgotten).Equal(policy.Announcement(n))
	})
}

// onlyTold reports whether the leader has told people of the deletion of an object, and does not know yet that this is stored.
func (e *simulation) onlyTold(uid types.UID) bool {
	rec := e.leader.Records.Get(uid)
	if rec == nil {
		return false
	}
	_, sent := rec.NS.Sent[rec]
	_, counts := e.told[uid]
	return sent && counts
}

// sameNotices reports whether both replicas know the same about the notice of an object. One that has started since does not know what was
// forgotten before.
func (e *simulation) sameNotices(uid types.UID) bool {
	n, forgotten := e.forgotten[e.leader][uid]
	other, forgottenToo := e.forgotten[e.follower][uid]
	return !e.onlyTold(uid) && forgotten == forgottenToo && policy.Announcement(n).Equal(policy.Announcement(other))
}

// toGive returns the notices that a replica would give now.
func (e *simulation) toGive(t *driver) []view.DeletionNotice {
	var out []view.DeletionNotice
	for _, name := range t.NoticeNamespaces() {
		t.read(t.NoticesToGive(name, nobody, 1000, e.Now, &out))
	}
	return out
}

// giveNotices gives the notices that must be given, and compares them with the model. What was given before, and is not stored yet, is not
// given again.
func (e *simulation) giveNotices(t *rapid.T) {
	e.both(e.stepAll)
	wants, needs := e.wants(), e.NeedsNotice()
	maps.DeleteFunc(needs, func(uid types.UID, _ time.Time) bool {
		rec := e.leader.Records.Get(uid)
		if rec == nil || e.clockInDoubt {
			return true
		}
		kept := !slices.Contains([]string{"NotDue", "NoticePending", "WaitingForArchive"}, wants[uid].Reason)
		return kept || e.onlyTold(uid)
	})
	given := e.toGive(e.leader)
	got := map[types.UID]time.Time{}
	for _, n := range given {
		got[n.Fact.UID] = n.Due
		if d := e.Demanded(n.Fact.UID); n.At.Before(n.Due) || n.At.Before(e.Now.Add(d.Least)) {
			t.Fatalf("the notice of %s names %s: it is due at %s, and needs %+v", n.Fact.UID, n.At, n.Due, d)
		}
	}
	if !maps.EqualFunc(got, needs, time.Time.Equal) {
		t.Fatalf("must give notice of %v, want %v", got, needs)
	}
	e.leader.Announced(view.GivenAt(given, e.Now), e.Now)
	for _, n := range given {
		e.told[n.Fact.UID] = model.Notice(n.GivenAt(e.Now))
	}
	if again := e.toGive(e.leader); len(again) > 0 {
		t.Fatalf("gives %d notices twice", len(again))
	}
}

// deliverNotices lets the receiver acknowledge some of the notices that it must, and compares these with the model.
func (e *simulation) deliverNotices(t *rapid.T) {
	e.both(e.stepAll)
	must, wants := e.MustDeliver(), e.wants()
	for uid := range must {
		kept := !slices.Contains([]string{"NotDue", "NoticePending", "WaitingForArchive"}, wants[uid].Reason)
		if kept || e.onlyTold(uid) || e.clockInDoubt { // Then an acknowledgement would not count.
			delete(must, uid)
		}
	}
	var all []view.DeletionNotice
	for _, name := range e.leader.NamespacesToDeliver() {
		e.leader.read(e.leader.NoticesToDeliver(name, nobody, 1000, e.Now, &all))
	}
	for _, n := range all {
		if !must[n.Fact.UID] || !n.Given.Equal(e.Notices[n.Fact.UID].Given) {
			t.Fatalf("the receiver must acknowledge %+v of %s; the model says %t", n.Announcement, n.Fact.UID, must[n.Fact.UID])
		}
		delete(must, n.Fact.UID)
		if !rapid.Bool().Draw(t, "the receiver is down") {
			e.leader.NoticeDelivered(n.Fact.UID, n.Given, n.AcknowledgedAt(e.Now), e.Now)
		}
	}
	if len(must) > 0 {
		t.Fatalf("nobody asks the receiver to acknowledge %v", must)
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

// checkStoredNotices fails unless exactly the notices are stored that are needed.
func (e *simulation) checkStoredNotices(t *rapid.T) {
	e.both(e.stepAll)
	e.forgetNotices()
	for uid, n := range e.Notices {
		rec := e.leader.Records.Get(uid)
		if rec != nil && rec.Announced() != policy.Announcement(n) {
			t.Fatalf("%s was given notice %+v, and the engine has %+v", uid, n, rec.Announced())
		}
	}
	for _, name := range model.DrawnNamespaces {
		changed, known := e.leader.MarksToStore(name, e.Now)
		if !known {
			continue
		}
		if slices.ContainsFunc(changed, func(m *memory.Marks) bool { return len(m.Announced) > 0 }) {
			t.Fatalf("notices of namespace %s must be stored again", name)
		}
		for _, m := range e.stored {
			for uid := range m.Announced {
				if _, counts := e.Notices[uid]; m.Namespace == name && !counts {
					t.Fatalf("the notice of %s is stored, and not needed", uid)
				}
			}
		}
	}
}

// checkAnnounced fails if an object is to be deleted of which nobody was told, or before people were told for long enough, or before the
// time that they were told. What they were told before somebody kept the object does not count.
func (e *simulation) checkAnnounced(t *rapid.T, orders []*deletion.Order) {
	for _, o := range orders {
		d := e.Demanded(o.Fact.UID)
		n, told := e.told[o.Fact.UID]
		if d.Limited {
			d.Lead, n.At = d.Least, time.Time{} // A ceiling or maxTTL respects the guardrails alone.
		}
		if o.Deadline != nil || d.Lead == 0 && !told {
			continue
		}
		if !told || e.Now.Before(n.Given.Add(d.Lead)) || e.Now.Before(n.At) {
			t.Fatalf("deletes %s at %s, and people were told %+v; it needs %+v", o.Fact.UID, e.Now, n, d)
		}
		if stored := e.Notices[o.Fact.UID]; d.Delivered && !d.Limited && (stored.Delivered.IsZero() || e.Now.Before(stored.Delivered.Add(d.Lead))) {
			t.Fatalf("deletes %s at %s, and the receiver acknowledged %+v; it needs %+v", o.Fact.UID, e.Now, stored, d)
		}
	}
}
