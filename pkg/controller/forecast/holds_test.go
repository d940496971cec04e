// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
)

// holdID returns the ID of the hold that a generation of a policy causes in a namespace, or for "" in all namespaces together.
func holdID(policy string, generation int64, namespace string) string {
	uid := testbuilders.UID(policy)
	return approval.HoldID(uid, namespace, approval.GenerationID(uid, generation))
}

// TestHolds: a check of an approval gets the holds that a policy has, and the holds that the change causes.
func TestHolds(t *testing.T) {
	id := func(generation int64, namespace string) string {
		return holdID("p", generation, namespace)
	}
	many := join(jobs("team-a", minutesAgo(70, 6)...), pods("team-a", 70))
	jobsAndPods := []string{gc.ResourceJobs, gc.ResourcePods}
	held := gc.PolicyHold{ID: id(1, testbuilders.Home), Namespace: testbuilders.Home, Resources: jobsAndPods, Objects: 7}
	suspended := func(generation int64, suspend bool) *gc.ClusterCleanupPolicy {
		p := clusterPolicy("p", func(s *gc.ClusterCleanupPolicySpec) { s.TTLAfterFinished, s.Suspend = &hour, suspend })
		p.Generation = generation
		return p
	}
	for name, tc := range map[string]struct {
		world  *world
		change gc.PolicyChange
		listed int
		want   []gc.PolicyHold
		cut    bool
	}{
		"made by a new policy": {world: newWorld(many...), change: gc.PolicyChange{After: ttlPolicy("p", "1h")}, want: []gc.PolicyHold{held}},
		"made and approved by it": {
			world: newWorld(many...), change: gc.PolicyChange{After: approved(ttlPolicy("p", "1h"), held.ID)}, want: []gc.PolicyHold{held},
		},
		"existing, but not in the status yet": {
			world:  newWorld(many...).with(ttlPolicy("p", "1h")),
			change: gc.PolicyChange{Before: ttlPolicy("p", "1h"), After: approved(ttlPolicy("p", "1h"), held.ID)}, want: []gc.PolicyHold{held},
		},
		"approved before": {
			world:  newWorld(many...).with(approved(ttlPolicy("p", "1h"), held.ID)),
			change: gc.PolicyChange{Before: approved(ttlPolicy("p", "1h"), held.ID), After: approved(ttlPolicy("p", "1h"), held.ID, "5f3c")},
		},
		"of a generation that is yet to come": {
			world:  newWorld(many...).with(suspended(1, true)),
			change: gc.PolicyChange{Before: suspended(1, true), After: approved(suspended(2, true), id(3, "team-a"), id(3, ""))},
		},
		"few": {world: newWorld(jobs("team-a", 70)...), change: gc.PolicyChange{After: ttlPolicy("p", "1h")}},
		"of another policy": {
			world:  newWorld(many...).with(ttlPolicy("p", "1h")),
			change: gc.PolicyChange{After: testbuilders.Policy("later").Default("65m").Obj()},
			want:   []gc.PolicyHold{{ID: held.ID, Namespace: testbuilders.Home, Resources: jobsAndPods, Objects: 7, Policy: "team-a/p"}},
		},
		"of all namespaces together": {
			world:  newWorldWith(memory.Config{HoldAbove: -1, HoldAboveTotal: 5}, join(jobs("team-a", 70, 70, 70), jobs("team-b", 70, 70, 70))...),
			change: gc.PolicyChange{After: clusterTTL("p", "1h")},
			want:   []gc.PolicyHold{{ID: id(1, ""), Resources: jobsAndPods[:1], Objects: 6}},
		},
		"not all were looked at": {
			world: newWorld(many...), change: gc.PolicyChange{After: ttlPolicy("p", "1h")}, listed: 1, cut: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := tc.world.forecaster()
			if tc.listed > 0 {
				f.listedMost = tc.listed
			}
			got := f.Forecast(t.Context(), tc.change)
			for i := range got.Holds {
				got.Holds[i].Why, got.Holds[i].Since = "", nil
			}
			if !apiequality.Semantic.DeepEqual(got.Holds, tc.want) || got.Complete == tc.cut || !got.Leading {
				t.Errorf("got %+v, complete: %t; want %+v, %t", got.Holds, got.Complete, tc.want, !tc.cut)
			}
		})
	}
}

// TestHoldsElsewhere: if a change approves the hold of another policy, the forecast names that policy.
func TestHoldsElsewhere(t *testing.T) {
	w := newWorld(jobs("team-a", minutesAgo(70, 6)...)...).with(ttlPolicy("p", "1h"))
	id := holdID("p", 1, testbuilders.Home)
	got := w.forecaster().Forecast(t.Context(), gc.PolicyChange{After: approved(testbuilders.Policy("q").Default("2h").Obj(), id, "5f3c")})
	if len(got.Elsewhere) != 1 || got.Elsewhere[id].String() != "team-a/p" {
		t.Errorf("got %v", got.Elsewhere)
	}
	if got := w.forecaster().Forecast(t.Context(), gc.PolicyChange{Before: ttlPolicy("p", "1h"), After: approved(ttlPolicy("p", "1h"), id)}); len(
		got.Elsewhere,
	) != 0 {
		t.Errorf("of the policy itself: got %v", got.Elsewhere)
	}
}
