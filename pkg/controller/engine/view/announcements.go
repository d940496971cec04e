// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

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
	// Announcement is the notice if it is given now, and Keep says how to keep the object for longer.
	policy.Announcement
	Keep string
	// Due is when the object is due without the notice.
	Due time.Time
}

// NoticeNamespaces returns the namespaces that may have notices to be given, sorted.
func (v *View) NoticeNamespaces() []string {
	var out []string
	for ns := range v.ToAnnounce {
		out = append(out, ns.Name)
	}
	slices.Sort(out)
	return out
}

// NoticesToGive finds up to most notices that must be given in a namespace now, by when their objects are due.
func (v *View) NoticesToGive(namespace string, most int, now time.Time, out *[]DeletionNotice) memory.Reading {
	return func(pause func(struct{}) bool) {
		ns := v.Namespaces[namespace]
		if ns == nil {
			return
		}
		pending := v.PendingNotices(ns)
		due := make(map[*memory.Record]time.Time, len(pending))
		for _, rec := range pending {
			due[rec] = ns.Announcing[rec].Due
		}
		slices.SortFunc(pending, func(a, b *memory.Record) int {
			return cmp.Or(due[a].Compare(due[b]), cmp.Compare(a.UID(), b.UID()))
		})
		for _, rec := range pending[:min(most, len(pending))] {
			if n, ok := v.deletionNotice(rec, now); ok {
				*out = append(*out, n)
			}
			if !v.Proceed(ns.Work(), pause) {
				return
			}
		}
	}
}

// deletionNotice returns the notice for a record; false if there is none to be given any more.
func (v *View) deletionNotice(rec *memory.Record, now time.Time) (DeletionNotice, bool) {
	a, ok := rec.NS.Announcing[rec]
	if !ok || !a.Pending() || rec.Policy == nil || rec.Removed() {
		return DeletionNotice{}, false
	}
	effective := v.Resolve(rec)
	limits := v.LimitsOn(rec)
	r, d := effective.Decide(limits, now)
	if d.Advance.Lead == 0 || r.Policy == nil {
		return DeletionNotice{}, false
	}
	out := DeletionNotice{
		Fact: rec.Fact(), Policy: r.Policy.NamespacedName, PolicyUID: r.Policy.UID, PolicyGeneration: r.Policy.Generation,
		Rule: r.RuleName(), Reason: effective.DueReason(limits, now), Demanded: effective.NoticeBy(limits.Bounds),
		Announcement: policy.Announcing(a.Due, d.Advance.Lead, now), Due: a.Due,
	}
	if k, err := v.Table.For(rec.Resource); err == nil {
		out.Kind = k.GroupVersionKind
	}
	out.Keep = effective.KeepCommand(limits, out.At)
	return out, true
}

// GivenAt returns notices that were given at a time, by the UIDs of their objects.
func GivenAt(all []DeletionNotice, at time.Time) map[types.UID]policy.Announcement {
	out := make(map[types.UID]policy.Announcement, len(all))
	for i := range all {
		out[all[i].Fact.UID] = policy.Announcement{Given: at, At: all[i].At}
	}
	return out
}
