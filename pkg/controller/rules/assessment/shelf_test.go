// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func boxOf(t *testing.T, s *Shelf[string], uid types.UID) int {
	t.Helper()
	_, box, ok := s.Group(uid)
	if !ok {
		t.Fatalf("%s is in no box", uid)
	}
	return box
}

// TestShelf: entries fill one box after the other, by number and by size, stay where they are, and use room that becomes free.
func TestShelf(t *testing.T) {
	s := NewShelf[string](2)
	for i, uid := range []types.UID{"a", "b", "c"} {
		if s.Put(uid, "g", Size{Entry: 10, Group: 100}); boxOf(t, s, uid) != i/2 {
			t.Errorf("%s is in box %d", uid, boxOf(t, s, uid))
		}
	}
	if s.Put("b", "h", Size{Entry: 10, Group: 100}); boxOf(t, s, "b") != 0 || len(s.Entries("g")) != 2 || !slices.Equal(s.Entries("h"), []types.UID{"b"}) {
		t.Errorf("an entry of another group is in box %d; g has %v, and h %v", boxOf(t, s, "b"), s.Entries("g"), s.Entries("h"))
	}
	s.Remove("a")
	s.Remove("unknown")
	if s.Put("d", "g", Size{Entry: 10}); boxOf(t, s, "d") != 0 {
		t.Errorf("the room of a removed entry is not used: %d", boxOf(t, s, "d"))
	}
	if s.Put("large", "l", Size{Entry: MaxBytes - 5, Group: 100}); boxOf(t, s, "large") != 2 {
		t.Errorf("a large entry is in box %d, want an empty one", boxOf(t, s, "large"))
	}
	if s.Put("c", "g", Size{Entry: MaxBytes, Group: 100}); boxOf(t, s, "c") == 0 || boxOf(t, s, "c") == 2 {
		t.Errorf("an entry that has grown is in box %d", boxOf(t, s, "c"))
	}
}

// TestShelfSaysWhatChanged: a box has changed when an entry was added or touched, and has less when one was removed.
func TestShelfSaysWhatChanged(t *testing.T) {
	s := NewShelf[string](1)
	for n := range 3 {
		s.PutAt(n, types.UID(fmt.Sprint(n)), fmt.Sprint("g", n%2), Size{Entry: 1})
	}
	flags := func(want string) {
		t.Helper()
		got := ""
		for _, n := range s.Numbers() {
			got += map[[2]bool]string{{}: "-", {true, false}: "c", {false, true}: "l", {true, true}: "b"}[[2]bool{s.Box(n).Changed, s.Box(n).Less}]
			s.Box(n).Changed, s.Box(n).Less = false, false
		}
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	flags("---") // They are stored there.
	s.Touch("g0")
	flags("c-c")
	s.Remove("1")
	flags("-l-")
	s.Put("3", "g1", Size{Entry: 1})
	flags("-c-")
	s.TouchAll()
	flags("ccc")
}

// TestShelfMovesWhatHasGrown: an entry that has grown leaves a box that is full, and one that has not grown stays, even in another group.
func TestShelfMovesWhatHasGrown(t *testing.T) {
	s := NewShelf[string](10)
	for _, uid := range []types.UID{"a", "b", "c", "d"} {
		s.Put(uid, string(uid), Size{Entry: MaxBytes / 4})
	}
	if s.Put("a", "other", Size{Entry: MaxBytes / 4}); boxOf(t, s, "a") != 0 {
		t.Errorf("an entry of another group is in box %d", boxOf(t, s, "a"))
	}
	if s.Put("b", "b", Size{Entry: MaxBytes / 2}); boxOf(t, s, "b") == 0 {
		t.Error("an entry that has grown is in a box without room")
	}
}
