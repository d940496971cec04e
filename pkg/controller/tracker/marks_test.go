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

// TestReplaceMarks: a list replaces the earlier marks. No marks need to be stored before the first list.
func TestReplaceMarks(t *testing.T) {
	tr := newTracker(ticking(), 0)
	stored := func(name string) *memory.Marks {
		return &memory.Marks{
			NamespacedName:  types.NamespacedName{Namespace: testbuilders.Home, Name: name},
			ResourceVersion: "1", Unused: map[types.UID]time.Time{"a": testbuilders.Now},
		}
	}
	tr.SetMarks(stored("a"), testbuilders.Now)
	if marks, known := tr.MarksToStore(testbuilders.Home, testbuilders.Now); known {
		t.Errorf("before the list it is known that %v must be stored", marks)
	}
	tr.ReplaceMarks([]*memory.Marks{stored("b"), stored("c")}, testbuilders.Now)
	tr.RemoveMarks(stored("b").NamespacedName, testbuilders.Now)
	marks, known := tr.MarksToStore(testbuilders.Home, testbuilders.Now)
	if !known || len(marks) != 1 || marks[0].Name != "c" || len(marks[0].Unused) != 0 {
		t.Errorf("got %v, %t, want only that c must be deleted", marks, known)
	}
	if got := tr.TakeUnmarked(); len(got) != 1 || got[0] != testbuilders.Home {
		t.Errorf("got %q", got)
	}
}
