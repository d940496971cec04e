// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// crowd writes Jobs that finished two hours ago.
func (w *world) crowd(namespace, prefix string, n int) {
	for i := range n {
		name := fmt.Sprint(prefix, "-", i)
		w.upsert(testbuilders.Job(name).In(namespace).Complete(testbuilders.Now.Add(-2 * time.Hour)).Fact())
	}
}

// TestAToggledPolicyIsNotHeld: the same objects become due each time that somebody edits the policy back. They count once, so only changes
// that make other objects due are held.
func TestAToggledPolicyIsNotHeld(t *testing.T) {
	for name, off := range map[string]func(generation int64) *testbuilders.PolicyBuilder{
		"a TTL":   func(g int64) *testbuilders.PolicyBuilder { return ttlPolicy("never", g) },
		"Preview": func(g int64) *testbuilders.PolicyBuilder { return ttlPolicy("1h", g).Preview() },
		"suspend": func(g int64) *testbuilders.PolicyBuilder { return ttlPolicy("1h", g).Suspended() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, off(1))
			w.Config.HoldAbove = 10
			w.crowd(testbuilders.Home, "x", 7)
			generation := int64(1)
			for range 5 {
				generation += 2
				w.policy(ttlPolicy("1h", generation-1))
				w.decided("x-0", policy.Delete, policy.ReasonExpired)
				w.policy(off(generation))
				w.pass(time.Minute)
			}
			w.crowd(testbuilders.Home, "y", 4) // While the policy is off, they do not become due by time.
			w.policy(ttlPolicy("1h", generation+1))
			w.decided("y-0", policy.Hold, policy.ReasonHeld)
		})
	}
}

// TestAToggledClusterPolicyIsNotHeld: the same is true in all namespaces together, for the policy that is toggled.
func TestAToggledClusterPolicyIsNotHeld(t *testing.T) {
	defaults := func(ttl gc.TTL, generation int64) *gc.ClusterCleanupPolicy {
		return &gc.ClusterCleanupPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "defaults", UID: "uid-defaults", Generation: generation},
			Spec: gc.ClusterCleanupPolicySpec{
				Mode: gc.ModeEnforce, NamespaceSelector: &metav1.LabelSelector{}, AnnotationTTL: gc.AnnotationExtendOnly, TTLAfterFinished: &ttl,
			},
		}
	}
	w := newWorld(t)
	w.Config.HoldAboveTotal = 10
	w.clusterPolicy(defaults("never", 1))
	for _, name := range []string{"a", "b"} {
		w.namespace(name)
		w.crowd(name, name, 4)
	}
	for round := range int64(5) {
		w.clusterPolicy(defaults("1h", 2*round+2))
		w.decided("a-0", policy.Delete, policy.ReasonExpired)
		w.clusterPolicy(defaults("never", 2*round+3))
		w.pass(time.Minute)
	}
	w.removed("a-0") // It still counts.
	w.crowd("b", "c", 3)
	w.clusterPolicy(defaults("1h", 20))
	w.decided("c-0", policy.Hold, policy.ReasonHeld)
	w.decided("a-1", policy.Hold, policy.ReasonHeld)
}
