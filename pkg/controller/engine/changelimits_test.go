// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

// TestATotalIsNotLost: a policy of a namespace that is edited while a change of a cluster policy waits does not remove the namespace from
// the total of that change.
func TestATotalIsNotLost(t *testing.T) {
	const namespaces, each = 9, 9
	w := newWorld(t)
	w.clusterPolicy(ttlClusterPolicy("c", "never", 1))
	w.Config.HoldAbove, w.Config.HoldAboveTotal = 10, 40
	for i := range namespaces {
		name := fmt.Sprint("ns-", i)
		w.namespace(name)
		w.jobsIn(name, each, time.Hour)
	}
	w.CronJobsListed = false
	w.clusterPolicy(ttlClusterPolicy("c", "10m", 2))
	for i := range namespaces {
		w.policy(testbuilders.Policy("own").In(fmt.Sprint("ns-", i)).Rules(testbuilders.Rule("r", "1h").Labelled("app", "none")))
	}
	w.ReplaceCronJobs(nil, w.now)
	w.listCovered()
	w.confirmFresh()
	w.takes()
	if waiting := w.Reports("")[0].Holds; len(waiting) != 1 || waiting[0].Namespace != "" || waiting[0].Objects != namespaces*each {
		t.Errorf("the holds are %+v", waiting)
	}
}

// TestARemovedGuardrailLimitsItsRemoval: the change that removes or loosens a limit is assessed by the former limit.
func TestARemovedGuardrailLimitsItsRemoval(t *testing.T) {
	strict := func() *gc.ClusterCleanupPolicy {
		return guardrailPolicy(1, gc.Guardrails{MinTTL: new(gc.TTL("30d")), HoldAbove: &gc.HoldAbove{Objects: new(int64(3))}})
	}
	loose := func(objects int64) *gc.ClusterCleanupPolicy {
		return guardrailPolicy(2, gc.Guardrails{HoldAbove: &gc.HoldAbove{Objects: &objects}})
	}
	for name, change := range map[string]func(*world){
		"deleted": func(w *world) {
			delete(w.clusterPolicies, types.NamespacedName{Name: "all"})
			p := strict()
			p.ResourceVersion = w.next()
			w.RemoveClusterPolicy(p, w.now)
		},
		"loosened": func(w *world) { w.clusterPolicy(loose(1000)) },
		"loosened before it could be assessed": func(w *world) {
			w.CronJobsListed = false
			w.clusterPolicy(loose(100))
			p := loose(1000)
			p.Generation = 3
			w.clusterPolicy(p)
			w.ReplaceCronJobs(nil, w.now)
		},
		"for other namespaces": func(w *world) {
			p := loose(0)
			p.Spec.NamespaceSelector.MatchLabels = map[string]string{"team": "other"}
			w.clusterPolicy(p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ttlPolicy("10m", 1))
			w.clusterPolicy(strict())
			w.upsert(jobs(time.Hour, names("a-", 5)...)...)
			w.takes()
			change(w)
			w.confirmFresh()
			w.takes()
			w.oneHold("p", 5)
		})
	}
	w := newWorld(t, ttlPolicy("10m", 1))
	w.clusterPolicy(strict())
	w.clusterPolicy(loose(1000))
	w.upsert(jobs(time.Hour, names("a-", 5)...)...)
	w.clusterPolicy(guardrailPolicy(3, gc.Guardrails{}))
	w.confirmFresh()
	w.takes(names("a-", 5)...) // The limit of the generation before the last no longer applies.
}

// TestManyChangesAreJoined: not every change that cannot be assessed is remembered.
func TestManyChangesAreJoined(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	w.CronJobsListed = false
	for i := range 1000 {
		q := func() *testbuilders.PolicyBuilder {
			return testbuilders.Policy("q").Rules(testbuilders.Rule("r", "1h").Labelled("no", "ne"))
		}
		p := q().Version(w.next()).Obj()
		p.UID = types.UID(fmt.Sprint("u-", i))
		w.SetPolicy(p, w.now)
		w.RemovePolicy(p, w.now)
	}
	if n := len(w.Engine.Namespaces[testbuilders.Home].Changes); n > 50 {
		t.Errorf("%d changes", n)
	}
}

// TestTheStrictestTotalApplies: the smallest total of its namespaces applies to a change.
func TestTheStrictestTotalApplies(t *testing.T) {
	for _, strict := range []string{"x", "y", "z"} {
		t.Run(strict, func(t *testing.T) {
			w := newWorld(t)
			w.Config.HoldAboveTotal = 1000
			guard := guardrailPolicy(1, gc.Guardrails{HoldAbove: &gc.HoldAbove{Total: new(int64(5))}})
			guard.Name, guard.UID, guard.Spec.NamespaceSelector.MatchLabels = "guard", "uid-guard", map[string]string{"strict": "yes"}
			w.clusterPolicy(ttlClusterPolicy("c", "never", 1))
			w.clusterPolicy(guard)
			for _, ns := range []string{"x", "y", "z"} {
				w.namespace(ns)
				w.jobsIn(ns, 2, time.Hour)
			}
			w.namespace(strict, "strict", "yes")
			w.clusterPolicy(ttlClusterPolicy("c", "10m", 2))
			w.confirmFresh()
			w.takes()
			w.heldInAll(6)
		})
	}
}

// TestHoldsNameTheirLimit: a hold names the exceeded limit, and where it is set.
func TestHoldsNameTheirLimit(t *testing.T) {
	number := func(n int64) *int64 { return &n }
	for name, tc := range map[string]struct {
		above *gc.HoldAbove
		want  string
	}{
		"a flag":            {nil, "--default-hold-above allows (3 in ten minutes)"},
		"a cluster policy":  {&gc.HoldAbove{Objects: number(2)}, "spec.guardrails.holdAbove.objects of clustercleanuppolicies.gc.winnow.dev/all allows (2 in ten minutes)"},
		"of all namespaces": {&gc.HoldAbove{Total: number(1)}, "spec.guardrails.holdAbove.total of clustercleanuppolicies.gc.winnow.dev/all allows (1 in ten minutes)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Config.HoldAbove = 3
			w.clusterPolicy(guardrailPolicy(1, gc.Guardrails{HoldAbove: tc.above}))
			w.clusterPolicy(ttlClusterPolicy("p", "never", 1))
			w.upsert(jobs(time.Hour, names("a-", 4)...)...)
			p := ttlClusterPolicy("p", "10m", 2)
			w.clusterPolicy(p)
			all, _ := w.Holds(p)
			if len(all) != 1 || !strings.HasSuffix(all[0].Why, " made more objects due at once than "+tc.want) {
				t.Errorf("got %+v, want %s", all, tc.want)
			}
		})
	}
}

// TestALimitOfZero: a limit of 0 holds every object that a change makes due.
func TestALimitOfZero(t *testing.T) {
	w := newWorld(t, ttlPolicy("never", 1))
	w.clusterPolicy(guardrailPolicy(1, gc.Guardrails{HoldAbove: &gc.HoldAbove{Objects: new(int64(0))}}))
	w.upsert(job(time.Hour, "a"))
	w.policy(ttlPolicy("10m", 2))
	w.confirmFresh()
	w.takes()
	w.oneHold("p", 1)
}
