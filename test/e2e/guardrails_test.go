// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// TestGuardrails: minTTL and maxTTL bind what policies and ceilings say, "never" only where the operator does not allow it, and a
// cluster policy in preview binds nothing.
func TestGuardrails(t *testing.T) {
	byTime := func(s v1alpha1.TTL) v1alpha1.CleanupPolicySpec {
		return v1alpha1.CleanupPolicySpec{TTLAfterFinished: &s}
	}
	min4s, max4s := &v1alpha1.Guardrails{MinTTL: ttl("4s")}, &v1alpha1.Guardrails{MaxTTL: ttl("4s")}
	const nothing = time.Duration(-1)
	for name, c := range map[string]struct {
		guardrails *v1alpha1.Guardrails
		mode       v1alpha1.PolicyMode
		policy     v1alpha1.CleanupPolicySpec
		after      time.Duration
		keep       int
		decider    string // of the cluster policy's ceiling if empty
	}{
		"minTTL by time":            {min4s, "", byTime("0s"), 4 * time.Second, 0, "p/default"},
		"minTTL by capacity":        {min4s, "", jobsLimited(v1alpha1.Capacity{MaxObjects: new(int64(1))}), 4 * time.Second, 1, "p/jobs"},
		"minTTL by ceiling":         {&v1alpha1.Guardrails{MinTTL: min4s.MinTTL, Ceilings: ceilingOf(1, "jobs.batch").Ceilings}, "", byTime("1h"), 4 * time.Second, 1, ""},
		"maxTTL":                    {max4s, "", byTime("1h"), 4 * time.Second, 0, "p/default"},
		"maxTTL, never allowed":     {max4s, "", byTime("never"), nothing, 4, "p/default"},
		"maxTTL, never not allowed": {&v1alpha1.Guardrails{MaxTTL: max4s.MaxTTL, AllowNever: new(false)}, "", byTime("never"), 4 * time.Second, 0, "p/default"},
		"maxTTL without a policy":   {max4s, "", v1alpha1.CleanupPolicySpec{}, nothing, 4, ""},
		"minTTL above maxTTL":       {&v1alpha1.Guardrails{MinTTL: min4s.MinTTL, MaxTTL: ttl("1s")}, "", byTime("0s"), 4 * time.Second, 0, "p/default"},
		"preview":                   {&v1alpha1.Guardrails{MinTTL: ttl("1h"), Ceilings: ceilingOf(1, "jobs.batch").Ceilings}, v1alpha1.ModePreview, byTime("2s"), 2 * time.Second, 0, "p/default"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGroup()
			ns := g.namespace(t)
			g.govern(t, v1alpha1.ClusterCleanupPolicySpec{Mode: c.mode, Guardrails: c.guardrails})
			createPolicy(t, ns, "p", c.policy)
			all := finishedJobs(t, ns, 4)
			if c.decider == "" {
				c.decider = "ceiling=" + string(g)
			}
			if c.after == nothing {
				afterwards(t, 6*time.Second)
			}
			expectDeletions(t, ns, allBut(c.keep, c.decider, all)...)
			expectNotBefore(t, ns, all, c.after)
		})
	}
}

// expectNotBefore checks that no Job was deleted before it had this age.
func expectNotBefore(t *testing.T, ns string, all []*batchv1.Job, age time.Duration) {
	t.Helper()
	for _, d := range deletions(t, ns) {
		i := slices.IndexFunc(all, func(j *batchv1.Job) bool { return "jobs/"+j.Name == d.object })
		if late := d.RequestReceivedTimestamp.Sub(finishedAt(all[i]).Add(age)); late < 0 {
			t.Errorf("%s was deleted %v before it was %v old", d.object, -late, age)
		}
	}
}

// TestPace: maxDeletionsPerMinute spreads the deletions of a namespace evenly, except in the first second, and the policy says so.
func TestPace(t *testing.T) {
	t.Parallel()
	g := newGroup()
	ns := g.namespace(t)
	const n, perSecond = 150, 5
	const still = 10 * time.Second // The API server may stand still for so long, and receive late what was sent meanwhile.
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{Guardrails: &v1alpha1.Guardrails{MaxDeletionsPerMinute: new(int64(60 * perSecond))}})
	all := finishedJobs(t, ns, n)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
		return s.Due > 0 && meta.IsStatusConditionTrue(s.Conditions, "Throttled") && meta.IsStatusConditionTrue(s.Conditions, "Ready")
	})
	expectDeletions(t, ns, allBut(0, "p/default", all)...)
	sent := deletions(t, ns)
	slices.SortFunc(sent, func(a, b deletion) int { return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp.Time) })
	for from := range sent {
		within := 0
		for _, d := range sent[from:] {
			if d.RequestReceivedTimestamp.Sub(sent[from].RequestReceivedTimestamp.Time) < 3*time.Second {
				within++
			}
		}
		if most := int((3*time.Second+still)/time.Second)*perSecond + perSecond; within > most {
			t.Errorf("%d DELETEs within three seconds, at %d a second", within, perSecond)
		}
	}
	took := sent[n-1].RequestReceivedTimestamp.Sub(sent[0].RequestReceivedTimestamp.Time)
	if least := (n-perSecond-1)*time.Second/perSecond - still; took < least {
		t.Errorf("%d DELETEs took %v, at %d a second", n, took, perSecond)
	}
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
		return s.Deleted == n && meta.IsStatusConditionFalse(s.Conditions, "Throttled")
	})
}

// TestClusterDefaults: they hold only for objects that no policy of their namespace matches. The selector is followed: a namespace
// comes and goes by its labels, and a new one is in at once.
func TestClusterDefaults(t *testing.T) {
	t.Parallel()
	g := newGroup()
	own, none, outside := g.namespace(t), g.namespace(t), newNamespace(t)
	decider := string(g) + "/default"
	createPolicy(t, own, "p", v1alpha1.CleanupPolicySpec{
		Rules: []v1alpha1.CleanupRule{{Name: "keep", Selector: matching(map[string]string{"keep": "yes"}), TTL: ttl("never")}},
	})
	finish(t, createJob(t, own, job("kept", unmanaged, jobLabel("keep", "yes"))), time.Now())
	for _, ns := range []string{own, none, outside} {
		finish(t, createJob(t, ns, job("plain", unmanaged)), time.Now())
	}
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	expectDeletions(t, own, "jobs/plain "+decider)
	expectDeletions(t, none, "jobs/plain "+decider)
	expectDeletions(t, outside)

	labelNamespace(t, outside, groupLabel, string(g))
	expectDeletions(t, outside, "jobs/plain "+decider)
	labelNamespace(t, outside, groupLabel, "")
	finish(t, createJob(t, outside, job("later", unmanaged)), time.Now())
	fresh := g.namespace(t)
	finish(t, createJob(t, fresh, job("fresh", unmanaged)), time.Now())
	expectDeletions(t, fresh, "jobs/fresh "+decider)
	afterwards(t, 0)
	expectDeletions(t, outside, "jobs/plain "+decider)
	expectDeletions(t, own, "jobs/plain "+decider)
	g.waitStatus(t, func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Deleted == 4 && s.Candidates == 0 })
}

// TestClusterPreview: a cluster policy in preview deletes nothing and counts what it would.
func TestClusterPreview(t *testing.T) {
	t.Parallel()
	g := newGroup()
	ns, other := g.namespace(t), g.namespace(t)
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{Mode: v1alpha1.ModePreview, Capacity: &v1alpha1.Capacity{MaxObjects: new(int64(2))}})
	finishedJobs(t, ns, 5)
	finishedJobs(t, other, 3)
	g.waitStatus(t, func(s *v1alpha1.CleanupPolicyStatus) bool {
		return s.Candidates == 8 && s.Due == 4 && s.Deleted == 0 && s.Conditions[0].Reason == "Previewing"
	})
	afterwards(t, 0)
	expectDeletions(t, ns)
	expectDeletions(t, other)
}

// TestSuspendAllInPreview: suspendAll stops everything in either mode, and lets it go on.
func TestSuspendAllInPreview(t *testing.T) {
	t.Parallel()
	g := newGroup()
	ns := g.namespace(t)
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{Mode: v1alpha1.ModePreview, Guardrails: &v1alpha1.Guardrails{SuspendAll: true}})
	all := finishedJobs(t, ns, 3)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
		c := meta.FindStatusCondition(s.Conditions, "Suspended")
		return s.Held == 3 && c != nil && c.Status == metav1.ConditionTrue && strings.Contains(c.Message, string(g))
	})
	expectDeletions(t, ns)
	g.change(t, `{"guardrails":{"suspendAll":false}}`)
	expectDeletions(t, ns, allBut(0, "p/default", all)...)
}

// TestWindows: outside of windows nothing is deleted, and a change that removes them lets everything go. The window that is closed opens on
// one day of each month, which is not today.
func TestWindows(t *testing.T) {
	t.Parallel()
	g := newGroup()
	ns := g.namespace(t)
	day := time.Now().UTC().AddDate(0, 0, -2).Day()
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{Mode: v1alpha1.ModeEnforce, Guardrails: &v1alpha1.Guardrails{
		Windows: []v1alpha1.Window{{Schedule: fmt.Sprintf("0 0 %d * *", day), Duration: "1h"}},
	}})
	all := finishedJobs(t, ns, 3)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
		c := meta.FindStatusCondition(s.Conditions, "Ready")
		return s.Held == 3 && s.Waiting == 3 && c != nil && c.Status == metav1.ConditionTrue && strings.Contains(c.Message, "OutsideWindow")
	})
	expectDeletions(t, ns)
	g.change(t, `{"guardrails":{"windows":[{"schedule":"* * * * *","duration":"1h"}]}}`)
	expectDeletions(t, ns, allBut(0, "p/default", all)...)
}
