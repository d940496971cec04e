// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package turns

import (
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

type entry struct {
	name  string
	index int
}

func (e *entry) Before(o *entry) bool { return e.name < o.name }
func (e *entry) LaneIndex() int       { return e.index }
func (e *entry) SetLaneIndex(i int)   { e.index = i }

// lanes is a queue with a lane for each string, and an entry for each letter of it.
type lanes struct {
	Queue[*entry]
	lanes   []*Lane[*entry]
	entries map[string]*entry
	lane    map[string]*Lane[*entry]
}

func newLanes(all ...string) *lanes {
	q := &lanes{entries: map[string]*entry{}, lane: map[string]*Lane[*entry]{}}
	for _, names := range all {
		l := &Lane[*entry]{}
		q.lanes = append(q.lanes, l)
		for name := range strings.SplitSeq(names, "") {
			e := &entry{name: name, index: -1}
			q.entries[name], q.lane[name] = e, l
			q.Push(l, e)
		}
	}
	return q
}

func (q *lanes) remove(name string) { q.Remove(q.lane[name], q.entries[name]) }

// pops pops all entries that a queue allows at a time.
func (q *lanes) pops(at time.Time) string {
	out := ""
	for e, ok := q.Pop(at); ok; e, ok = q.Pop(at) {
		out += e.name
	}
	return out
}

func TestOrder(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*lanes)
		want string
	}{
		"lanes take turns, each in order":  {func(*lanes) {}, "axbycz"},
		"without one":                      {func(q *lanes) { q.remove("b") }, "axcyz"},
		"one is removed twice":             {func(q *lanes) { q.remove("b"); q.remove("b") }, "axcyz"},
		"a lane that is empty has no turn": {func(q *lanes) { q.remove("a"); q.remove("b"); q.remove("c") }, "xyz"},
		"an entry is pushed again":         {func(q *lanes) { q.remove("a"); q.Push(q.lane["a"], q.entries["a"]) }, "axbycz"},
		"the entries of a lane are pushed again": {func(q *lanes) {
			for _, name := range []string{"a", "b", "c"} {
				q.remove(name)
			}
			q.Push(q.lane["a"], q.entries["a"])
		}, "xayz"},
		"a paused lane has no turn":              {func(q *lanes) { q.Pause(q.lanes[0]) }, "xyz"},
		"one that is paused and resumed is last": {func(q *lanes) { q.Pause(q.lanes[0]); q.Resume(q.lanes[0]) }, "xaybzc"},
		"a lane that rests has no turn": {func(q *lanes) {
			q.lanes[0].Spend(60, now)
			q.lanes[0].Spend(60, now)
			q.Rest(q.lanes[0])
		}, "xyz"},
		"one with another pace rests no more": {func(q *lanes) {
			q.lanes[0].Spend(1, now)
			q.Rest(q.lanes[0])
			q.Repace(q.lanes[0])
		}, "xaybzc"},
		"one that rests is not resumed": {func(q *lanes) {
			q.lanes[0].Spend(1, now)
			q.Rest(q.lanes[0])
			q.Pause(q.lanes[0])
			q.Resume(q.lanes[0])
		}, "xyz"},
	} {
		t.Run(name, func(t *testing.T) {
			q := newLanes("cab", "zyx")
			c.do(q)
			waiting := q.Waiting()
			if got := q.pops(now); got != c.want || waiting-q.Waiting() != len(c.want) {
				t.Errorf("got %s, want %s; %d of %d left", got, c.want, q.Waiting(), waiting)
			}
		})
	}
}

// TestRest: a lane rests until its pace allows another deletion, and does not rest without entries.
func TestRest(t *testing.T) {
	q := newLanes("ab")
	l := q.lanes[0]
	l.Spend(1, now)
	q.Rest(l)
	at, ok := q.Next()
	if !ok || !q.Rests(l) || q.Resting() != 1 || l.PaceAllows(at.Add(-1)) || !l.PaceAllows(at) {
		t.Fatalf("rests until %v, %v", at, ok)
	}
	if got := q.pops(at.Add(-time.Millisecond)) + "|" + q.pops(at); got != "|ab" {
		t.Errorf("got %s", got)
	}
	q = newLanes("a")
	q.lanes[0].Spend(1, now)
	q.Rest(q.lanes[0])
	q.remove("a")
	if _, ok := q.Next(); ok || q.Resting() > 0 {
		t.Error("an empty lane rests")
	}
	if q.Rest(q.lanes[0]); q.Resting() > 0 {
		t.Error("an empty lane is put to rest")
	}
}

// TestGiveBack: a deletion that was not sent delays no other one, and unused pace is not kept for longer than usual.
func TestGiveBack(t *testing.T) {
	q := newLanes("ab")
	l := q.lanes[0]
	l.Spend(1, now)
	q.Rest(l)
	q.GiveBack(l, 1)
	if got := q.pops(now); got != "ab" || !l.PaceAllows(now) {
		t.Errorf("got %q, ready: %v", got, l.PaceAllows(now))
	}
	later := now.Add(time.Hour)
	l.Spend(60, later)
	q.GiveBack(l, 60)
	if l.Spend(60, later); l.PaceAllows(later) {
		t.Error("two deletions in the same second")
	}
}

// TestPace: after a pause, the deletions of one second are allowed at once, and after that so many per minute.
func TestPace(t *testing.T) {
	for perMinute, want := range map[int]int{1: 1, 60: 1, 600: 10, 6000: 100} {
		var l Lane[*entry]
		send := func(at time.Time) (n int) {
			for ; l.PaceAllows(at); n++ {
				l.Spend(perMinute, at)
			}
			return n
		}
		if got := send(now); got != want {
			t.Errorf("%d in a minute: %d at once, want %d", perMinute, got, want)
		}
		sent := 0
		for at := now; at.Before(now.Add(time.Minute)); at = at.Add(time.Millisecond) {
			sent += send(at.Add(time.Millisecond))
		}
		if sent > perMinute || sent < perMinute-1 {
			t.Errorf("%d in a minute: %d", perMinute, sent)
		}
	}
}

func TestEntries(t *testing.T) {
	q := newLanes("cab", "d")
	q.remove("a")
	for i, want := range []string{"bc", "d"} {
		got := ""
		for e := range q.lanes[i].Len() {
			got += q.lanes[i].At(e).name
		}
		if got != want {
			t.Errorf("lane %d has %q, want %q", i, got, want)
		}
	}
}
