// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

// push adds deletions of a namespace until one is dropped, and returns how many were not.
func push(q *queue, namespace, kind string, most int) int {
	for i := range most {
		d := &deletionNotice{Deletion{Object: Object{Namespace: namespace, Kind: kind, Name: fmt.Sprint(i)}}}
		if !q.push(d) {
			return i
		}
	}
	return most
}

// TestFairness: a namespace that deletes without end leaves room to all others.
func TestFairness(t *testing.T) {
	q := newQueue(&losses{category: deletions})
	if n := push(q, "greedy", "Job", 2*eventsMost); n != eventsMost/2 {
		t.Errorf("one namespace alone may queue %d deletions", n)
	}
	for i := range 100 {
		if n := push(q, fmt.Sprint("modest-", i), "Job", 10); n != 10 {
			t.Fatalf("namespace %d may queue only %d deletions", i, n)
		}
	}
	if n := push(q, "greedy", "Job", 1); n != 0 {
		t.Error("the greedy namespace has got more")
	}
	for len(q.take(testbuilders.Now)) > 0 {
	}
	if q.used != (usage{}) || len(q.byNamespace) > 0 {
		t.Errorf("an empty queue counts %+v", q.used)
	}
}

// TestBytes: deletions with long names take no more memory than others, and leave room to others too.
func TestBytes(t *testing.T) {
	q := newQueue(&losses{category: deletions})
	long := strings.Repeat("K", 1<<20)
	if n := push(q, "greedy", long, 100); n != bytesMost/2>>20 {
		t.Errorf("%d megabytes are queued", n)
	}
	if n := push(q, "modest", "Job", 1000); n != 1000 {
		t.Errorf("another namespace may queue only %d deletions", n)
	}
}

// TestLosses: the log says once that too many wait, and again after an event has said it.
func TestLosses(t *testing.T) {
	l := &losses{category: deletions}
	if l.unlogged() {
		t.Error("nothing was dropped")
	}
	l.add(testbuilders.Now, 0, 1)
	if l.unlogged() {
		t.Error("what was refused is logged with the reason")
	}
	l.add(testbuilders.Now.Add(1), 2, 0)
	if !l.unlogged() || l.unlogged() {
		t.Error("want it once")
	}
	if lost, some := l.take(); !some || lost != (Dropped{TypeDeletion, testbuilders.Now, 2, 1}) {
		t.Errorf("got %+v", lost)
	}
	if _, some := l.take(); some {
		t.Error("it is told twice")
	}
	if l.add(testbuilders.Now, 1, 0); !l.unlogged() {
		t.Error("it is not logged again")
	}
}
