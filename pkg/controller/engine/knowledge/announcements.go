// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"cmp"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// maxAnnouncements is how many notices are stored for a namespace at most, and maxAllAnnouncements how many for all. If more objects need a
// notice, the others are kept until notices of these are over.
const (
	maxAnnouncements    = 10 * MaxMarks
	maxAllAnnouncements = 10 * maxAnnouncements
)

// announces reports whether objects of a namespace have been given notice, or must be.
func announces(ns *memory.Namespace) bool {
	return len(ns.ToAnnounce) > 0 || len(ns.Sent) > 0 || storedNotices(ns) > 0
}

// storedNotices returns how many notices are stored for a namespace, also of objects that are gone.
func storedNotices(ns *memory.Namespace) (n int) {
	for _, m := range ns.Marks {
		n += len(m.Announced)
	}
	return n
}

// AdoptNotices prepares a new state of stored marks, which replaces another; either is nil if there is none. It touches the objects whose
// notices have changed. A notice that was forgotten stays forgotten until it is gone. Only Winnow may write marks, but nothing goes too
// early by a notice that somebody else wrote with times that Winnow never writes: such a notice is forgotten.
func (k *Knowledge) AdoptNotices(ns *memory.Namespace, before, after *memory.Marks, now time.Time) {
	var none memory.Marks
	was, is := cmp.Or(before, &none), cmp.Or(after, &none)
	k.announced += len(is.Announced) - len(was.Announced)
	for uid, n := range is.Announced {
		same := was.Announced[uid].Equal(n)
		again := was.Announced[uid].Given.Equal(n.Given) // Perhaps it was acknowledged since.
		if again && was.Forgotten.Has(uid) || !same && !n.Believable(now.Add(freshness.ClockSkew)) {
			is.Forget(uid)
		}
		if !same {
			k.noticeChanged(ns, uid, n)
		}
	}
	for uid := range was.Announced {
		if _, still := is.Announced[uid]; !still {
			k.noticeChanged(ns, uid, policy.Announcement{})
		}
	}
}

// noticeChanged handles a change of the stored notice of an object.
func (k *Knowledge) noticeChanged(ns *memory.Namespace, uid types.UID, n policy.Announcement) {
	rec := k.Records.Get(uid)
	if rec == nil || rec.NS != ns {
		return
	}
	if !n.Given.IsZero() {
		delete(ns.Sent, rec) // It is stored, or another replica has led and given another notice.
	}
	k.Touch(rec)
}

// ToldNotice notes that a record was given notice, so that it need not be given now.
func (k *Knowledge) ToldNotice(rec *memory.Record) { rec.NS.ToAnnounce.Delete(rec) }

// NeedNotice notes that a record must be given notice now.
func (k *Knowledge) NeedNotice(rec *memory.Record) {
	ns := rec.NS
	if ns.ToAnnounce == nil {
		ns.ToAnnounce = sets.Set[*memory.Record]{}
	}
	ns.ToAnnounce.Insert(rec)
	k.ToAnnounce.Insert(ns)
}

// NoteDelivery notes whether the receiver of notifications must acknowledge the notice of a record now.
func (k *Knowledge) NoteDelivery(rec *memory.Record, must bool) {
	ns := rec.NS
	if !must {
		ns.ToDeliver.Delete(rec)
		return
	}
	if ns.ToDeliver == nil {
		ns.ToDeliver = sets.Set[*memory.Record]{}
	}
	ns.ToDeliver.Insert(rec)
	k.ToDeliver.Insert(ns)
}

// NoticeDelivered notes that the receiver of notifications acknowledged at a time the notice of an object that was given at another time.
// named is the time that the receiver read, which is promised from then on too. It counts once that is stored, like the notice itself. If
// clocks are in doubt, it does not, so that the notice is delivered again.
func (k *Knowledge) NoticeDelivered(uid types.UID, given, named, at time.Time) {
	rec := k.Records.Get(uid)
	if rec == nil || !rec.NS.ToDeliver.Has(rec) || k.Fresh.ClockDoubt() != "" {
		return
	}
	n := rec.Announced()
	if !n.Given.Equal(given) {
		return // It is another notice, of which the receiver does not know.
	}
	if n.Delivered = at; named.After(n.At) {
		n.At = named
	}
	rec.NS.ToDeliver.Delete(rec)
	k.send(rec, n)
}

// send notes a notice that must be stored.
func (k *Knowledge) send(rec *memory.Record, n policy.Announcement) {
	ns := rec.NS
	if ns.Sent == nil {
		ns.Sent = map[*memory.Record]policy.Announcement{}
	}
	ns.Sent[rec] = n
	k.Touch(rec) // It may have changed since, so that the notice does not fit.
	k.MarksChanged(ns)
}

// ForgetNotice notes that no notice of a record counts any more. One that is still stored does not count again, whatever happens to the
// record before the storage has changed.
func (k *Knowledge) ForgetNotice(rec *memory.Record) {
	ns := rec.NS
	_, changed := ns.Sent[rec]
	delete(ns.Sent, rec)
	ns.ToAnnounce.Delete(rec)
	ns.ToDeliver.Delete(rec)
	for _, m := range ns.Marks {
		if _, ok := m.AnnouncedIn(rec.UID()); ok {
			m.Forget(rec.UID())
			changed = true
		}
	}
	if changed {
		k.MarksChanged(ns)
	}
}

// KeepNotice keeps a notice that does not fit its record until everything is listed that this depends on. After a start or a restore, the
// controller of the object may be missing, what fills its limit, or a newer state. It reports false if everything is listed, or if there is
// no notice.
func (k *Knowledge) KeepNotice(rec *memory.Record) bool {
	ns := rec.NS
	if rec.Announced().Given.IsZero() || k.Unlisted(ns) == "" {
		return false
	}
	ns.ToDeliver.Delete(rec)
	if k.noticesKept[ns] == nil {
		k.noticesKept[ns] = sets.Set[*memory.Record]{}
	}
	k.noticesKept[ns].Insert(rec)
	return true
}

// TouchKeptNotices touches the records of KeepNotice in the namespaces in which everything is known by now.
func (k *Knowledge) TouchKeptNotices() {
	for ns, kept := range k.noticesKept {
		if len(ns.Records) > 0 && k.Unlisted(ns) != "" {
			continue
		}
		for rec := range kept {
			k.Touch(rec)
		}
		delete(k.noticesKept, ns)
	}
}

// MayAnnounce reports whether notices can be given in a namespace. They cannot while not everything is known that decisions depend on, or
// what is stored, or while clocks are in doubt: then the time of a notice would be wrong.
func (k *Knowledge) MayAnnounce(ns *memory.Namespace) bool {
	return k.marksListed && k.Fresh.ClockDoubt() == "" && k.Unlisted(ns) == ""
}

// NoticeRoom returns how many more notices can be stored for a namespace.
func (k *Knowledge) NoticeRoom(ns *memory.Namespace) int {
	return max(min(maxAnnouncements-storedNotices(ns)-len(ns.Sent), maxAllAnnouncements-k.announced), 0)
}

// Announced notes which notices this replica has given. They count once they are stored, and the watch has reported that. It reports false
// if clocks have come into doubt meanwhile: then the notices must be given again.
func (k *Knowledge) Announced(given map[types.UID]policy.Announcement) bool {
	if k.Fresh.ClockDoubt() != "" {
		return false
	}
	for uid, sent := range given {
		rec := k.Records.Get(uid)
		if rec == nil || !rec.NS.ToAnnounce.Has(rec) {
			continue
		}
		rec.NS.ToAnnounce.Delete(rec)
		k.send(rec, sent)
	}
	return true
}

// NoticeDoubt returns why stored notices may have changed without this replica knowing; empty if they have not.
func (k *Knowledge) NoticeDoubt() string {
	why := cmp.Or(k.Watches.Failing(kinds.UsageMarks), k.Watches.Stale(kinds.UsageMarks))
	if k.marksDoubted && !k.Following {
		why = cmp.Or(why, "the notices that are stored have not been read since this replica leads")
	}
	return why
}

// DoubtMarks puts the stored notices in doubt until ConfirmMarks compares them: another replica has led meanwhile.
func (k *Knowledge) DoubtMarks() {
	k.marksDoubted = true
	k.touchNotified()
}

// ConfirmMarks compares the stored marks, which were read at a resource version, with memory. It reports whether memory is at least as new.
func (k *Knowledge) ConfirmMarks(versions map[types.NamespacedName]string, read string) bool {
	for name, version := range versions {
		ns := k.Namespaces[name.Namespace]
		if ns == nil || ns.Marks[name.Name] == nil {
			return false
		}
		if known := ns.Marks[name.Name].ResourceVersion; known != version && !memory.OlderVersion(read, known) {
			return false // Memory is older, or has a state from before a restored backup.
		}
	}
	for _, ns := range k.Namespaces {
		for name, m := range ns.Marks {
			_, present := versions[types.NamespacedName{Namespace: ns.Name, Name: name}]
			if !present && !memory.OlderVersion(read, m.ResourceVersion) {
				return false // It is gone, and memory still has it.
			}
		}
	}
	if k.marksDoubted {
		k.marksDoubted = false
		k.touchNotified()
	}
	return true
}

// touchNotified touches the records that were given notice.
func (k *Knowledge) touchNotified() {
	for _, ns := range k.Namespaces {
		for _, m := range ns.Marks {
			for uid := range m.Announced {
				if rec := k.Records.Get(uid); rec != nil && rec.NS == ns {
					k.Touch(rec)
				}
			}
		}
	}
}

// keptNotices returns the stored notices of marks that must stay stored, without those that were sent again, and reports whether that is
// all of them. Notices of unknown objects stay until all objects are known.
func (k *Knowledge) keptNotices(ns *memory.Namespace, m *memory.Marks, sent map[types.UID]policy.Announcement, known bool) (
	out map[types.UID]policy.Announcement, same bool,
) {
	keeps := func(uid types.UID) bool {
		rec := k.Records.Get(uid)
		return !m.Forgotten.Has(uid) && (rec != nil && rec.NS == ns || rec == nil && !known)
	}
	same = true
	for uid := range m.Announced {
		_, again := sent[uid]
		same = same && keeps(uid) && !again
	}
	if same {
		return m.Announced, true
	}
	out = maps.Clone(m.Announced)
	for uid := range m.Announced {
		if n, again := sent[uid]; again {
			out[uid] = n
			delete(sent, uid)
		} else if !keeps(uid) {
			delete(out, uid)
		}
	}
	return out, false
}

// sentNotices returns the notices that this replica has given and that are not stored yet.
func sentNotices(ns *memory.Namespace) map[types.UID]policy.Announcement {
	out := make(map[types.UID]policy.Announcement, len(ns.Sent))
	for rec, n := range ns.Sent {
		out[rec.UID()] = n
	}
	return out
}
