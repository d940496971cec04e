// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/rules/capacity"
)

// touched has everything that events have changed and Step has not settled yet.
type touched struct {
	// Records[next:] are single objects.
	Records []*Record
	next    int
	// Counting are the namespaces in which all objects must be counted, and Settling the namespaces in which all objects must be settled.
	// Settling includes all of Counting. In the namespaces of Applying, holds have begun or ended, and must be applied to all objects.
	Counting, Settling, Applying sets.Set[*Namespace]
	// Restarted are the namespaces that changed as a whole while they were settled. They begin anew one by one, when nothing else is left, so
	// that nobody who changes a namespace again and again keeps others waiting.
	Restarted sets.Set[*Namespace]
	// What the present event has found out, see Engine.takeIn: Changed are the namespaces with new changes, Uncovered the namespaces where
	// fewer resources need to be observed, and Emptied the namespaces that may have become empty.
	Changed, Uncovered, Emptied sets.Set[*Namespace]
	// Assessable is set if changes may be assessed that could not be assessed before.
	Assessable bool
	// Resumable is set if deletions may be resumed that were paused: work was left, or a List was open.
	Resumable bool
}

func newTouched() touched {
	return touched{
		Counting: sets.New[*Namespace](), Settling: sets.New[*Namespace](), Applying: sets.New[*Namespace](), Restarted: sets.New[*Namespace](),
		Changed: sets.New[*Namespace](), Uncovered: sets.New[*Namespace](), Emptied: sets.New[*Namespace](),
	}
}

// keepCapacity is the largest capacity that Records keeps when it is empty.
const keepCapacity = 4096

// add adds a record, unless it is there already.
func (t *touched) add(rec *Record) {
	if !rec.Flags.Has(isTouched) {
		rec.Flags.Set(isTouched, true)
		rec.NS.touched++
		t.Records = append(t.Records, rec)
	}
}

// Pop removes and returns the next record; nil if there is none.
func (t *touched) Pop() *Record {
	if t.next == len(t.Records) {
		return nil
	}
	rec := t.Records[t.next]
	t.Records[t.next] = nil
	if t.next++; t.next == len(t.Records) {
		if t.Records, t.next = t.Records[:0], 0; cap(t.Records) > keepCapacity {
			t.Records = nil
		}
	}
	rec.Untouch()
	return rec
}

// Untouch is called when the record was removed from touched.
func (rec *Record) Untouch() {
	rec.Flags.Set(isTouched, false)
	rec.NS.touched--
}

// Touch says that an object has changed, or something that it depends on, so that it must be counted and settled.
func (m *Memory) Touch(rec *Record) {
	rec.Flags.Set(MustCount, true)
	m.Touched.add(rec)
}

// TouchOver says that Over of a member has changed, so that its object must be settled.
func (m *Memory) TouchOver(member *capacity.Member[*Record]) {
	rec := member.Value
	rec.Flags.Set(OverChanged, true)
	if int(rec.Position) >= rec.NS.Undecided {
		m.Touched.add(rec)
	}
}

// TouchDependents says that a controller has changed.
func (m *Memory) TouchDependents(controller types.UID) {
	if dependents := m.Dependents[controller]; dependents != nil {
		for rec := range dependents.All() {
			m.Touch(rec)
		}
	}
}

// TouchNamespaces says that something has changed that may affect all objects of some namespaces.
func (m *Memory) TouchNamespaces(all []*Namespace) {
	for _, ns := range all {
		m.Invalidate(ns)
		if t := &m.Touched; t.Restarted.Has(ns) || t.Settling.Has(ns) && min(ns.Uncounted, ns.Undecided) < len(ns.Records) {
			t.Counting.Delete(ns)
			t.Settling.Delete(ns)
			t.Restarted.Insert(ns)
		} else {
			t.Counting.Insert(ns)
			t.Settling.Insert(ns)
		}
		ns.Uncounted, ns.Undecided = len(ns.Records), len(ns.Records)
	}
	m.Touched.Assessable = true
}

// Restart settles the next namespace of Restarted, if nothing else is left.
func (m *Memory) Restart() {
	ns, ok := m.Touched.Restarted.PopAny()
	if !ok {
		return
	}
	m.TouchNamespaces([]*Namespace{ns})
}

// TouchAll says that something has changed that may affect all objects.
func (m *Memory) TouchAll() { m.TouchNamespaces(slices.Collect(maps.Values(m.Namespaces))) }

// TouchHolds says that the holds of some namespaces have changed.
func (m *Memory) TouchHolds(all []*Namespace) {
	for _, ns := range all {
		if ns.dueCount > 0 || ns.deadlineCount > 0 || len(ns.Previews) > 0 || len(ns.ClusterPreviews) > 0 {
			ns.Unapplied = len(ns.Records)
			m.Touched.Applying.Insert(ns)
		}
	}
}

// Settling reports whether any objects wait to be settled that may keep the changes of a namespace from being assessed.
func (m *Memory) Settling(ns *Namespace) bool {
	t := &m.Touched
	return len(t.Records) > 0 || len(t.Settling) > 0 || t.Restarted.Has(ns) || len(t.Restarted) > 0 && len(ns.Ceilings) > 0
}

// HasWork reports whether there is work for Step.
func (m *Memory) HasWork() bool { return m.Touched.Busy() || len(m.Touched.Restarted) > 0 }

// Busy reports whether there is work for Step, except in the namespaces of Restarted.
func (t *touched) Busy() bool {
	return len(t.Records) > 0 || len(t.Settling) > 0 || len(t.Applying) > 0
}

// busy reports whether there is work for Step in a namespace, so that a report on it would be incomplete.
func (m *Memory) busy(ns *Namespace) bool {
	return ns.touched > 0 || m.Touched.Settling.Has(ns) || m.Touched.Applying.Has(ns) || m.Touched.Restarted.Has(ns)
}

// Recounts reports whether the namespace of a record was touched, and the record was not counted since.
func (m *Memory) Recounts(rec *Record) bool {
	return int(rec.Position) < rec.NS.Uncounted && (m.Touched.Counting.Has(rec.NS) || m.Touched.Restarted.Has(rec.NS))
}

// Unsettled reports whether nothing may be deleted in a namespace now, because there is work for Step that decisions in it may depend on,
// or an open List. Which objects are over a ceiling may depend on any other object.
func (m *Memory) Unsettled(ns *Namespace) bool {
	if m.busy(ns) || len(ns.Ceilings) > 0 && m.Settling(ns) {
		return true
	}
	for resource := range m.OpenLists {
		if ns.Covers(resource) {
			return true
		}
	}
	return false
}

// MustWait reports whether a record must not be deleted yet; see Unsettled.
func (m *Memory) MustWait(rec *Record) bool { return m.Unsettled(rec.NS) }
