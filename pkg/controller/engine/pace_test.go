// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

func TestPace(t *testing.T) {
	w := newWorld(t, ttlPolicy("0s", 1))
	w.clusterPolicy(guardrailPolicy(1, gc.Guardrails{MaxDeletionsPerMinute: new(int64(60))}))
	w.upsert(jobs(time.Minute, "a", "b", "c", "d", "e")...)
	w.confirmFresh()
	taken := func() int {
		n := 0
		for _, ok := w.Take(w.now); ok; _, ok = w.Take(w.now) {
			n++
		}
		return n
	}
	if n := taken(); n != 1 {
		t.Fatalf("%d deletes at once, want 1", n)
	}
	if got := w.report("p").Paced; len(got) != 1 {
		t.Errorf("paced in %q", got)
	}
	if next, ok := w.Next(); !ok || next.Sub(w.now) > time.Second {
		t.Errorf("the next time is %s", next)
	}
	for range 4 {
		w.pass(time.Second)
		if n := taken(); n != 1 {
			t.Fatalf("%d deletes in a second, want 1", n)
		}
	}
	if got := w.report("p").Paced; len(got) != 0 {
		t.Errorf("paced in %q, but nothing is left", got)
	}
}

// TestNextWhileMemoryIsNotFresh: the pace allows a deletion, and memory does not. The dispatch waits for memory then, and must not look
// again and again until it is fresh.
func TestNextWhileMemoryIsNotFresh(t *testing.T) {
	w := newWorld(t, ttlPolicy("0s", 1))
	w.clusterPolicy(guardrailPolicy(1, gc.Guardrails{MaxDeletionsPerMinute: new(int64(60))}))
	w.upsert(jobs(time.Minute, "a", "b")...)
	w.confirmFresh()
	w.takes("b")
	w.now = w.now.Add(time.Second) // This is longer than freshness.For.
	w.Expire(w.now)
	w.takes()
	if next, ok := w.Next(); ok && !next.After(w.now) {
		t.Errorf("it is %s, and Next is %s", w.now, next)
	}
	w.confirmFresh()
	w.takes("a")
}

// TestPaceIsGivenBack: an order that ends without a DELETE delays no other object of its namespace.
func TestPaceIsGivenBack(t *testing.T) {
	for name, end := range map[string]func(*world, *deletion.Order){
		"released": func(w *world, o *deletion.Order) { w.Release(o, w.now) },
		"gone when it was read": func(w *world, o *deletion.Order) {
			w.Done(o, deletion.Result{Outcome: deletion.NotFound, NotSent: true}, w.now)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ttlPolicy("0s", 1))
			w.clusterPolicy(guardrailPolicy(1, gc.Guardrails{MaxDeletionsPerMinute: new(int64(1))}))
			w.upsert(jobs(time.Minute, "a", "b")...)
			w.confirmFresh()
			first, ok := w.Take(w.now)
			if _, second := w.Take(w.now); !ok || second {
				t.Fatalf("first: %v, second: %v", ok, second)
			}
			end(w, first)
			if _, ok := w.Take(w.now); !ok {
				t.Error("the next object waits for the pace")
			}
			if _, ok := w.Take(w.now); ok {
				t.Error("the pace allows two deletions at once")
			}
		})
	}
}

// TestAFasterPaceAppliesAtOnce: objects that wait because of the old pace are deleted at the new one.
func TestAFasterPaceAppliesAtOnce(t *testing.T) {
	w := newWorld(t, ttlPolicy("0s", 1))
	w.clusterPolicy(guardrailPolicy(1, gc.Guardrails{MaxDeletionsPerMinute: new(int64(1))}))
	w.upsert(jobs(time.Minute, "a", "b", "c")...)
	w.confirmFresh()
	w.takes("c") // Of two objects of the same age, the one with the larger UID is deleted first.
	w.clusterPolicy(guardrailPolicy(2, gc.Guardrails{MaxDeletionsPerMinute: new(int64(6000))}))
	w.confirmFresh()
	w.takes("a", "b")
}
