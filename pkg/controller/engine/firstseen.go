// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// Some objects do not say when they finished, such as Pods that the kubelet rejected. They count from when Winnow first saw them finished.
// Each replica counts from its own observation until it knows the mark that the leader stored.

// FinishMark says since when an object is finished that does not say so itself.
type FinishMark struct {
	Since time.Time
	// Version is the resource version of the state that was first seen to be finished.
	Version uint64
}

func (m FinishMark) equal(o FinishMark) bool { return m.Since.Equal(o.Since) && m.Version == o.Version }

// maxFinishMarks is how many FinishMarks are stored for a namespace. If there are more such objects, the time of the others starts anew
// when Winnow restarts.
const maxFinishMarks = 10 * MaxMarks

// dated returns a new state of an object with a finish time, if it has finished and does not say when. rec is what was known of the object
// before; nil if nothing was.
func (ns *namespace) dated(rec *record, compact *facts.Compact, now time.Time) *facts.Compact {
	if !compact.Undated() {
		return compact
	}
	at, seen := believable(now.Round(0).UTC(), compact.Created(), now), lifecycle.FirstSeen{Version: compact.ResourceVersion}
	switch {
	case rec != nil && rec.FirstSeen() != nil:
		at, seen = rec.FinishedAt(), *rec.FirstSeen()
	case rec != nil:
		seen.After = rec.ResourceVersion
	}
	if m, ok := ns.finishMark(compact, seen.After, now); ok {
		at, seen.Version = m.Since, m.Version
	}
	return compact.WithFirstSeen(at, seen)
}

// finishMark returns since when an object is finished by the stored marks; false if they do not say. A mark of a state before the resource
// version after is of an earlier run of the object. Like ns.mark, it keeps the object for as long as it should be, whoever wrote the mark.
func (ns *namespace) finishMark(compact *facts.Compact, after uint64, now time.Time) (out FinishMark, ok bool) {
	for _, m := range ns.marks {
		if f, marked := m.Finished[compact.UID()]; marked && f.Version > after && !f.Since.Before(out.Since) {
			out, ok = f, true
		}
	}
	out.Since = believable(out.Since, compact.Created(), now)
	return out, ok
}

// believable returns the time of a mark as far as it can be true: not before the creation of its object, and not in the future. The clock
// of the replica that stored it may be ahead.
func believable(at, created, now time.Time) time.Time {
	switch {
	case at.Before(created):
		return created
	case at.After(now.Add(freshness.ClockSkew)): // Otherwise the object would never be due.
		return now
	}
	return at
}

// adoptFinishMarks counts the objects of stored marks from the times of the marks.
func (e *Engine) adoptFinishMarks(ns *namespace, marks map[types.UID]FinishMark, now time.Time) {
	changed, spent := sets.New[*record](), false
	for uid := range marks {
		rec := e.records.get(uid)
		if rec == nil || rec.ns != ns || rec.FirstSeen() == nil {
			continue
		}
		seen := *rec.FirstSeen()
		m, ok := ns.finishMark(&rec.Compact, seen.After, now)
		if !ok || m.equal(rec.finishMark()) {
			continue
		}
		seen.Version = m.Version
		if e.replace(rec, rec.WithFirstSeen(m.Since, seen)); spent {
			changed.Insert(rec)
			continue
		}
		e.judge(rec, now)
		e.judgeDependents(rec.UID(), now)
		spent = e.spent(ns.work())
	}
	if len(changed) > 0 {
		e.queueNamespacesOf(changed)
	}
}

// countFirstSeen adds a record to the records of its namespace whose finish is marked, or removes it.
func (e *Engine) countFirstSeen(rec *record, present bool) {
	ns := rec.ns
	switch {
	case rec.FirstSeen() == nil:
		return
	case !present:
		ns.firstSeen.Delete(rec)
	case ns.firstSeen == nil:
		ns.firstSeen = sets.New(rec)
	default:
		ns.firstSeen.Insert(rec)
	}
	e.marksChanged(ns)
}

// marksFinishes reports whether there are marks of finished objects, or must be.
func (ns *namespace) marksFinishes() bool {
	for _, m := range ns.marks {
		if len(m.Finished) > 0 {
			return true
		}
	}
	return len(ns.firstSeen) > 0
}

// wantedFinishMarks returns the marks of a namespace about objects that do not say when they finished, and reports whether all of its
// objects are known. Until they are, the marks of the others stay.
func (e *Engine) wantedFinishMarks(ns *namespace) (out map[types.UID]FinishMark, known bool) {
	out, known = map[types.UID]FinishMark{}, e.allListed(ns)
	for _, m := range ns.marks {
		for uid, stored := range m.Finished {
			switch rec := e.records.get(uid); {
			case rec == nil && !known:
				out[uid] = stored
			case rec != nil && rec.ns == ns && rec.FirstSeen() != nil:
				out[uid] = rec.finishMark()
			}
		}
	}
	for rec := range ns.firstSeen {
		if len(out) >= maxFinishMarks {
			break
		}
		out[rec.UID()] = rec.finishMark()
	}
	return out, known
}

// finishMark returns the mark of a record that has one.
func (rec *record) finishMark() FinishMark {
	return FinishMark{rec.FinishedAt(), rec.FirstSeen().Version}
}

// allListed reports whether all objects of a namespace are known that policies name, also those that changes no longer wait for.
func (e *Engine) allListed(ns *namespace) bool {
	if e.unlisted(ns) != "" {
		return false
	}
	for resource, covering := range ns.covered {
		if _, err := e.kinds.For(resource); err == nil && resource != kinds.ResourceQuotas && ns.listed[resource] != covering {
			return false
		}
	}
	return true
}
