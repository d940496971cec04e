// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// restarted returns a world with a new engine, as after a version of Winnow that stored no assessments. At most two objects may become due
// at once.
func restarted(t *testing.T) *world {
	w := newWorld(t)
	w.driver = newDriver(memory.Config{Identity: "b", HoldAbove: 2, HoldAboveTotal: -1})
	clear(w.namespaces)
	newAssessmentStore().list(w.driver, w.now)
	w.Lead()
	w.ReplaceCronJobs(nil, w.now)
	return w
}

// restart replaces the engine with a new one, which knows what is stored, and leads. meanwhile happens while no engine runs.
func (w *world) restart(meanwhile func()) {
	store, c := w.store, w.Config
	store.drivers.Clear()
	w.driver = newDriver(memory.Config{})
	meanwhile()
	c.Identity += "'"
	w.driver = newDriver(c)
	w.Follow()
	store.list(w.driver, w.now)
	w.ReplaceCronJobs(nil, w.now)
	w.ReplaceNamespaces(slices.Collect(maps.Values(w.stored.namespaces)), w.next(), w.now)
	w.ReplacePolicies(slices.Collect(maps.Values(w.stored.policies)), w.next(), w.now)
	w.ReplaceClusterPolicies(slices.Collect(maps.Values(w.stored.clusterPolicies)), w.next(), w.now)
	w.Replace(gc.ResourceJobs, nil, uint64(w.version), w.now)
	for _, f := range w.facts {
		w.Upsert(facts.Compress(f), w.now)
	}
	w.listCovered()
	w.Lead()
	w.confirmFresh()
}

// listNamespaces ends the first list of namespaces.
func (w *world) listNamespaces(names ...string) {
	var all []*metav1.PartialObjectMetadata
	for _, name := range names {
		m := testbuilders.Namespace(name, w.next(), "kubernetes.io/metadata.name", name)
		w.namespaces[types.NamespacedName{Name: name}] = freshness.Revision{UID: m.UID, Version: m.ResourceVersion}
		all = append(all, m)
	}
	w.ReplaceNamespaces(all, w.next(), w.now)
}

// lists ends the first lists of namespaces and policies.
func (w *world) lists(namespaces []string, all ...*testbuilders.PolicyBuilder) {
	w.listNamespaces(namespaces...)
	var policies []*gc.CleanupPolicy
	for _, b := range all {
		p := b.Version(w.next()).Obj()
		w.policies[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = freshness.SpecRevision(p.UID, p.Generation)
		policies = append(policies, p)
	}
	w.ReplacePolicies(policies, w.next(), w.now)
	allListed(w.driver)
}

// recreateNamespace replaces the home namespace with another one of the same name.
func (w *world) recreateNamespace() {
	m := testbuilders.Namespace(testbuilders.Home, w.next())
	m.UID = "another"
	w.stored.namespaces[m.Name] = m
	w.namespaces[types.NamespacedName{Name: m.Name}] = freshness.Revision{UID: m.UID, Version: m.ResourceVersion}
}

// TestChangesWhileNoReplicaRuns: what a change makes due while no replica runs is assessed by the next one, and what time makes due is not.
func TestChangesWhileNoReplicaRuns(t *testing.T) {
	team := func(generation int64, ttl gc.TTL, team string) *gc.ClusterCleanupPolicy {
		p := ttlClusterPolicy("c", ttl, generation)
		p.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}}
		return p
	}
	guard := func() *gc.ClusterCleanupPolicy { return guardrailPolicy(1, gc.Guardrails{MinTTL: new(gc.TTL("30d"))}) }
	p := func(w *world) { w.policy(ttlPolicy("1h", 1)) }
	for name, c := range map[string]struct {
		before, meanwhile func(*world)
		held              bool
	}{
		"nothing":                {p, func(*world) {}, false},
		"time passes":            {p, func(w *world) { w.now = w.now.Add(time.Hour) }, false},
		"a policy changes":       {p, func(w *world) { w.policy(ttlPolicy("10m", 2)) }, true},
		"past the API":           {p, func(w *world) { w.policy(ttlPolicy("10m", 1)) }, true},
		"a policy is created":    {func(*world) {}, func(w *world) { w.policy(ttlPolicy("10m", 1)) }, true},
		"a namespace comes back": {func(w *world) { w.policy(ttlPolicy("10m", 1)) }, func(w *world) { w.recreateNamespace(); w.upsert(jobs(30*time.Minute, names("a-", 4)...)...) }, true},
		"a policy is deleted": {
			func(w *world) { w.clusterPolicy(guard()); w.policy(ttlPolicy("10m", 1)) },
			func(w *world) {
				delete(w.stored.clusterPolicies, "all")
				delete(w.clusterPolicies, types.NamespacedName{Name: "all"})
			}, true,
		},
		"labels select": {
			func(w *world) { w.clusterPolicy(team(1, "10m", "a")) }, func(w *world) { w.namespace(testbuilders.Home, "team", "a") }, true,
		},
		"a selector changes": {
			func(w *world) { w.clusterPolicy(team(1, "10m", "a")) }, func(w *world) { w.clusterPolicy(team(2, "10m", "none")) }, true,
		},
		"a protection ends": {
			func(w *world) {
				w.namespace(testbuilders.Home, gc.LabelProtected, "true")
				w.policy(ttlPolicy("10m", 1))
			},
			func(w *world) { w.namespace(testbuilders.Home) }, true,
		},
		"a stop ends": {
			func(w *world) {
				w.clusterPolicy(guardrailPolicy(1, gc.Guardrails{SuspendAll: true}))
				w.policy(ttlPolicy("10m", 1))
			},
			func(w *world) { w.clusterPolicy(guardrailPolicy(2, gc.Guardrails{})) }, true,
		},
		"it is changed back": {
			p, func(w *world) { w.policy(ttlPolicy("10m", 2)); w.policy(ttlPolicy("1h", 3)) }, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Config.HoldAbove = 2
			w.namespace(testbuilders.Home, "team", "none")
			c.before(w)
			if name != "a namespace comes back" {
				w.upsert(jobs(30*time.Minute, names("a-", 4)...)...)
			}
			w.restart(func() { c.meanwhile(w) })
			held := 0
			for _, ns := range []string{"", testbuilders.Home} {
				for _, r := range w.Reports(ns) {
					held += int(r.Held)
				}
			}
			switch {
			case c.held && held != 4:
				t.Errorf("%d objects are held, want 4", held)
			case c.held, name == "nothing", name == "it is changed back":
				w.takes()
			default:
				w.takes(names("a-", 4)...)
			}
		})
	}
}

// TestARestartKnowsMembers: after a restart, a hold has the same members, and an approval covers no others, although a change that nobody
// has assessed made more objects of the policy due.
func TestARestartKnowsMembers(t *testing.T) {
	w := newHoldWorld(t, ttlPolicy("1h", 1))
	w.upsert(jobs(15*time.Minute, names("b-", 4)...)...)
	w.policy(ttlPolicy("25m", 2))
	id := w.oneHold("p", 4).ID
	w.restart(func() { w.policy(ttlPolicy("10m", 3)) })
	now := w.oneHold("p", 8)
	if now.ID == id {
		t.Errorf("hold %s got other members, and kept its ID", id)
	}
	w.policy(ttlPolicy("10m", 3).Annotated(gc.AnnotationApprovedHold, id))
	w.confirmFresh()
	w.takes()
	w.policy(ttlPolicy("10m", 3).Annotated(gc.AnnotationApprovedHold, now.ID))
	w.takes(append(names("a-", 4), names("b-", 4)...)...)
}

// TestAnApprovalWhileNoReplicaRuns: the approval covers what it covered before, and not what another change made due since.
func TestAnApprovalWhileNoReplicaRuns(t *testing.T) {
	w := newHoldWorld(t, ttlPolicy("1h", 1))
	w.upsert(jobs(15*time.Minute, names("b-", 4)...)...)
	w.policy(ttlPolicy("25m", 2))
	id := w.oneHold("p", 4).ID
	w.restart(func() { w.policy(ttlPolicy("10m", 3).Annotated(gc.AnnotationApprovedHold, id)) })
	w.oneHold("p", 8)
	w.takes() // The policy deletes nothing while it has a hold.
	w.removed(names("b-", 4)...)
	w.takes(names("a-", 4)...)
}

// TestCountsAndLimitsSurviveARestart: what a change made due without an approval counts with the next one, and a limit that was removed
// applies to the change that removed it.
func TestCountsAndLimitsSurviveARestart(t *testing.T) {
	t.Run("counts", func(t *testing.T) {
		w := newHoldWorld(t, ttlPolicy("1h", 1))
		w.upsert(jobs(15*time.Minute, "b")...)
		w.removed("a-2", "a-3")
		w.policy(ttlPolicy("25m", 2))
		w.deletes("a-0", "a-1")
		w.removed("a-0", "a-1")
		w.restart(func() {})
		w.policy(ttlPolicy("10m", 3))
		w.oneHold("p", 1)
	})
	t.Run("a limit", func(t *testing.T) {
		w := newWorld(t, ttlPolicy("10m", 1))
		w.clusterPolicy(guardrailPolicy(1, gc.Guardrails{MinTTL: new(gc.TTL("30d")), HoldAbove: &gc.HoldAbove{Objects: new(int64(3))}}))
		w.upsert(jobs(time.Hour, names("a-", 4)...)...)
		w.restart(func() {
			delete(w.stored.clusterPolicies, "all")
			delete(w.clusterPolicies, types.NamespacedName{Name: "all"})
		})
		w.oneHold("p", 4)
		w.takes()
	})
}

// TestAnUpgradeKeepsHolds: after a version that stored no assessments, everything that a policy would delete waits under the hold that its
// status lists.
func TestAnUpgradeKeepsHolds(t *testing.T) {
	w := restarted(t)
	w.Config.HoldAbove = 10
	w.lists([]string{testbuilders.Home}, ttlPolicy("10m", 2).Status(statusOf(2, gc.PolicyHold{ID: "X", Namespace: testbuilders.Home, Objects: 3})))
	w.upsert(jobs(time.Hour, names("a-", 4)...)...)
	w.listCovered()
	w.confirmFresh()
	w.takes()
	if h := w.oneHold("p", 4); h.ID != "X" {
		t.Errorf("the hold was replaced by %+v", h)
	}
	w.policy(ttlPolicy("10m", 2).Annotated(gc.AnnotationApprovedHold, "X"))
	w.takes(names("a-", 4)...)
}

// TestAnUpgradeJoinsHolds: a status does not say which of two holds an object waits under. Both become one, which nobody has approved.
func TestAnUpgradeJoinsHolds(t *testing.T) {
	own := testbuilders.Policy("own").Default("10m").Status(statusOf(1,
		gc.PolicyHold{ID: "own", Namespace: testbuilders.Home, Objects: 2},
		gc.PolicyHold{ID: "other", Namespace: testbuilders.Home, Objects: 2, Policy: testbuilders.Home + "/other"},
	))
	other := testbuilders.Policy("other").Rules(testbuilders.Rule("r", "10m").Labelled("none", "such")).
		Status(statusOf(1, gc.PolicyHold{ID: "other", Namespace: testbuilders.Home, Objects: 2}))
	w := restarted(t)
	w.lists([]string{testbuilders.Home}, own, other)
	w.upsert(jobs(time.Hour, "a", "b")...)
	w.listCovered()
	w.policy(own.Annotated(gc.AnnotationApprovedHold, "own"))
	w.policy(other.Annotated(gc.AnnotationApprovedHold, "other"))
	w.confirmFresh()
	w.takes()
	joined := w.oneHold("own", 2)
	if joined.Policy != testbuilders.Home+"/other" {
		t.Fatalf("the joined hold is %+v", joined)
	}
	w.policy(other.Annotated(gc.AnnotationApprovedHold, joined.ID))
	w.takes("a", "b")
}

// TestHoldsOfAClusterPolicyInAnyOrder: a replica that starts adopts the holds of a cluster policy, whether policies or namespaces are
// listed first.
func TestHoldsOfAClusterPolicyInAnyOrder(t *testing.T) {
	for name, policiesFirst := range map[string]bool{"policies first": true, "namespaces first": false} {
		t.Run(name, func(t *testing.T) {
			w := restarted(t)
			c := ttlClusterPolicy("c", "10m", 2)
			c.Status = statusOf(2, gc.PolicyHold{ID: "X", Namespace: testbuilders.Home, Objects: 1})
			all := []func(){
				func() { w.lists([]string{testbuilders.Home}) },
				func() { w.ReplaceClusterPolicies([]*gc.ClusterCleanupPolicy{c}, w.next(), w.now) },
			}
			if policiesFirst {
				slices.Reverse(all)
			}
			for _, list := range all {
				list()
			}
			w.upsert(job(15*time.Minute, "a"))
			w.listCovered()
			w.decided("a", policy.Hold, policy.ReasonHeld)
		})
	}
}

// TestMarksAfterObjectsAtARestart: objects are due by marks that are listed last. They were not due while the last controller ran, so they
// are held if there are too many. If marks cannot be stored, the objects count from now on and nothing waits.
func TestMarksAfterObjectsAtARestart(t *testing.T) {
	all := names("a-", 3)
	begin := func(t *testing.T) *world {
		w := restarted(t)
		w.lists([]string{testbuilders.Home}, ttlPolicy("10m", 2).Status(gc.CleanupPolicyStatus{ObservedGeneration: 1}))
		for _, name := range all {
			w.upsert(rejected(name))
		}
		w.listCovered()
		w.confirmFresh()
		if text := w.WhyNotAssessed(w.driver.Namespaces[testbuilders.Home]); text != knowledge.NotListed("usage marks") {
			t.Errorf("changes are not assessed because %q", text)
		}
		return w
	}
	t.Run("listed", func(t *testing.T) {
		w := begin(t)
		m := finishMarks("5", "a-0", -time.Hour, 100)
		for _, name := range all {
			m.Finished[testbuilders.UID(name)] = memory.FinishMark{Since: testbuilders.Now.Add(-time.Hour), Version: 100}
		}
		w.SetMarks(m, w.now)
		w.takes()
		w.MarksListed(sets.New(m.NamespacedName), w.now)
		w.takes()
		if held := w.report("p").Held; held != 3 {
			t.Errorf("%d are held, want 3", held)
		}
	})
	t.Run("unavailable", func(t *testing.T) {
		w := begin(t)
		w.MarksUnavailable(w.now)
		w.pass(11 * time.Minute)
		w.takes(all...)
	})
}

// Follow makes the engine follow, and settles what this touches.
func (w *world) Follow() {
	w.driver.Follow()
	w.stepAll()
}
