// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package turns

import (
	"slices"
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
func (e *entry) QueueIndex() int      { return e.index }
func (e *entry) SetQueueIndex(i int)  { e.index = i }

// queues is a fair queue with a queue for each string, and an entry for each letter of the string.
type queues struct {
	FairQueue[*entry]
	queues  []*Queue[*entry]
	entries map[string]*entry
	queue   map[string]*Queue[*entry]
	waits   *Queue[*entry] // its entries must wait
}

func newQueues(all ...string) *queues {
	q := &queues{entries: map[string]*entry{}, queue: map[string]*Queue[*entry]{}}
	for _, names := range all {
		l := &Queue[*entry]{}
		q.queues = append(q.queues, l)
		for name := range strings.SplitSeq(names, "") {
			e := &entry{name: name, index: -1}
			q.entries[name], q.queue[name] = e, l
			q.Push(l, e)
		}
	}
	return q
}

func (q *queues) remove(name string) { q.Remove(q.queue[name], q.entries[name]) }

// pops pops all entries that a queue allows at a time.
func (q *queues) pops(at time.Time) string {
	out := ""
	for e, ok := q.Pop(at, q.mustWait); ok; e, ok = q.Pop(at, q.mustWait) {
		out += e.name
	}
	return out
}

func (q *queues) mustWait(e *entry) bool { return q.queue[e.name] == q.waits }

func TestOrder(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*queues)
		want string
	}{
		"queues take turns, each in order":  {func(*queues) {}, "axbycz"},
		"without one":                       {func(q *queues) { q.remove("b") }, "axcyz"},
		"one is removed twice":              {func(q *queues) { q.remove("b"); q.remove("b") }, "axcyz"},
		"a queue that is empty has no turn": {func(q *queues) { q.remove("a"); q.remove("b"); q.remove("c") }, "xyz"},
		"an entry is pushed again":          {func(q *queues) { q.remove("a"); q.Push(q.queue["a"], q.entries["a"]) }, "axbycz"},
		"the entries of a queue are pushed again": {func(q *queues) {
			for _, name := range []string{"a", "b", "c"} {
				q.remove(name)
			}
			q.Push(q.queue["a"], q.entries["a"])
		}, "xayz"},
		"a queue that rests has no turn": {func(q *queues) {
			q.queues[0].Spend(60, now)
			q.queues[0].Spend(60, now)
			q.Rest(q.queues[0])
		}, "xyz"},
		"one with another pace rests no more": {func(q *queues) {
			q.queues[0].Spend(1, now)
			q.Rest(q.queues[0])
			q.Repace(q.queues[0])
		}, "xaybzc"},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueues("cab", "zyx")
			c.do(q)
			waiting := q.Waiting()
			if got := q.pops(now); got != c.want || waiting-q.Waiting() != len(c.want) {
				t.Errorf("got %s, want %s; %d of %d left", got, c.want, q.Waiting(), waiting)
			}
		})
	}
}

// TestWaiting: a queue with entries that must wait has no turn until it is resumed, and is not resumed too early or without entries.
func TestWaiting(t *testing.T) {
	q := newQueues("cab", "zyx")
	q.waits = q.queues[0]
	if got := q.pops(now); got != "xyz" || q.Paused() != 1 || q.Waiting() != 3 {
		t.Fatalf("got %s; %d queues are paused, and %d entries wait", got, q.Paused(), q.Waiting())
	}
	if q.Resume(q.mustWait) || q.Paused() != 1 {
		t.Error("a queue is resumed whose entries must wait")
	}
	q.Push(q.queues[1], q.entries["x"])
	q.waits = nil
	if !q.Resume(q.mustWait) || q.Paused() != 0 {
		t.Error("the queue is not resumed")
	}
	if got := q.pops(now); got != "xabc" {
		t.Errorf("got %s, want the resumed queue last", got)
	}
	q = newQueues("a")
	q.waits = q.queues[0]
	q.pops(now)
	q.remove("a")
	if q.waits = nil; q.Resume(q.mustWait) {
		t.Error("an empty queue is resumed")
	}
	q.Push(q.queues[0], q.entries["a"])
	if got := q.pops(now); got != "a" {
		t.Errorf("got %s from a queue that was empty while it was paused", got)
	}
}

// TestRest: a queue rests until its pace allows another deletion, and does not rest without entries.
func TestRest(t *testing.T) {
	q := newQueues("ab")
	l := q.queues[0]
	l.Spend(1, now)
	q.Rest(l)
	at, ok := q.Next()
	if !ok || !q.Rests(l) || q.Resting() != 1 || l.PaceAllows(at.Add(-1)) || !l.PaceAllows(at) {
		t.Fatalf("rests until %v, %v", at, ok)
	}
	if got := q.pops(at.Add(-time.Millisecond)) + "|" + q.pops(at); got != "|ab" {
		t.Errorf("got %s", got)
	}
	q = newQueues("a")
	q.queues[0].Spend(1, now)
	q.Rest(q.queues[0])
	q.remove("a")
	if _, ok := q.Next(); ok || q.Resting() > 0 {
		t.Error("an empty queue rests")
	}
	if q.Rest(q.queues[0]); q.Resting() > 0 {
		t.Error("an empty queue is put to rest")
	}
}

// TestGiveBack: a deletion that was not sent delays no other one, and unused pace is not kept for longer than usual.
func TestGiveBack(t *testing.T) {
	q := newQueues("ab")
	l := q.queues[0]
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

// TestPace: after a pause, the deletions of one second are allowed at once, and after that the given number per minute.
func TestPace(t *testing.T) {
	for perMinute, want := range map[int]int{1: 1, 60: 1, 600: 10, 6000: 100} {
		var l Queue[*entry]
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
	q := newQueues("cab", "d")
	q.remove("a")
	for i, want := range []string{"bc", "d"} {
		got := ""
		for e := range q.queues[i].Len() {
			got += q.queues[i].At(e).name
		}
		if got != want {
			t.Errorf("queue %d has %q, want %q", i, got, want)
		}
	}
}

// TestAfter: each name has its turn, also if the one whose turn was last is gone.
func TestAfter(t *testing.T) {
	for last, want := range map[string][]string{
		"": {"b", "d", "f"}, "a": {"b", "d", "f"}, "b": {"d", "f", "b"}, "c": {"d", "f", "b"}, "f": {"b", "d", "f"}, "g": {"b", "d", "f"},
	} {
		if got := After(last, []string{"b", "d", "f"}); !slices.Equal(got, want) {
			t.Errorf("after %q: got %q, want %q", last, got, want)
		}
	}
}
