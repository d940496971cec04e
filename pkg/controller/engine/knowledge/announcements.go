// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// maxAnnouncements is how many notices are stored for a namespace at most. If more objects need a notice, the others are kept until notices
// of these are over.
const maxAnnouncements = 10 * MaxMarks

// announces reports whether objects of a namespace have been given notice, or must be.
func announces(ns *memory.Namespace) bool {
	if len(ns.Announcing) > 0 {
		return true
	}
	for _, m := range ns.Marks {
		if len(m.Announced) > 0 {
			return true
		}
	}
	return false
}

// TouchAnnounced touches the objects whose stored notices differ between two states of stored marks; nil is no marks.
func (k *Knowledge) TouchAnnounced(ns *memory.Namespace, before, after *memory.Marks) {
	var was, is map[types.UID]policy.Announcement
	if before != nil {
		was = before.Announced
	}
	if after != nil {
		is = after.Announced
	}
	touch := func(uid types.UID) {
		if rec := k.Records.Get(uid); rec != nil && rec.NS == ns && !was[uid].Equal(is[uid]) {
			k.Touch(rec)
		}
	}
	for uid := range was {
		touch(uid)
	}
	for uid := range is {
		touch(uid)
	}
}

// SetAnnouncing notes that a record has been given notice, or must be given notice now.
func (k *Knowledge) SetAnnouncing(rec *memory.Record, a memory.Announcing) {
	ns := rec.NS
	before, ok := ns.Announcing[rec]
	if ns.Announcing == nil {
		ns.Announcing = map[*memory.Record]memory.Announcing{}
	}
	ns.Announcing[rec] = a
	if a.Pending() {
		k.ToAnnounce.Insert(ns)
	}
	if !ok || !before.Announced.Equal(a.Announced) || !before.Sent.Equal(a.Sent) {
		k.MarksChanged(ns)
	}
}

// ForgetNotice notes that a record needs no notice any more.
func (k *Knowledge) ForgetNotice(rec *memory.Record) {
	if _, ok := rec.NS.Announcing[rec]; !ok && rec.Announced().Given.IsZero() {
		return
	}
	delete(rec.NS.Announcing, rec)
	k.MarksChanged(rec.NS)
}

// PendingNotices returns the records of a namespace whose notice must be given now. There are none while not everything is known that
// decisions depend on, or what is stored, or while clocks are in doubt: then the time of a notice would be wrong.
func (k *Knowledge) PendingNotices(ns *memory.Namespace) (out []*memory.Record) {
	if !k.marksListed || k.Fresh.ClockDoubt() != "" || k.Unlisted(ns) != "" {
		return nil
	}
	room, waiting := maxAnnouncements, false
	for rec, a := range ns.Announcing {
		switch {
		case a.Pending() && rec.Announced().Fits(a.Due): // It was stored, and the record is not settled again yet.
			waiting = true
		case a.Pending():
			out = append(out, rec)
		default:
			room--
		}
	}
	if len(out) == 0 && !waiting {
		k.ToAnnounce.Delete(ns)
	}
	return out[:min(len(out), max(room, 0))]
}

// Announced notes which notices this replica has given. They count once they are stored, and the watch has reported that.
func (k *Knowledge) Announced(given map[types.UID]policy.Announcement) {
	for uid, sent := range given {
		rec := k.Records.Get(uid)
		if rec == nil {
			continue
		}
		if a, ok := rec.NS.Announcing[rec]; ok && a.Announced.Given.IsZero() && sent.Fits(a.Due) {
			a.Sent = sent
			k.SetAnnouncing(rec, a)
		}
	}
}

// wantedAnnouncements returns the notices that must be stored for the objects of a namespace, and reports whether all of its objects are
// known. Until they are, all stored notices stay.
func (k *Knowledge) wantedAnnouncements(ns *memory.Namespace) (out map[types.UID]policy.Announcement, known bool) {
	out, known = map[types.UID]policy.Announcement{}, k.allListed(ns) && !k.Settling()
	if !known {
		for _, m := range ns.Marks {
			maps.Copy(out, m.Announced)
		}
	}
	for rec, a := range ns.Announcing {
		if at := a.Announced.Later(a.Sent); !at.Given.IsZero() && len(out) < maxAnnouncements {
			out[rec.UID()] = at
		}
	}
	return out, known
}
