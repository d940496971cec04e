// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// TestStartSuspended: nothing is deleted in a namespace before an enforcing cluster policy selects it, or after the last such policy is
// removed.
func TestStartSuspended(t *testing.T) {
	preview, elsewhere, enforcing := guardrailPolicy(1, gc.Guardrails{}), guardrailPolicy(2, gc.Guardrails{}), guardrailPolicy(3, gc.Guardrails{})
	preview.Spec.Mode = gc.ModePreview
	elsewhere.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "c"}}
	w := newWorld(t)
	w.Config.StartSuspended = true
	w.policy(ttlPolicy("1h", 1))
	w.upsert(jobs(2*time.Hour, "a", "b")...)
	suspended := func(when string) {
		t.Helper()
		w.confirmFresh()
		w.takes()
		w.decided("a", policy.Hold, policy.ReasonSuspended)
		if r := w.report("p"); !r.Unselected || r.Due != 2 || r.Held != 2 {
			t.Fatalf("%s: the report says %+v", when, r)
		}
	}
	suspended("at the start")
	w.clusterPolicy(preview)
	suspended("with a preview")
	w.clusterPolicy(elsewhere)
	suspended("with a policy for other namespaces")
	w.clusterPolicy(enforcing)
	w.confirmFresh()
	if w.report("p").Unselected {
		t.Error("selected, and still suspended")
	}
	w.RemoveClusterPolicy(enforcing, w.now)
	clear(w.clusterPolicies)
	suspended("once it is deleted")
	again := guardrailPolicy(4, gc.Guardrails{})
	again.UID = "uid-again"
	w.clusterPolicy(again)
	w.confirmFresh()
	w.deletes("a", "b")
}

// TestTheEndOfStartSuspendedIsAssessed: objects that came due while deletions were suspended at the start are assessed when the first
// cluster policy ends that. They are held if they exceed the limit of a namespace, or of all namespaces.
func TestTheEndOfStartSuspendedIsAssessed(t *testing.T) {
	for name, c := range map[string]struct{ namespaces, jobs int }{
		"many in each":     {2, 5000},
		"many in all only": {200, 500},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Config.StartSuspended, w.Config.HoldAboveTotal = true, 5000
			for i := range c.namespaces {
				ns := fmt.Sprintf("n%d", i)
				w.namespace(ns)
				w.policy(testbuilders.Policy("p").In(ns).Default("1h"))
				w.jobsIn(ns, c.jobs, 30*time.Minute) // They come due by time.
			}
			w.pass(time.Hour)
			w.takes()
			w.clusterPolicy(guardrailPolicy(1, gc.Guardrails{}))
			w.confirmFresh()
			w.takes()
			var waiting int64
			for i := range c.namespaces {
				for _, h := range w.Reports(fmt.Sprintf("n%d", i))[0].Holds {
					waiting += h.Objects
				}
			}
			if all := int64(c.namespaces * c.jobs); waiting != all {
				t.Errorf("%d objects wait for approval, want all %d", waiting, all)
			}
		})
	}
}

// TestARestartWithoutTheFlag: the status counted all objects as held, so after a restart without the flag they are held as an unseen
// change.
func TestARestartWithoutTheFlag(t *testing.T) {
	w := restarted(t)
	w.lists([]string{testbuilders.Home}, ttlPolicy("30m", 1).Status(gc.CleanupPolicyStatus{ObservedGeneration: 1, Due: 4, Held: 4}))
	w.upsert(jobs(time.Hour, names("a-", 4)...)...)
	w.listCovered()
	w.confirmFresh()
	w.takes()
	w.oneHold("p", 4)
}

// TestARestartWithTheFlag: if a cluster policy selects the namespace, a restart with the flag holds nothing, in whatever order the first
// lists end.
func TestARestartWithTheFlag(t *testing.T) {
	for name, order := range map[string][]int{"cluster policies first": {0, 1, 2}, "cluster policies last": {1, 2, 0}} {
		t.Run(name, func(t *testing.T) {
			w := restarted(t)
			w.Config.StartSuspended = true
			c, p := guardrailPolicy(1, gc.Guardrails{}), ttlPolicy("30m", 1).Version(w.next()).Obj()
			ns := testbuilders.Namespace(testbuilders.Home, w.next())
			c.ResourceVersion, c.Status.ObservedGeneration, p.Status.ObservedGeneration = w.next(), 1, 1
			w.clusterPolicies[types.NamespacedName{Name: c.Name}] = freshness.SpecRevision(c.UID, c.Generation)
			w.policies[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = freshness.SpecRevision(p.UID, p.Generation)
			w.namespaces[types.NamespacedName{Name: ns.Name}] = freshness.Revision{UID: ns.UID, Version: ns.ResourceVersion}
			lists := []func(){
				func() { w.ReplaceClusterPolicies([]*gc.ClusterCleanupPolicy{c}, w.next(), w.now) },
				func() { w.ReplacePolicies([]*gc.CleanupPolicy{p}, w.next(), w.now) },
				func() { w.ReplaceNamespaces([]*metav1.PartialObjectMetadata{ns}, w.next(), w.now) },
			}
			list := func() {
				for _, i := range order {
					lists[i]()
				}
				w.listCovered()
			}
			list()
			store, config := w.store, w.Config
			config.Identity = "c"
			store.drivers.Clear()
			w.driver = newDriver(config)
			w.Follow()
			store.list(w.driver, w.now)
			w.ReplaceCronJobs(nil, w.now)
			list()
			w.Lead()
			w.upsert(jobs(time.Hour, names("a-", 4)...)...) // They came due since the last controller ran.
			w.listCovered()
			w.confirmFresh()
			w.deletes(names("a-", 4)...)
		})
	}
}
