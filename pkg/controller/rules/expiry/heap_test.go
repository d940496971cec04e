// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package expiry

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

func at(seconds int) time.Time { return testbuilders.Now.Add(time.Duration(seconds) * time.Second) }

// key is an entry with a name.
type key struct {
	name  string
	index int
}

func (k *key) HeapIndex() int     { return k.index }
func (k *key) SetHeapIndex(i int) { k.index = i }

// named is a heap of keys by name.
type named struct {
	Heap[*key]
	keys map[string]*key
}

func newNamed() *named { return &named{keys: map[string]*key{}} }

func (n *named) key(name string) *key {
	if n.keys[name] == nil {
		n.keys[name] = &key{name: name}
	}
	return n.keys[name]
}

func (n *named) set(name string, at time.Time) { n.Set(n.key(name), at) }
func (n *named) remove(name string)            { n.Remove(n.key(name)) }

// popAll pops all entries that are due at a time.
func popAll(h *named, now time.Time) []string {
	var out []string
	for k, ok := h.PopDue(now); ok; k, ok = h.PopDue(now) {
		out = append(out, k.name)
	}
	return out
}

func TestHeap(t *testing.T) {
	for name, c := range map[string]struct {
		given func(h *named)
		due   []string // at second 10
		left  int
	}{
		"empty":                                 {func(*named) {}, nil, 0},
		"due to the second":                     {func(h *named) { h.set("a", at(10)) }, []string{"a"}, 0},
		"not a moment before":                   {func(h *named) { h.set("a", at(10).Add(time.Microsecond)) }, nil, 1},
		"in the order of time":                  {func(h *named) { h.set("c", at(3)); h.set("a", at(1)); h.set("d", at(11)); h.set("b", at(2)) }, []string{"a", "b", "c"}, 1},
		"put off":                               {func(h *named) { h.set("a", at(1)); h.set("b", at(2)); h.set("a", at(11)) }, []string{"b"}, 1},
		"put off, but still due":                {func(h *named) { h.set("a", at(1)); h.set("b", at(2)); h.set("a", at(3)) }, []string{"b", "a"}, 0},
		"brought forward":                       {func(h *named) { h.set("a", at(11)); h.set("b", at(2)); h.set("a", at(1)) }, []string{"a", "b"}, 0},
		"removed":                               {func(h *named) { h.set("a", at(1)); h.set("b", at(2)); h.remove("a") }, []string{"b"}, 0},
		"removed from the middle":               {func(h *named) { h.set("a", at(1)); h.set("b", at(2)); h.set("c", at(3)); h.remove("b") }, []string{"a", "c"}, 0},
		"removed twice, and what was not there": {func(h *named) { h.set("a", at(1)); h.remove("a"); h.remove("a"); h.remove("x") }, nil, 0},
		"set again after it was removed":        {func(h *named) { h.set("a", at(1)); h.remove("a"); h.set("a", at(4)) }, []string{"a"}, 0},
		"nothing to remove from the zero value": {func(h *named) { h.remove("a") }, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := newNamed()
			c.given(h)
			if got := popAll(h, at(10)); !slices.Equal(got, c.due) || h.Len() != c.left {
				t.Errorf("popped %q, %d left; want %q, %d left", got, h.Len(), c.due, c.left)
			}
		})
	}
}

// TestHeapAgreesWithASortedSlice tries random operations on the heap and on a slice that is sorted each time.
func TestHeapAgreesWithASortedSlice(t *testing.T) {
	testbuilders.Checks(t, 1000)
	type timed struct {
		key string
		at  int
	}
	keys, times := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h"}), rapid.IntRange(0, 20)
	rapid.Check(t, func(t *rapid.T) {
		h := newNamed()
		var list []timed
		remove := func(key string) { list = slices.DeleteFunc(list, func(e timed) bool { return e.key == key }) }
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				key, second := keys.Draw(t, "key"), times.Draw(t, "at")
				h.set(key, at(second))
				remove(key)
				list = append(list, timed{key, second})
			},
			"remove": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				h.remove(key)
				remove(key)
			},
			"pop": func(t *rapid.T) {
				now := times.Draw(t, "now")
				popped, ok := h.PopDue(at(now))
				if want := len(list) > 0 && list[0].at <= now; ok != want {
					t.Fatalf("popped %v, %v at %d from %v", popped, ok, now, list)
				}
				if !ok {
					return
				}
				key := popped.name
				// If times are equal, any entry may come first.
				if i := slices.IndexFunc(list, func(e timed) bool { return e.key == key }); i < 0 || list[i].at != list[0].at {
					t.Fatalf("popped %q from %v", key, list)
				}
				remove(key)
			},
			"": func(t *rapid.T) {
				slices.SortFunc(list, func(a, b timed) int { return cmp.Compare(a.at, b.at) })
				next, ok := h.Next()
				if ok != (len(list) > 0) || ok && !next.Equal(at(list[0].at)) || h.Len() != len(list) {
					t.Fatalf("next %v, %v, %d keys; want what %v has", next, ok, h.Len(), list)
				}
			},
		})
	})
}

// TestBlocks fills several blocks, and empties them again.
func TestBlocks(t *testing.T) {
	for _, entries := range []int{blockItems - 1, blockItems, blockItems + 1, 3*blockItems + 7} {
		var h Heap[*key]
		all := make([]key, entries)
		for i := range all {
			all[i].name = fmt.Sprint(i)
			h.Set(&all[i], at(i*7919%entries))
		}
		removed := 0
		for i := range all {
			if i%3 == 0 {
				h.Remove(&all[i])
				removed++
			}
		}
		if want := (entries - removed + blockItems - 1) / blockItems; h.Len() != entries-removed || len(h.blocks) != want {
			t.Errorf("%d of %d entries in %d blocks are left after %d were removed; want %d blocks", h.Len(), entries, len(h.blocks), removed, want)
		}
		popped, last := 0, -1
		for k, ok := h.PopDue(at(entries)); ok; k, ok = h.PopDue(at(entries)) {
			i, _ := strconv.Atoi(k.name)
			if second := i * 7919 % entries; i%3 == 0 || second < last {
				t.Fatalf("entry %d at second %d after one at %d", i, second, last)
			} else {
				last = second
			}
			popped++
		}
		if popped != entries-removed || len(h.blocks) != 0 {
			t.Errorf("popped %d of %d entries, and %d blocks are left", popped, entries-removed, len(h.blocks))
		}
	}
}

// BenchmarkHeap sets one of a million entries to another time, as an extension does.
func BenchmarkHeap(b *testing.B) {
	const entries = 1_000_000
	var h Heap[*key]
	all := make([]key, entries)
	for i := range all {
		h.Set(&all[i], at(i*7919%entries))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i = (i + 104729) % entries {
		h.Set(&all[i], at(i*31%entries))
	}
}
