// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// TestStartSuspended: nothing is deleted in a namespace until a cluster policy that enforces selects it, nor once that is gone again.
func TestStartSuspended(t *testing.T) {
	preview, elsewhere, enforcing := everywhere(1, gc.Guardrails{}), everywhere(2, gc.Guardrails{}), everywhere(3, gc.Guardrails{})
	preview.Spec.Mode = gc.ModePreview
	elsewhere.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "c"}}
	w := newWorld(t)
	w.config.StartSuspended = true
	w.policy(keep("1h", 1))
	w.upsert(jobs(2*time.Hour, "a", "b")...)
	suspended := func(when string) {
		t.Helper()
		w.agree()
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
	suspended("with a policy for others")
	w.clusterPolicy(enforcing)
	w.agree()
	if w.report("p").Unselected {
		t.Error("selected, and still suspended")
	}
	w.RemoveClusterPolicy(enforcing, w.now)
	clear(w.clusterPolicies)
	suspended("once it is deleted")
	again := everywhere(4, gc.Guardrails{})
	again.UID = "uid-again"
	w.clusterPolicy(again)
	w.agree()
	w.deletes("a", "b")
}

// TestTheFirstClusterPolicyReleasesNothingUnheld: what came due while Winnow was suspended is assessed when that ends. It waits for
// approval where it is too much for its namespace, or 100,000 objects in all.
func TestTheFirstClusterPolicyReleasesNothingUnheld(t *testing.T) {
	for name, c := range map[string]struct{ namespaces, jobs int }{
		"many in each":     {2, 5000},
		"many in all only": {200, 500},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.config.StartSuspended, w.config.HoldAboveTotal = true, 5000
			for i := range c.namespaces {
				ns := fmt.Sprintf("n%d", i)
				w.namespace(ns)
				w.policy(testbuilders.Policy("p").In(ns).Default("1h"))
				w.jobsIn(ns, c.jobs, 30*time.Minute) // They come due by time.
			}
			w.pass(time.Hour)
			w.takes()
			w.clusterPolicy(everywhere(1, gc.Guardrails{}))
			w.agree()
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

// TestARestartWithoutTheFlag: the status told of no object that was free to go, so none of what came due meanwhile goes unheld.
func TestARestartWithoutTheFlag(t *testing.T) {
	w := restarted(t, testbuilders.Now)
	w.lists([]string{testbuilders.Home}, keep("30m", 1).Status(gc.CleanupPolicyStatus{ObservedGeneration: 1, Due: 4, Held: 4}))
	w.upsert(jobs(time.Hour, names("a-", 4)...)...)
	w.listed()
	w.agree()
	w.takes()
	w.waits("p", 4)
}

// TestARestartWithTheFlag: where a cluster policy selects the namespace, a restart holds nothing, in whatever order the first lists arrive.
func TestARestartWithTheFlag(t *testing.T) {
	for name, order := range map[string][]int{"cluster policies first": {0, 1, 2}, "cluster policies last": {1, 2, 0}} {
		t.Run(name, func(t *testing.T) {
			w := restarted(t, testbuilders.Now.Add(-45*time.Minute))
			w.config.StartSuspended = true
			c, p := everywhere(1, gc.Guardrails{}), keep("30m", 1).Version(w.next()).Obj()
			ns := testbuilders.Namespace(testbuilders.Home, w.next())
			c.ResourceVersion, c.Status.ObservedGeneration, p.Status.ObservedGeneration = w.next(), 1, 1
			w.clusterPolicies[types.NamespacedName{Name: c.Name}] = freshness.PolicyRevision(c.UID, c.Generation)
			w.policies[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = freshness.PolicyRevision(p.UID, p.Generation)
			w.namespaces[types.NamespacedName{Name: ns.Name}] = freshness.Revision{UID: ns.UID, Version: ns.ResourceVersion}
			lists := []func(){
				func() { w.ReplaceClusterPolicies([]*gc.ClusterCleanupPolicy{c}, w.next(), w.now) },
				func() { w.ReplacePolicies([]*gc.CleanupPolicy{p}, w.next(), w.now) },
				func() { w.ReplaceNamespaces([]*metav1.PartialObjectMetadata{ns}, w.next(), w.now) },
			}
			for _, i := range order {
				lists[i]()
			}
			w.upsert(jobs(time.Hour, names("a-", 4)...)...) // due since
			w.listed()
			w.agree()
			w.deletes(names("a-", 4)...)
		})
	}
}
