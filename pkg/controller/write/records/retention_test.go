// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestOldRecords: what is older than the retention is not served, and whole chunks of it are removed.
func TestOldRecords(t *testing.T) {
	s := newStore(t)
	s.PerNamespace = 20
	w := s.writer()
	for i, days := range []int{40, 35, 33, 29, 1, 0} { // 2 in a chunk
		w.Add(order("a", i), now.AddDate(0, 0, -days), false)
	}
	w.flush(t.Context())
	page, err := (&Reader{s.Config}).Records(t.Context(), all("", 10))
	if err != nil || len(page.Items) != 3 {
		t.Errorf("got %d records, %v", len(page.Items), err)
	}
	if err := w.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.want("a", 2, 6)
	if got := s.counted("removed"); got != 2 {
		t.Errorf("counted %d removed records", got)
	}
}

// TestAWrongClockRemovesNothing: by a clock that is 40 days ahead, every record is too old.
func TestAWrongClockRemovesNothing(t *testing.T) {
	for name, doubt := range map[string]func(call int) bool{
		"found at once":           func(int) bool { return true },
		"found before the DELETE": func(call int) bool { return call > 1 },
	} {
		s := newStore(t)
		calls := 0
		s.Doubt = func(context.Context) bool {
			calls++
			return doubt(calls)
		}
		w := s.writer()
		add(w, "a", 0, 250)
		w.flush(t.Context())
		s.clock.Step(40 * 24 * time.Hour)
		if err := w.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		add(w, "a", 250, 350) // Another chunk begins.
		w.flush(t.Context())
		if s.want("a", 0, 350); calls == 0 {
			t.Errorf("%s: nobody compared clocks", name)
		}
	}
}

// TestRemovalStops: after a DELETE that fails, no later chunk is removed, or one would be missing in the middle.
func TestRemovalStops(t *testing.T) {
	s := newStore(t)
	w := s.writer()
	add(w, "a", 0, 350)
	w.flush(t.Context())
	s.clock.Step(40 * 24 * time.Hour)
	s.before = func(request string) error {
		if request == "delete a/records-0000000001" {
			return errors.New("refused")
		}
		return nil
	}
	if err := w.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.want("a", 100, 350)
}

// TestSurplus: which chunks are removed.
func TestSurplus(t *testing.T) {
	for name, c := range map[string]struct {
		counts, ages []int // ages in days; -1 if not known
		limit, want  int
	}{
		"few and young":              {[]int{5, 5}, []int{2, 1}, 10, 0},
		"one too many":               {[]int{5, 5, 1}, []int{2, 1, 0}, 10, 1},
		"none allowed":               {[]int{5, 5}, []int{2, 1}, 0, 2},
		"old":                        {[]int{5, 5, 5}, []int{40, 31, 0}, 100, 2},
		"unknown":                    {[]int{0, 5}, []int{-1, 1}, 10, 0},
		"unknown before what is old": {[]int{0, 5, 5}, []int{-1, 31, 1}, 10, 2},
	} {
		var chunks []chunk
		for i, count := range c.counts {
			k := chunk{number: uint64(i), count: count}
			if c.ages[i] >= 0 {
				k.newest = now.AddDate(0, 0, -c.ages[i])
			}
			chunks = append(chunks, k)
		}
		if got := max(len(tooMany(chunks, c.limit)), len(tooOld(chunks, now.AddDate(0, 0, -30)))); got != c.want {
			t.Errorf("%s: removed %d chunks, want %d", name, got, c.want)
		}
	}
}
