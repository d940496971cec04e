// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
)

// TestIndexIsAMap inserts and deletes many records at random, so that the parts of the index grow and shrink.
func TestIndexIsAMap(t *testing.T) {
	testbuilders.Checks(t, 30)
	testbuilders.Steps(t, 20)
	all := make([]*Record, 8_000)
	for i := range all {
		uid := fmt.Sprintf("%08x-4e5f-6071-8293-a4b5c6d7e8f9", i)
		if i%2 == 0 {
			uid = fmt.Sprintf("uid-%d", i)
		}
		all[i] = &Record{Compact: *facts.Compress(testbuilders.Job("a").WithUID(types.UID(uid)).Fact())}
	}
	rapid.Check(t, func(t *rapid.T) {
		x, want := index{}, map[types.UID]*Record{}
		some := func(t *rapid.T) []*Record {
			from, n := rapid.IntRange(0, len(all)).Draw(t, "from"), rapid.SampledFrom([]int{1, 30, 4000}).Draw(t, "n")
			return all[from:min(from+n, len(all))]
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				for _, rec := range some(t) {
					if want[rec.UID()] == nil {
						want[rec.UID()] = rec
						x.Put(rec)
					}
				}
			},
			"delete": func(t *rapid.T) {
				for _, rec := range some(t) {
					delete(want, rec.UID())
					x.Delete(rec)
				}
			},
			"": func(t *rapid.T) {
				found := sets.New[*Record]()
				for rec := range x.All() {
					if found.Has(rec) {
						t.Fatalf("%s was returned twice", rec.UID())
					}
					found.Insert(rec)
				}
				if found.Len() != len(want) || x.Count != len(want) {
					t.Fatalf("%d were found and %d counted, not %d", found.Len(), x.Count, len(want))
				}
				for _, rec := range all {
					if x.Get(rec.UID()) != want[rec.UID()] {
						t.Fatalf("%s: got %v", rec.UID(), x.Get(rec.UID()))
					}
				}
			},
		})
		slots := 0
		for _, p := range x.parts {
			slots += len(p.slots)
		}
		if most := 4*len(want) + indexParts*minSlots; slots > most {
			t.Fatalf("%d slots for %d records", slots, len(want))
		}
	})
}

// TestIndexWhileItIsSplit: All returns every record once, although the index becomes so large meanwhile that it is split.
func TestIndexWhileItIsSplit(t *testing.T) {
	x, got := index{}, map[*Record]int{}
	add := func(from, to int) {
		for i := from; i < to; i++ {
			x.Put(&Record{Compact: *facts.Compress(testbuilders.Job("a").WithUID(types.UID(fmt.Sprintf("uid-%d", i))).Fact())})
		}
	}
	add(0, splitAbove)
	for rec := range x.All() {
		if got[rec]++; len(got) == splitAbove/2 {
			add(splitAbove, splitAbove+100)
		}
	}
	if len(x.parts) != indexParts || x.Count != splitAbove+100 || len(got) != splitAbove {
		t.Errorf("%d parts, %d records, of which %d were returned", len(x.parts), x.Count, len(got))
	}
	for rec, times := range got {
		if times != 1 || x.Get(rec.UID()) != rec {
			t.Errorf("%s was returned %d times, and is %v", rec.UID(), times, x.Get(rec.UID()))
		}
	}
}

// TestIndexWhileItChanges: All returns every record that stays in the index, although others are inserted and deleted meanwhile.
func TestIndexWhileItChanges(t *testing.T) {
	x, stay := index{}, sets.New[*Record]()
	records := make([]*Record, 5000)
	for i := range records {
		records[i] = &Record{Compact: *facts.Compress(testbuilders.Job("a").WithUID(types.UID(fmt.Sprintf("uid-%d", i))).Fact())}
		x.Put(records[i])
		if i%2 == 0 {
			stay.Insert(records[i])
		}
	}
	i := 0
	for rec := range x.All() {
		stay.Delete(rec)
		if i < len(records) {
			if i%2 == 1 {
				x.Delete(records[i])
			} else {
				x.Put(&Record{Compact: *facts.Compress(testbuilders.Job("b").WithUID(types.UID(fmt.Sprintf("other-%d", i))).Fact())})
			}
		}
		i++
	}
	if stay.Len() > 0 {
		t.Errorf("%d records that stayed were not returned", stay.Len())
	}
}
