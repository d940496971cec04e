// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
)

// maxFinishMarks is how many FinishMarks are stored for a namespace. If there are more such objects, the time of the others starts again
// when Winnow restarts.
const maxFinishMarks = 10 * MaxMarks

// Dated adds a finish time to a new state of an object that has finished but does not say when, and returns any other state as it is. rec
// is the record of the object; nil if the object is new.
func Dated(ns *memory.Namespace, rec *memory.Record, compact *facts.Compact, now time.Time) *facts.Compact {
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
	if m, ok := FinishMark(ns, compact, seen.After, now); ok {
		at, seen.Version = m.Since, m.Version
	}
	return compact.WithFirstSeen(at, seen)
}

// FinishMark returns since when an object is finished according to the stored marks; false if they do not have the object. A mark of a
// state before the resource version after belongs to an earlier run of the object. Like Mark, it makes no object due too early, whoever
// wrote the mark.
func FinishMark(ns *memory.Namespace, compact *facts.Compact, after uint64, now time.Time) (out memory.FinishMark, ok bool) {
	for _, m := range ns.Marks {
		if f, marked := m.Finished[compact.UID()]; marked && f.Version > after && !f.Since.Before(out.Since) {
			out, ok = f, true
		}
	}
	out.Since = believable(out.Since, compact.Created(), now)
	return out, ok
}

// believable returns the time of a mark, but no time before the creation of its object, and none in the future: the clock of the replica
// that stored the mark may be ahead.
func believable(at, created, now time.Time) time.Time {
	switch {
	case at.Before(created):
		return created
	case at.After(now.Add(freshness.ClockSkew)): // Otherwise the object would never be due.
		return now
	}
	return at
}

// CountFirstSeen adds a record to FirstSeen of its namespace, or removes it, if Winnow noted when the object finished.
func (k *Knowledge) CountFirstSeen(rec *memory.Record, present bool) {
	ns := rec.NS
	switch {
	case rec.FirstSeen() == nil:
		return
	case !present:
		ns.FirstSeen.Delete(rec)
	case ns.FirstSeen == nil:
		ns.FirstSeen = sets.New(rec)
	default:
		ns.FirstSeen.Insert(rec)
	}
	k.MarksChanged(ns)
}

// marksFinishes reports whether marks of finished objects are stored, or must be stored.
func marksFinishes(ns *memory.Namespace) bool {
	for _, m := range ns.Marks {
		if len(m.Finished) > 0 {
			return true
		}
	}
	return len(ns.FirstSeen) > 0
}

// wantedFinishMarks returns the marks of a namespace about objects that do not say when they finished, and reports whether all of its
// objects are known. Until they are, the marks of the others stay.
func (k *Knowledge) wantedFinishMarks(ns *memory.Namespace) (out map[types.UID]memory.FinishMark, known bool) {
	out, known = map[types.UID]memory.FinishMark{}, k.allListed(ns)
	for _, m := range ns.Marks {
		for uid, stored := range m.Finished {
			switch rec := k.Records.Get(uid); {
			case rec == nil && !known:
				out[uid] = stored
			case rec != nil && rec.NS == ns && rec.FirstSeen() != nil:
				out[uid] = rec.FinishMark()
			}
		}
	}
	for rec := range ns.FirstSeen {
		if len(out) >= maxFinishMarks {
			break
		}
		out[rec.UID()] = rec.FinishMark()
	}
	return out, known
}

// allListed reports whether all objects of the resources that policies name are known in a namespace, even of resources that changes no
// longer wait for.
func (k *Knowledge) allListed(ns *memory.Namespace) bool {
	if k.Unlisted(ns) != "" {
		return false
	}
	for resource, covering := range ns.Covered {
		if _, err := k.Table.For(resource); err == nil && resource != kinds.ResourceQuotas && ns.Listed[resource] != covering {
			return false
		}
	}
	return true
}
