// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// DeletionNotice is the notice of a deletion that must be given now.
type DeletionNotice struct {
	Fact *lifecycle.Fact
	Kind schema.GroupVersionKind
	// Policy is the policy that wants the object deleted, and Rule its rule; empty for a ceiling.
	Policy           types.NamespacedName
	PolicyUID        types.UID
	PolicyGeneration int64
	Rule             string
	// Reason is why the object is due, or will be, and Demanded says which rule or guardrail demands the notice.
	Reason   policy.Reason
	Demanded string
	// Announcement is the notice if it is given now. Keep says how to keep the object for longer, and Annotation that an annotation does.
	policy.Announcement
	Keep       string
	Annotation bool
	// Due is when the object is due without the notice.
	Due     time.Time
	advance policy.Advance
}

// Required reports whether the receiver of notifications must acknowledge the notice.
func (d *DeletionNotice) Required() bool { return d.advance.Required }

// GivenAt returns the notice if it is given at another time. What people read named the time At at the earliest.
func (d *DeletionNotice) GivenAt(at time.Time) policy.Announcement {
	out := d.advance.Announcing(at)
	if out.At.Before(d.At) {
		out.At = d.At
	}
	return out
}

// AcknowledgedAt returns when the object is deleted at the earliest if the receiver of notifications acknowledges the notice, which was
// given, at a time.
func (d *DeletionNotice) AcknowledgedAt(at time.Time) time.Time {
	a := d.advance
	a.Announced.Delivered = at
	return gc.WholeSecond(a.Ends())
}

// NoticeNamespaces returns the namespaces that may have notices to be given, sorted.
func (v *View) NoticeNamespaces() []string { return namesOf(v.ToAnnounce) }

// namesOf returns the names of namespaces, sorted.
func namesOf(all sets.Set[*memory.Namespace]) []string {
	out := make([]string, 0, len(all))
	for ns := range all {
		out = append(out, ns.Name)
	}
	slices.Sort(out)
	return out
}

// NoticesToGive finds up to most notices that must be given in a namespace now, except those of policies that pause. Policies share them
// evenly, cluster policies first, and each has those that are due first.
func (v *View) NoticesToGive(
	namespace string, pauses func(of types.UID) bool, most int, now time.Time, out *[]DeletionNotice,
) memory.Reading {
	return func(pause func(struct{}) bool) {
		ns := v.Namespaces[namespace]
		if ns == nil || !v.MayAnnounce(ns) {
			return
		}
		if len(ns.ToAnnounce) == 0 {
			v.ToAnnounce.Delete(ns)
			return
		}
		if most = min(most, v.NoticeRoom(ns)); most == 0 {
			return
		}
		byPolicy := map[*policy.Policy]*earliest{}
		if !v.toAnnounce(ns, pauses, most, byPolicy, pause) {
			return
		}
		for _, rec := range share(byPolicy, most) {
			if n, ok := v.deletionNotice(rec, now); ok {
				*out = append(*out, n)
			}
			if !v.Proceed(ns.Work(), pause) {
				return
			}
		}
	}
}

// toAnnounce finds the records of a namespace whose notice must be given, by their policies. It reports false if it must not go on after a
// pause.
func (v *View) toAnnounce(
	ns *memory.Namespace, pauses func(of types.UID) bool, most int, out map[*policy.Policy]*earliest, pause func(struct{}) bool,
) bool {
	for rec := range ns.ToAnnounce {
		if p := rec.Policy; p != nil && !pauses(p.UID) {
			if out[p] == nil {
				out[p] = &earliest{most: most}
			}
			out[p].add(rec)
		}
		if !v.Proceed(1, pause) {
			return false
		}
	}
	return true
}

// earliest has those of the added records that are due first, most of them, and perhaps more.
type earliest struct {
	most int
	all  []*memory.Record
}

func (e *earliest) add(rec *memory.Record) {
	if e.all = append(e.all, rec); len(e.all) >= 2*e.most {
		e.cut()
	}
}

// cut sorts the records by when they are due, and removes those that are too many.
func (e *earliest) cut() {
	slices.SortFunc(e.all, func(a, b *memory.Record) int {
		return cmp.Or(a.At.Time().Compare(b.At.Time()), a.CompareUID(b))
	})
	e.all = e.all[:min(len(e.all), e.most)]
}

// share returns up to most records, of each policy in turn.
func share(byPolicy map[*policy.Policy]*earliest, most int) (out []*memory.Record) {
	policies := slices.SortedFunc(maps.Keys(byPolicy), func(a, b *policy.Policy) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name)) // Cluster policies have no namespace.
	})
	for _, of := range byPolicy {
		of.cut()
	}
	for i := 0; ; i++ {
		before := len(out)
		for _, p := range policies {
			if of := byPolicy[p].all; i < len(of) && len(out) < most {
				out = append(out, of[i])
			}
		}
		if len(out) == before {
			return out
		}
	}
}

// NamespacesToDeliver returns the namespaces that may have notices that the receiver of notifications must acknowledge, sorted.
func (v *View) NamespacesToDeliver() []string { return namesOf(v.ToDeliver) }

// NoticesToDeliver finds up to most notices of a namespace that the receiver of notifications must acknowledge, except those of some
// objects.
func (v *View) NoticesToDeliver(
	namespace string, except func(of types.UID) bool, most int, now time.Time, out *[]DeletionNotice,
) memory.Reading {
	return func(pause func(struct{}) bool) {
		ns := v.Namespaces[namespace]
		if ns == nil || !v.MayAnnounce(ns) { // While clocks are in doubt, an acknowledgement would not count.
			return
		}
		if len(ns.ToDeliver) == 0 {
			v.ToDeliver.Delete(ns)
		}
		for rec := range ns.ToDeliver {
			if len(*out) == most {
				return
			}
			if !except(rec.UID()) {
				if n, ok := v.undelivered(rec, now); ok {
					*out = append(*out, n)
				}
			}
			if !v.Proceed(ns.Work(), pause) {
				return
			}
		}
	}
}

// undelivered returns the notice of a record; false if the receiver need not acknowledge it any more.
func (v *View) undelivered(rec *memory.Record, now time.Time) (DeletionNotice, bool) {
	if rec.Removed() || !rec.NS.ToDeliver.Has(rec) {
		return DeletionNotice{}, false
	}
	n, ok := v.noticeOf(rec, now)
	n.Announcement = n.advance.Announced
	return n, ok && n.advance.Undelivered()
}

// deletionNotice returns the notice for a record; false if there is none to be given any more.
func (v *View) deletionNotice(rec *memory.Record, now time.Time) (DeletionNotice, bool) {
	if rec.Removed() || !rec.NS.ToAnnounce.Has(rec) {
		return DeletionNotice{}, false
	}
	n, ok := v.noticeOf(rec, now)
	return n, ok && n.advance.Wanted(now)
}

// noticeOf returns the notice for a record as if it were given now; false if no policy decides.
func (v *View) noticeOf(rec *memory.Record, now time.Time) (DeletionNotice, bool) {
	effective := v.Resolve(rec)
	limits := v.LimitsOn(rec)
	r, d := effective.Decide(limits, now)
	a := d.Advance
	if r.Policy == nil {
		return DeletionNotice{}, false
	}
	out := DeletionNotice{
		Fact: rec.Fact(), Policy: r.Policy.NamespacedName, PolicyUID: r.Policy.UID, PolicyGeneration: r.Policy.Generation,
		Rule: r.RuleName(), Reason: effective.DueReason(limits, now), Demanded: effective.NoticeBy(r, limits.Bounds),
		Announcement: a.Announcing(now), Due: a.Due, advance: a,
	}
	if k, err := v.Table.For(rec.Resource); err == nil {
		out.Kind = k.GroupVersionKind
	}
	out.Keep, out.Annotation = effective.KeepCommand(limits, out.At)
	return out, true
}

// GivenAt returns notices that were given at a time, by the UIDs of their objects.
func GivenAt(all []DeletionNotice, at time.Time) map[types.UID]policy.Announcement {
	out := make(map[types.UID]policy.Announcement, len(all))
	for i := range all {
		out[all[i].Fact.UID] = all[i].GivenAt(at)
	}
	return out
}
