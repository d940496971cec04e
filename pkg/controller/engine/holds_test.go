// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/approval"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
	"github.com/winnow-dev/winnow/pkg/controller/report"
)

// holdID returns the ID of the hold that a generation of policy p causes in testbuilders.Home.
func holdID(generation int64) string {
	uid := testbuilders.UID("p")
	return approval.HoldID(uid, testbuilders.Home, approval.GenerationID(uid, generation))
}

// names are n names that begin with prefix.
func names(prefix string, n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprint(prefix, i))
	}
	return out
}

// waits fails unless exactly one hold of a policy waits, with so many objects, and returns it.
func (w *world) waits(name string, objects int64) gc.PolicyHold {
	w.Helper()
	waiting := w.report(name).Holds
	if len(waiting) != 1 || waiting[0].Objects != objects {
		w.Fatalf("policy %s has these holds, want one with %d objects: %+v", name, objects, waiting)
	}
	return waiting[0]
}

func (w *world) waitsForNothing(name string) {
	w.Helper()
	if waiting := w.report(name).Holds; len(waiting) != 0 {
		w.Fatalf("policy %s has these holds: %+v", name, waiting)
	}
}

// TestAHoldEndsWithItsCause: what came due by time meanwhile does not keep a hold that nothing of the change waits under, whether or not
// anybody took a report in between.
func TestAHoldEndsWithItsCause(t *testing.T) {
	for name, report := range map[string]bool{"reported": true, "never reported": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, keep("1h", 1))
			w.config.HoldAbove = 2
			w.upsert(jobs(30*time.Minute, names("held-", 4)...)...)
			w.policy(keep("10m", 2))
			if report {
				w.waits("p", 4)
			}
			w.upsert(jobs(20*time.Minute, "later")...)
			w.takes()
			w.removed(names("held-", 4)...)
			w.waitsForNothing("p")
			w.takes("later")
		})
	}
}

// TestNothingDueNothingHeld: a change that makes nothing due changes no hold, though something comes due by time before anybody looks.
func TestNothingDueNothingHeld(t *testing.T) {
	w := newWorld(t, keep("2h", 1))
	w.config.HoldAbove = 0
	w.upsert(job(50*time.Minute, "a"))
	w.policy(keep("1h", 2))
	w.pass(10 * time.Minute)
	w.waitsForNothing("p")
	w.takes("a")
}

// TestTimeIsNotTheWorkOfALaterChange: what was due by time before a change needs no approval, though nobody had looked.
func TestTimeIsNotTheWorkOfALaterChange(t *testing.T) {
	w := newWorld(t, keep("1h", 1))
	w.config.HoldAbove = 2
	w.upsert(jobs(59*time.Minute, names("a-", 4)...)...)
	w.now = w.now.Add(2 * time.Minute) // Nobody calls Expire.
	w.policy(keep("50m", 2))
	w.agree()
	w.waitsForNothing("p")
	w.takes(names("a-", 4)...)
}

// TestAHoldIsNotSplit: what waits goes on waiting when other policies, each for few of the objects, decide for it.
func TestAHoldIsNotSplit(t *testing.T) {
	for name, takeAway := range map[string]bool{"held policy stays": false, "held policy is deleted": true} {
		t.Run(name, func(t *testing.T) {
			held := func(ttl gc.TTL, generation int64) *testbuilders.PolicyBuilder {
				return testbuilders.Policy("z").Default(ttl).Generation(generation)
			}
			w := newWorld(t, held("never", 1))
			w.config.HoldAbove = 5
			var all []string
			for part := range 4 {
				for _, name := range names(fmt.Sprint("job-", part, "-"), 5) {
					f := testbuilders.Job(name).Label("part", fmt.Sprint(part)).Complete(w.now.Add(-time.Hour)).Fact()
					w.upsert(f)
					all = append(all, name)
				}
			}
			w.policy(held("10m", 2))
			w.waits("z", 20)
			for part := range 4 {
				w.policy(testbuilders.Policy(fmt.Sprint("a", part)).Rules(testbuilders.Rule("r", "10m").Labelled("part", fmt.Sprint(part))))
				w.takes()
			}
			approver := "z"
			if takeAway {
				w.withoutPolicy(held("10m", 2))
				approver = "a0"
			}
			w.agree()
			w.takes()
			r := w.report(approver)
			if len(r.Holds) != 1 || r.Holds[0].Objects != 20 || r.Holds[0].Policy != "" {
				t.Fatalf("policy %s has these holds: %+v", approver, r.Holds)
			}
			if other := w.report("a3").Holds; len(other) != 1 || other[0].ID != r.Holds[0].ID ||
				other[0].Policy != testbuilders.Home+"/"+approver {
				t.Errorf("policy a3 tells of %+v, want that %s waits", other, approver)
			}
			w.policy(builderOf(r).Annotated(gc.AnnotationApprovedHold, r.Holds[0].ID))
			w.takes(all...)
		})
	}
}

// builderOf is a policy as it is stored.
func builderOf(r report.Report) *testbuilders.PolicyBuilder {
	b := testbuilders.Policy(r.Name).Generation(r.Generation)
	if r.Name == "z" {
		return b.Default("10m")
	}
	return b.Rules(testbuilders.Rule("r", "10m").Labelled("part", r.Name[1:]))
}

// TestSmallChangesCountTogether: twenty changes of one object each are one of twenty, until ten minutes later.
func TestSmallChangesCountTogether(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h").Labelled("go", "yes")))
	w.config.HoldAbove = 5
	var rules []*testbuilders.RuleBuilder
	edit := func(i int) {
		w.upsert(testbuilders.Job(fmt.Sprint("job-", i)).Label("part", fmt.Sprint(i)).Complete(w.now.Add(-2 * time.Hour)).Fact())
		rules = append(rules, testbuilders.Rule(fmt.Sprint("r", i), "1h").Labelled("part", fmt.Sprint(i)))
		w.policy(testbuilders.Policy("p").Rules(rules...).Generation(int64(len(rules) + 1)))
		w.agree()
	}
	for i := range 5 {
		edit(i)
		w.deletes(fmt.Sprint("job-", i))
		w.removed(fmt.Sprint("job-", i))
		w.now = w.now.Add(time.Second)
	}
	edit(5)
	w.waits("p", 1)
	w.takes()
	w.removed("job-5")
	w.pass(approval.WindowLength)
	edit(6)
	w.waitsForNothing("p")
	w.takes("job-6")
}

// TestTotalOfAllNamespaces: a change of a cluster policy that is small enough in each of fifty namespaces is too large in all together. One
// approval releases all of it.
func TestTotalOfAllNamespaces(t *testing.T) {
	const namespaces, each = 50, 9
	w := newWorld(t)
	w.clusterPolicy(clusterDefault("c", "never", 1))
	w.config.HoldAbove, w.config.HoldAboveTotal = 10, 400
	for i := range namespaces {
		name := fmt.Sprint("ns-", i)
		w.namespace(name)
		for _, job := range names(name+"-", each) {
			w.upsert(testbuilders.Job(job).In(name).Complete(w.now.Add(-time.Hour)).Fact())
		}
	}
	p := clusterDefault("c", "10m", 2)
	w.clusterPolicy(p)
	w.agree()
	w.takes()
	r := w.Reports("")[0]
	if len(r.Holds) != 1 || r.Holds[0].Namespace != "" || r.Holds[0].Objects != namespaces*each {
		t.Fatalf("waiting: %+v", r.Holds)
	}
	p = clusterDefault("c", "10m", 2)
	p.Annotations = map[string]string{gc.AnnotationApprovedHold: r.Holds[0].ID}
	w.clusterPolicy(p)
	w.agree()
	n := 0
	for _, ok := w.Take(w.now); ok; _, ok = w.Take(w.now) {
		n++
	}
	if n != namespaces*each {
		t.Errorf("%d of %d are taken", n, namespaces*each)
	}
}

// TestAnApprovalCoversNothingUnassessed: an approval of what a first change made due releases nothing that a second one, which cannot be
// assessed yet, has added.
func TestAnApprovalCoversNothingUnassessed(t *testing.T) {
	jobsAfter := func(ttl gc.TTL, generation int64) *testbuilders.PolicyBuilder {
		return testbuilders.Policy("p").Rules(testbuilders.Rule("jobs", ttl).For(gc.ResourceJobs)).Generation(generation)
	}
	w := newWorld(t, jobsAfter("never", 1))
	w.config.HoldAbove = 2
	w.upsert(jobs(time.Hour, names("old-", 4)...)...)
	w.upsert(jobs(10*time.Minute, names("young-", 8)...)...)
	w.policy(jobsAfter("30m", 2))
	id := w.waits("p", 4).ID
	// Pods are not listed yet, so that nothing can be assessed.
	both := testbuilders.Policy("p").
		Rules(testbuilders.Rule("jobs", "5m").For(gc.ResourceJobs), testbuilders.Rule("pods", "5m").For(gc.ResourcePods)).
		Generation(3)
	w.tellPolicy(both)
	w.tellPolicy(both.Annotated(gc.AnnotationApprovedHold, id))
	w.agree()
	w.decided("old-0", policy.Delete, policy.ReasonExpired)
	w.decided("young-0", policy.Hold, policy.ReasonUnobserved)
	w.deletes(names("old-", 4)...)
	w.removed(names("old-", 4)...)
	w.listed()
	w.decided("young-0", policy.Hold, policy.ReasonHeld)
	w.waits("p", 8)
	w.takes()
}

func clusterDefault(name string, ttl gc.TTL, generation int64) *gc.ClusterCleanupPolicy {
	p := everywhere(generation, gc.Guardrails{})
	p.Name, p.UID, p.Spec.TTLAfterFinished = name, types.UID("uid-"+name), &ttl
	return p
}

// TestAChangePastTheAPIIsHeldAsAnyOther: whoever writes the stored policy, or restores a backup of it, need not move its generation. Each
// content is a change of its own, with an id of its own.
func TestAChangePastTheAPIIsHeldAsAnyOther(t *testing.T) {
	w := newWorld(t, keep("1h", 1))
	w.config.HoldAbove = 2
	w.upsert(jobs(30*time.Minute, names("a", 4)...)...)
	w.takes()
	ids := map[string]bool{holdID(1): true}
	for _, ttl := range []gc.TTL{"10m", "5m"} {
		w.policy(keep(ttl, 1))
		id := w.waits("p", 4).ID
		if ids[id] {
			t.Errorf("%s: the id %s is that of another change", ttl, id)
		}
		ids[id] = true
		w.policy(keep(ttl, 1).Annotated(gc.AnnotationApprovedHold, holdID(1)))
		if again := w.waits("p", 4).ID; again != id {
			t.Errorf("%s: the id %s became %s", ttl, id, again)
		}
		w.policy(keep("1h", 1))
		w.waitsForNothing("p")
	}
	w.policy(keep("10m", 1))
	w.policy(keep("10m", 1).Annotated(gc.AnnotationApprovedHold, w.waits("p", 4).ID))
	w.takes(names("a", 4)...)
}

// TestAContentThatComesBack: the approval of a spec that was changed past the API covers nothing when the same spec comes back later.
func TestAContentThatComesBack(t *testing.T) {
	w := newWorld(t, keep("1h", 1))
	w.config.HoldAbove = 2
	w.upsert(jobs(30*time.Minute, names("a-", 4)...)...)
	w.policy(keep("10m", 1))
	id := w.waits("p", 4).ID
	w.policy(keep("10m", 1).Annotated(gc.AnnotationApprovedHold, id))
	w.deletes(names("a-", 4)...)
	w.removed(names("a-", 4)...)
	w.policy(keep("1h", 1).Annotated(gc.AnnotationApprovedHold, id))
	w.upsert(jobs(30*time.Minute, names("b-", 4)...)...)
	w.pass(approval.WindowLength + time.Minute)
	w.policy(keep("10m", 1).Annotated(gc.AnnotationApprovedHold, id))
	w.agree()
	w.takes()
}

// TestAPolicyThatIsWrittenBack: one that was saved with its status and is written back past the API after it was deleted is a change as any
// other, and what it brings along approves nothing.
func TestAPolicyThatIsWrittenBack(t *testing.T) {
	w := newWorld(t, keep("10m", 1))
	w.config.HoldAbove = 2
	w.clusterPolicy(clusterDefault("c", "never", 1)) // Jobs go on to be known.
	w.withoutPolicy(keep("10m", 1))
	w.upsert(jobs(30*time.Minute, names("a", 4)...)...)
	w.agree()
	w.takes()
	id := holdID(1)
	saved := keep("10m", 1).Status(gc.CleanupPolicyStatus{ObservedGeneration: 1}).Annotated(gc.AnnotationApprovedHold, id)
	w.policy(saved)
	w.agree()
	w.takes()
	w.policy(saved.Annotated(gc.AnnotationApprovedHold, w.waits("p", 4).ID))
	w.agree()
	w.takes(names("a", 4)...)
}

// TestWindowsAreForgotten: of policies whose changes are long past nothing is kept.
func TestWindowsAreForgotten(t *testing.T) {
	w := newWorld(t)
	for i := range 20 {
		c := func(ttl gc.TTL, generation int64) *gc.ClusterCleanupPolicy {
			p := clusterDefault("c", ttl, generation)
			p.UID = types.UID(fmt.Sprint("uid-", i))
			return p
		}
		w.clusterPolicy(c("never", 1))
		w.upsert(testbuilders.Job(fmt.Sprint("job-", i)).Complete(w.now.Add(-time.Hour)).Fact())
		w.clusterPolicy(c("9m", 2))
		w.now = w.now.Add(time.Hour)
	}
	if n := len(w.recent); n > 1 {
		t.Errorf("%d windows are kept", n)
	}
}

// TestAPolicyThatCanBeReadAgain: what it would delete then is assessed, though its generation is the one that was held or approved before.
func TestAPolicyThatCanBeReadAgain(t *testing.T) {
	w := newWorld(t, keep("1h", 1))
	w.config.HoldAbove = 2
	w.upsert(jobs(30*time.Minute, names("a-", 4)...)...)
	w.policy(keep("10m", 2))
	told := gc.CleanupPolicyStatus{ObservedGeneration: 2, Holds: []gc.PolicyHold{w.waits("p", 4)}}
	w.policy(keep("10m", 2).Status(told).Annotated(gc.AnnotationUnreadable, "unknown field"))
	w.agree()
	w.takes()
	w.tellPolicy(keep("10m", 2).Status(told))
	for _, name := range names("a-", 4) { // Its resources are listed again.
		w.upsert(w.facts[name])
	}
	w.listed()
	w.agree()
	w.takes()
	w.waits("p", 4)
}
