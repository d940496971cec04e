// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

// TestManyNotices: no more notices are given than can be stored.
func TestManyNotices(t *testing.T) {
	const few, most = 3, 50_000
	w := newNoticeWorld(t, announcing(1, "1h", "2h"))
	w.upsert(jobs(7*time.Hour, names("a-", most+few)...)...)
	give := func() []view.DeletionNotice {
		var all []view.DeletionNotice
		w.read(w.NoticesToGive(testbuilders.Home, nobody, most+few, w.now, &all))
		w.Announced(view.GivenAt(all, w.now), w.now)
		w.store()
		return all
	}
	if got := len(give()); got != most {
		t.Fatalf("%d notices, want %d", got, most)
	}
	if got := len(give()); got != 0 {
		t.Fatalf("%d more notices", got)
	}
	if len(w.stored) != 10 {
		t.Errorf("%d objects are stored", len(w.stored))
	}
	if c := w.candidate("a-0").Message; len(w.stored) == 10 && !strings.Contains(c+w.candidate("a-9").Message, "notice was given") {
		t.Errorf("got %q", c)
	}
	w.removed("a-0", "a-1")
	w.store()
	if got := len(give()); got != 2 {
		t.Errorf("%d notices for the two removed objects' room, want 2", got)
	}
}

// TestPoliciesShareNotices: a policy with many notices does not keep others from theirs, and a policy that pauses has none.
func TestPoliciesShareNotices(t *testing.T) {
	w := newNoticeWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h").For(gc.ResourceJobs).Notice("2h")),
		testbuilders.Policy("q").Rules(testbuilders.Rule("r", "1h").For(gc.ResourcePods).Notice("2h")))
	w.upsert(jobs(7*time.Hour, names("early-", 20)...)...)
	for i, age := range []time.Duration{2 * time.Hour, 2 * time.Hour, 3 * time.Hour} {
		w.upsert(testbuilders.Pod(fmt.Sprint("late-", i)).Succeeded(w.now.Add(-age)).Fact())
	}
	w.confirmFresh()
	given := func(pauses func(types.UID) bool, most int) (out []string) {
		var all []view.DeletionNotice
		w.read(w.NoticesToGive(testbuilders.Home, pauses, most, w.now, &all))
		for _, n := range all {
			out = append(out, n.Fact.Name)
		}
		return out
	}
	if got := given(nobody, 4); len(got) != 4 || got[1] != "late-2" || !strings.HasPrefix(got[3], "late-") {
		t.Errorf("got %q", got)
	}
	p := w.Records.Get(w.facts["early-0"].UID).Policy.UID
	if got := given(func(uid types.UID) bool { return uid == p }, 10); !slices.Equal(got, []string{"late-2", "late-0", "late-1"}) {
		t.Errorf("got %q", got)
	}
}
