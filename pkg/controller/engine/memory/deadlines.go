// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/rules/expiry"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// ChangesDeadline reports whether the deadline of the record is to be changed, even if something prevents that now.
func (rec *Record) ChangesDeadline() bool {
	return rec.Action == policy.SetDeadline || rec.Action == policy.HoldDeadline
}

// CountDeadline adds by to the count of its namespace if the deadline of the record is to be changed.
func (rec *Record) CountDeadline(by int) {
	if rec.ChangesDeadline() {
		rec.NS.deadlineCount += by
	}
}

// CountDeadlineSet adds by to the counts of its namespace and resource if the record has a deadline that Winnow has set.
func (m *Memory) CountDeadlineSet(rec *Record, by int) {
	d := rec.Deadline()
	if rec.Resource == gc.ResourceJobs && d.Set != 0 {
		rec.NS.DeadlinesSet += by
	}
	at, ends := d.End()
	if !ends || rec.Terminating() {
		return
	}
	rec.NS.Ends.add(at, by)
	of := m.DeadlineEnds[rec.Resource]
	if of == nil {
		of = map[int64]int{}
		m.DeadlineEnds[rec.Resource] = of
	}
	minute := EndMinute(at)
	if of[minute] += by; of[minute] == 0 {
		delete(of, minute)
	}
}

// EndMinute returns the minute since 1970 by which a deadline has ended.
func EndMinute(at time.Time) int64 { return (at.Unix() + 59) / 60 }

// NoteDeadline notes whether the deadline of the record was over when this replica first saw it. Then it says nothing about how late
// Kubernetes is. before is when the deadline ended in the former state of the object; zero if there was none.
func (rec *Record) NoteDeadline(before, now time.Time) {
	d := rec.Deadline()
	if at, ends := d.End(); ends && !at.Equal(before) {
		rec.Flags.Set(SetTooLate, !at.After(now))
	}
}

// Ends are the times at which the deadlines of a namespace end that Winnow has set. The zero value has none.
type Ends struct {
	bySecond map[int64]*end
	heap     expiry.Heap[*end]
}

// end is how many deadlines end at the same second.
type end struct {
	count, index int
}

// HeapIndex implements expiry.Entry.
func (e *end) HeapIndex() int { return e.index }

// SetHeapIndex implements expiry.Entry.
func (e *end) SetHeapIndex(i int) { e.index = i }

// Next returns the earliest end; false if there is none.
func (e *Ends) Next() (time.Time, bool) { return e.heap.Next() }

// add adds by deadlines that end at the same time.
func (e *Ends) add(at time.Time, by int) {
	second := at.Unix()
	if e.bySecond == nil {
		e.bySecond = map[int64]*end{}
	}
	one := e.bySecond[second]
	if one == nil {
		one = &end{index: -1}
		e.bySecond[second] = one
		e.heap.Set(one, at)
	}
	if one.count += by; one.count == 0 {
		e.heap.Remove(one)
		delete(e.bySecond, second)
	}
}
