// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package expiry

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/controller/internal/given"
)

func at(seconds int) time.Time { return given.Now.Add(time.Duration(seconds) * time.Second) }

// popAll takes out what is due at a time.
func popAll(h *Heap[string], now time.Time) []string {
	var out []string
	for key, ok := h.PopDue(now); ok; key, ok = h.PopDue(now) {
		out = append(out, key)
	}
	return out
}

func TestHeap(t *testing.T) {
	for name, c := range map[string]struct {
		given func(h *Heap[string])
		due   []string // at second 10
		left  int
	}{
		"empty":                                 {func(*Heap[string]) {}, nil, 0},
		"due to the second":                     {func(h *Heap[string]) { h.Set("a", at(10)) }, []string{"a"}, 0},
		"not a moment before":                   {func(h *Heap[string]) { h.Set("a", at(10).Add(1)) }, nil, 1},
		"in the order of time":                  {func(h *Heap[string]) { h.Set("c", at(3)); h.Set("a", at(1)); h.Set("d", at(11)); h.Set("b", at(2)) }, []string{"a", "b", "c"}, 1},
		"put off":                               {func(h *Heap[string]) { h.Set("a", at(1)); h.Set("b", at(2)); h.Set("a", at(11)) }, []string{"b"}, 1},
		"put off, but still due":                {func(h *Heap[string]) { h.Set("a", at(1)); h.Set("b", at(2)); h.Set("a", at(3)) }, []string{"b", "a"}, 0},
		"brought forward":                       {func(h *Heap[string]) { h.Set("a", at(11)); h.Set("b", at(2)); h.Set("a", at(1)) }, []string{"a", "b"}, 0},
		"removed":                               {func(h *Heap[string]) { h.Set("a", at(1)); h.Set("b", at(2)); h.Remove("a") }, []string{"b"}, 0},
		"removed from the middle":               {func(h *Heap[string]) { h.Set("a", at(1)); h.Set("b", at(2)); h.Set("c", at(3)); h.Remove("b") }, []string{"a", "c"}, 0},
		"removed twice, and what was not there": {func(h *Heap[string]) { h.Set("a", at(1)); h.Remove("a"); h.Remove("a"); h.Remove("x") }, nil, 0},
		"set again after it was removed":        {func(h *Heap[string]) { h.Set("a", at(1)); h.Remove("a"); h.Set("a", at(4)) }, []string{"a"}, 0},
		"nothing to remove from the zero value": {func(h *Heap[string]) { h.Remove("a") }, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var h Heap[string]
			c.given(&h)
			if got := popAll(&h, at(10)); !slices.Equal(got, c.due) || h.Len() != c.left {
				t.Errorf("popped %q, %d left; want %q, %d left", got, h.Len(), c.due, c.left)
			}
		})
	}
}

// TestHeapAgreesWithASortedSlice tries random operations on the heap and on a slice that is sorted each time.
func TestHeapAgreesWithASortedSlice(t *testing.T) {
	given.Checks(1000)
	type timed struct {
		key string
		at  int
	}
	keys, times := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h"}), rapid.IntRange(0, 20)
	rapid.Check(t, func(t *rapid.T) {
		var h Heap[string]
		var list []timed
		remove := func(key string) { list = slices.DeleteFunc(list, func(e timed) bool { return e.key == key }) }
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				key, second := keys.Draw(t, "key"), times.Draw(t, "at")
				h.Set(key, at(second))
				remove(key)
				list = append(list, timed{key, second})
			},
			"remove": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				h.Remove(key)
				remove(key)
			},
			"pop": func(t *rapid.T) {
				now := times.Draw(t, "now")
				key, ok := h.PopDue(at(now))
				if want := len(list) > 0 && list[0].at <= now; ok != want {
					t.Fatalf("popped %q, %v at %d from %v", key, ok, now, list)
				}
				if !ok {
					return
				}
				// Of equal times any may come first.
				if i := slices.IndexFunc(list, func(e timed) bool { return e.key == key }); i < 0 || list[i].at != list[0].at {
					t.Fatalf("popped %q from %v", key, list)
				}
				remove(key)
			},
			"": func(t *rapid.T) {
				slices.SortFunc(list, func(a, b timed) int { return cmp.Compare(a.at, b.at) })
				next, ok := h.Next()
				if ok != (len(list) > 0) || ok && !next.Equal(at(list[0].at)) || h.Len() != len(list) {
					t.Fatalf("next %v, %v, %d keys; want those of %v", next, ok, h.Len(), list)
				}
			},
		})
	})
}
