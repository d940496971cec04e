// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

// TestJoin: joined changes have an ID of their own, the same in any order, and what was approved before the last of them covers nothing.
func TestJoin(t *testing.T) {
	a, b, c := Change{ID: "a", Write: 3}, Change{ID: "b", Write: 2}, Change{ID: "c", Write: 1}
	ids := map[string]bool{"a": true, "b": true, "c": true}
	for _, all := range []Changes{{a, b}, {a, c}, {b, c}, {a, b, c}} {
		joined := all.Join()
		if ids[joined.ID] {
			t.Errorf("%+v have the ID of others, %s", all, joined.ID)
		}
		ids[joined.ID] = true
		if joined.Write != all[0].Write {
			t.Errorf("%+v may be approved by write %d", all, joined.Write)
		}
		slices.Reverse(all)
		if again := all.Join(); again.ID != joined.ID {
			t.Errorf("%+v have the ID %s, or %s in another order", all, joined.ID, again.ID)
		}
	}
}

// TestFold: only changes are folded that reach no other namespace and that somebody saw; no policy owns what is folded.
func TestFold(t *testing.T) {
	all := Changes{{ID: "wide", Wide: true, Policy: "c"}, {ID: "unseen", Unseen: true}}
	for i := range MaxChanges - 3 {
		name := fmt.Sprint("p-", i)
		all = append(all, Change{ID: name, Policy: types.UID(name)})
	}
	if all.Fold(); len(all) != MaxChanges-1 {
		t.Fatalf("%d changes are left of fewer than are kept apart", len(all))
	}
	all = append(all, Change{ID: "last", Policy: "last"})
	all.Fold()
	if len(all) != MaxChanges-1 || all[0].ID != "wide" || all[1].ID != "unseen" || all[2].Policy != several {
		t.Errorf("left are %d: %+v", len(all), all)
	}
}

// TestWindow: what a change made due counts for ten minutes.
func TestWindow(t *testing.T) {
	for after, want := range map[time.Duration]int{
		0: 5, 5*time.Minute - 1: 5, 5 * time.Minute: 3, 10*time.Minute - 1: 3, 10 * time.Minute: 0,
	} {
		w := &Window{}
		w.Add(2, testbuilders.Now.Add(-5*time.Minute))
		w.Add(3, testbuilders.Now)
		if got := w.Sum(testbuilders.Now.Add(after)); got != want {
			t.Errorf("%d objects after %s, want %d", got, after, want)
		}
	}
}
