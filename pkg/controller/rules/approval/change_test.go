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

// TestJoin: joined changes have a new ID, the same in any order, which no policy state older than the last change may approve.
func TestJoin(t *testing.T) {
	a, b, c := Change{ID: "a", Write: 3}, Change{ID: "b", Write: 2}, Change{ID: "c", Write: 1}
	ids := map[string]bool{"a": true, "b": true, "c": true}
	for _, all := range []Changes{{a, b}, {a, c}, {b, c}, {a, b, c}} {
		joined := all.join()
		if ids[joined.ID] {
			t.Errorf("%+v have the ID of others, %s", all, joined.ID)
		}
		ids[joined.ID] = true
		if joined.Write != all[0].Write {
			t.Errorf("%+v may be approved by write %d", all, joined.Write)
		}
		slices.Reverse(all)
		if again := all.join(); again.ID != joined.ID {
			t.Errorf("%+v have the ID %s, or %s in another order", all, joined.ID, again.ID)
		}
	}
}

// TestJoinOldest: changes of cluster policies are never joined, and a joined change belongs to no policy.
func TestJoinOldest(t *testing.T) {
	all := Changes{{ID: "wide", Wide: true, Policy: "c"}, {ID: "p-0", Policy: "p-0"}, {ID: "wider", Wide: true, Policy: "d"}}
	for i := range maxChanges - 4 {
		name := fmt.Sprint("p-", i+1)
		all = append(all, Change{ID: name, Policy: types.UID(name)})
	}
	if all.joinOldest(); len(all) != maxChanges-1 {
		t.Fatalf("%d changes are left, although there were few of them", len(all))
	}
	all = append(all, Change{ID: "last", Policy: "last"})
	all.joinOldest()
	oldest := Changes{{ID: "p-0"}, {ID: "p-1"}}.join().ID
	if len(all) != maxChanges-1 || all[0].ID != "wide" || all[1].ID != "wider" || all[2].Policy != several || all[2].ID != oldest {
		t.Errorf("%d changes are left: %+v", len(all), all)
	}
}

// TestRecord: a change replaces the earlier one of the same policy, and keeps the time since which the changes of the namespace wait.
func TestRecord(t *testing.T) {
	first, later := testbuilders.Now, testbuilders.Now.Add(time.Minute)
	var all Changes
	for _, c := range []Change{{ID: "p1", Policy: "p", At: first}, {ID: "q1", Policy: "q", At: later}, {ID: "p2", Policy: "p", At: later}} {
		all.Record(c)
	}
	all.Record(Change{ID: "r1", Policy: "r"})
	for i, want := range []string{"q1", "p2", "r1"} {
		if i >= len(all) || all[i].ID != want || !all[i].At.Equal(first) {
			t.Fatalf("recorded are %+v", all)
		}
	}
	if len(all) != 3 || !all.Has("q1") || !all.Has("p2") || all.Has("p1") {
		t.Errorf("recorded are %+v", all)
	}
	for i := range 2 * maxChanges {
		all.Record(Change{ID: fmt.Sprint("n", i), Policy: types.UID(fmt.Sprint("n", i))})
	}
	if len(all) != maxChanges {
		t.Errorf("%d changes are recorded, want %d", len(all), maxChanges)
	}
}

// TestSetObserved: only changes without a time get one.
func TestSetObserved(t *testing.T) {
	early, late := testbuilders.Now, testbuilders.Now.Add(time.Minute)
	all := Changes{{ID: "a", At: early}, {ID: "b"}}
	all.SetObserved(late)
	if !all[0].At.Equal(early) || !all[1].At.Equal(late) {
		t.Errorf("observed: %+v", all)
	}
}

// TestShown: messages name the last change.
func TestShown(t *testing.T) {
	if got := (Changes{{ID: "a"}, {ID: "b"}}).Shown(); got.ID != "b" {
		t.Errorf("shown is %s, want b", got.ID)
	}
}
