// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

// TestReplaceMarks: a list replaces the earlier marks, also by those that a restored backup has brought back. No marks need to be stored
// before the first list.
func TestReplaceMarks(t *testing.T) {
	tr := newTracker(ticking(), 0)
	stored := func(name string) *memory.Marks {
		return &memory.Marks{
			NamespacedName:  types.NamespacedName{Namespace: testbuilders.Home, Name: name},
			ResourceVersion: "5", Unused: map[types.UID]time.Time{"a": testbuilders.Now},
		}
	}
	tr.SetMarks(stored("a"), testbuilders.Now)
	if changed := tr.MarksToStore(t.Context(), testbuilders.Home, testbuilders.Now); changed.Known {
		t.Errorf("before the list it is known that %v must be stored", changed.All)
	}
	tr.ReplaceMarks([]*memory.Marks{stored("b"), stored("c")}, testbuilders.Now)
	tr.RemoveMarks(stored("b").NamespacedName, testbuilders.Now)
	for _, version := range []string{"5", "1"} {
		c := stored("c")
		c.ResourceVersion = version
		tr.ReplaceMarks([]*memory.Marks{c}, testbuilders.Now)
		changed := tr.MarksToStore(t.Context(), testbuilders.Home, testbuilders.Now)
		if !changed.Known || len(changed.All) != 1 {
			t.Fatalf("got %+v, want only that c must be deleted", changed)
		}
		if got := changed.All[0]; got.Name != "c" || len(got.Unused) != 0 || got.ResourceVersion != version {
			t.Errorf("got %+v, want that c must be deleted in version %s", got, version)
		}
	}
	if got := tr.TakeUnmarked(); len(got) != 1 || got[0] != testbuilders.Home {
		t.Errorf("got %q", got)
	}
}
