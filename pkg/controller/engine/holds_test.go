// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/assessment"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

// holdID returns the ID of the hold that a generation of policy p causes in testbuilders.Home.
func holdID(generation int64) string {
	uid := testbuilders.UID("p")
	return approval.HoldID(uid, testbuilders.Home, approval.GenerationID(uid, generation))
}

// statusOf returns the status of a policy that a leader has observed at a generation, with these holds.
func statusOf(generation int64, holds ...gc.PolicyHold) gc.CleanupPolicyStatus {
	return gc.CleanupPolicyStatus{ObservedGeneration: generation, Holds: holds}
}

// newHoldWorld returns a world in which changes that make more than two objects due are held. It has Jobs a-0 to a-3, which finished 30
// minutes ago.
func newHoldWorld(t *testing.T, policies ...*testbuilders.PolicyBuilder) *world {
	w := newWorld(t, policies...)
	w.Config.HoldAbove = 2
	w.upsert(jobs(30*time.Minute, names("a-", 4)...)...)
	return w
}

// names returns n names that begin with prefix.
func names(prefix string, n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprint(prefix, i))
	}
	return out
}

// oneHold fails unless a policy has exactly one hold with this number of objects, and returns the hold.
func (w *world) oneHold(name string, objects int64) gc.PolicyHold {
	w.Helper()
	waiting := w.report(name).Holds
	if len(waiting) != 1 || waiting[0].Objects != objects {
		w.Fatalf("policy %s has these holds, want one with %d objects: %+v", name, objects, waiting)
	}
	return waiting[0]
}

func (w *world) noHolds(name string) {
	w.Helper()
	if waiting := w.report(name).Holds; len(waiting) != 0 {
		w.Fatalf("policy %s has these holds: %+v", name, waiting)
	}
}

// TestAHoldEndsWithItsMembers: objects that came due by time do not keep a hold after all its members are gone, whether or not it was
// reported in between.
func TestAHoldEndsWithItsMembers(t *testing.T) {
	for name, isReported := range map[string]bool{"reported": true, "never reported": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ttlPolicy("1h", 1))
			w.Config.HoldAbove = 2
			w.upsert(jobs(30*time.Minute, names("held-", 4)...)...)
			w.policy(ttlPolicy("10m", 2))
			if isReported {
				w.oneHold("p", 4)
			}
			w.upsert(jobs(20*time.Minute, "later")...)
			w.takes()
			w.removed(names("held-", 4)...)
			w.noHolds("p")
			w.takes("later")
		})
	}
}

// TestNothingDueNothingHeld: a change that makes nothing due causes no hold, although an object comes due by time before the next event.
func TestNothingDueNothingHeld(t *testing.T) {
	w := newWorld(t, ttlPolicy("2h", 1))
	w.Config.HoldAbove = 0
	w.upsert(job(50*time.Minute, "a"))
	w.policy(ttlPolicy("1h", 2))
	w.pass(10 * time.Minute)
	w.noHolds("p")
	w.takes("a")
}

// TestTimeIsNotAttributedToALaterChange: objects that came due by time before a change need no approval, although Expire was not called in
// between.
func TestTimeIsNotAttributedToALaterChange(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	w.Config.HoldAbove = 2
	w.upsert(jobs(59*time.Minute, names("a-", 4)...)...)
	w.now = w.now.Add(2 * time.Minute) // Nobody calls Expire.
	w.policy(ttlPolicy("50m", 2))
	w.confirmFresh()
	w.noHolds("p")
	w.takes(names("a-", 4)...)
}

// TestAHoldIsNotSplit: held objects stay held if other policies, each for a few of the objects, decide for them.
func TestAHoldIsNotSplit(t *testing.T) {
	for name, takeAway := range map[string]bool{"held policy stays": false, "held policy is deleted": true} {
		t.Run(name, func(t *testing.T) {
			held := func(ttl gc.TTL, generation int64) *testbuilders.PolicyBuilder {
				return testbuilders.Policy("z").Default(ttl).Generation(generation)
			}
			w := newWorld(t, held("never", 1))
			w.Config.HoldAbove = 5
			var all []string
			for part := range 4 {
				for _, name := range names(fmt.Sprint("job-", part, "-"), 5) {
					f := testbuilders.Job(name).Label("part", fmt.Sprint(part)).Complete(w.now.Add(-time.Hour)).Fact()
					w.upsert(f)
					all = append(all, name)
				}
			}
			w.policy(held("10m", 2))
			w.oneHold("z", 20)
			for part := range 4 {
				w.policy(testbuilders.Policy(fmt.Sprint("a", part)).Rules(testbuilders.Rule("r", "10m").Labelled("part", fmt.Sprint(part))))
				w.takes()
			}
			approver := "z"
			if takeAway {
				w.removePolicy(held("10m", 2))
				approver = "a0"
			}
			w.confirmFresh()
			w.takes()
			r := w.report(approver)
			if len(r.Holds) != 1 || r.Holds[0].Objects != 20 || r.Holds[0].Policy != "" {
				t.Fatalf("policy %s has these holds: %+v", approver, r.Holds)
			}
			if other := w.report("a3").Holds; len(other) != 1 || other[0].ID != r.Holds[0].ID ||
				other[0].Policy != testbuilders.Home+"/"+approver {
				t.Errorf("policy a3 reports %+v, want the hold of %s", other, approver)
			}
			w.policy(builderOf(r).Annotated(gc.AnnotationApprovedHold, r.Holds[0].ID))
			w.takes(all...)
		})
	}
}

// builderOf returns the stored policy of a report.
func builderOf(r report.Report) *testbuilders.PolicyBuilder {
	b := testbuilders.Policy(r.Name).Generation(r.Generation)
	if r.Name == "z" {
		return b.Default("10m")
	}
	return b.Rules(testbuilders.Rule("r", "10m").Labelled("part", r.Name[1:]))
}

// TestSmallChangesCountTogether: twenty changes of one object each count like one change of twenty, within ten minutes.
func TestSmallChangesCountTogether(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h").Labelled("go", "yes")))
	w.Config.HoldAbove = 5
	var rules []*testbuilders.RuleBuilder
	edit := func(i int) {
		w.upsert(testbuilders.Job(fmt.Sprint("job-", i)).Label("part", fmt.Sprint(i)).Complete(w.now.Add(-2 * time.Hour)).Fact())
		rules = append(rules, testbuilders.Rule(fmt.Sprint("r", i), "1h").Labelled("part", fmt.Sprint(i)))
		w.policy(testbuilders.Policy("p").Rules(rules...).Generation(int64(len(rules) + 1)))
		w.confirmFresh()
	}
	for i := range 5 {
		edit(i)
		w.deletes(fmt.Sprint("job-", i))
		w.removed(fmt.Sprint("job-", i))
		w.now = w.now.Add(time.Second)
	}
	edit(5)
	w.oneHold("p", 1)
	w.takes()
	w.removed("job-5")
	w.pass(approval.WindowLength)
	edit(6)
	w.noHolds("p")
	w.takes("job-6")
}

// TestTotalOfAllNamespaces: a change of a cluster policy that is small enough in each of fifty namespaces is too large in all of them
// together. One approval covers the whole change.
func TestTotalOfAllNamespaces(t *testing.T) {
	const namespaces, each = 50, 9
	w := newWorld(t)
	w.clusterPolicy(ttlClusterPolicy("c", "never", 1))
	w.Config.HoldAbove, w.Config.HoldAboveTotal = 10, 400
	for i := range namespaces {
		name := fmt.Sprint("ns-", i)
		w.namespace(name)
		w.jobsIn(name, each, time.Hour)
	}
	p := ttlClusterPolicy("c", "10m", 2)
	w.clusterPolicy(p)
	w.confirmFresh()
	w.takes()
	r := w.Reports("")[0]
	if len(r.Holds) != 1 || r.Holds[0].Namespace != "" || r.Holds[0].Objects != namespaces*each {
		t.Fatalf("the holds are %+v", r.Holds)
	}
	p = ttlClusterPolicy("c", "10m", 2)
	p.Annotations = map[string]string{gc.AnnotationApprovedHold: r.Holds[0].ID}
	w.clusterPolicy(p)
	w.confirmFresh()
	n := 0
	for _, ok := w.Take(w.now); ok; _, ok = w.Take(w.now) {
		n++
	}
	if n != namespaces*each {
		t.Errorf("%d of %d are taken", n, namespaces*each)
	}
}

// TestAnApprovalCoversNothingUnassessed: an approval of the objects of one change does not cover objects of a second change that is not
// assessed yet.
func TestAnApprovalCoversNothingUnassessed(t *testing.T) {
	jobsAfter := func(ttl gc.TTL, generation int64) *testbuilders.PolicyBuilder {
		return testbuilders.Policy("p").Rules(testbuilders.Rule("jobs", ttl).For(gc.ResourceJobs)).Generation(generation)
	}
	w := newWorld(t, jobsAfter("never", 1))
	w.Config.HoldAbove = 2
	w.upsert(jobs(time.Hour, names("old-", 4)...)...)
	w.upsert(jobs(10*time.Minute, names("young-", 8)...)...)
	w.policy(jobsAfter("30m", 2))
	id := w.oneHold("p", 4).ID
	// Pods are not listed yet, so that nothing can be assessed.
	both := testbuilders.Policy("p").
		Rules(testbuilders.Rule("jobs", "5m").For(gc.ResourceJobs), testbuilders.Rule("pods", "5m").For(gc.ResourcePods)).
		Generation(3)
	w.observePolicy(both)
	w.observePolicy(both.Annotated(gc.AnnotationApprovedHold, id))
	w.confirmFresh()
	w.decided("old-0", policy.Delete, policy.ReasonExpired)
	w.decided("young-0", policy.Hold, policy.ReasonUnobserved)
	w.deletes(names("old-", 4)...)
	w.removed(names("old-", 4)...)
	w.listCovered()
	w.decided("young-0", policy.Hold, policy.ReasonHeld)
	w.oneHold("p", 8)
	w.takes()
}

func ttlClusterPolicy(name string, ttl gc.TTL, generation int64) *gc.ClusterCleanupPolicy {
	p := guardrailPolicy(generation, gc.Guardrails{})
	p.Name, p.UID, p.Spec.TTLAfterFinished = name, types.UID("uid-"+name), &ttl
	return p
}

// TestAChangePastTheAPIIsHeld: a change of the stored policy, for example from a backup, may keep the generation. Each new content is a
// separate change with a new ID.
func TestAChangePastTheAPIIsHeld(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	w.Config.HoldAbove = 2
	w.upsert(jobs(30*time.Minute, names("a", 4)...)...)
	w.takes()
	ids := map[string]bool{holdID(1): true}
	for _, ttl := range []gc.TTL{"10m", "5m"} {
		w.policy(ttlPolicy(ttl, 1))
		id := w.oneHold("p", 4).ID
		if ids[id] {
			t.Errorf("%s: the ID %s belongs to another change", ttl, id)
		}
		ids[id] = true
		w.policy(ttlPolicy(ttl, 1).Annotated(gc.AnnotationApprovedHold, holdID(1)))
		if again := w.oneHold("p", 4).ID; again != id {
			t.Errorf("%s: the ID %s became %s", ttl, id, again)
		}
		w.policy(ttlPolicy("1h", 1))
		w.noHolds("p")
	}
	w.policy(ttlPolicy("10m", 1))
	w.policy(ttlPolicy("10m", 1).Annotated(gc.AnnotationApprovedHold, w.oneHold("p", 4).ID))
	w.takes(names("a", 4)...)
}

// TestAContentThatComesBack: the approval of a spec that was changed past the API does not cover the same spec when it returns later.
func TestAContentThatComesBack(t *testing.T) {
	w := newHoldWorld(t, ttlPolicy("1h", 1))
	w.policy(ttlPolicy("10m", 1))
	id := w.oneHold("p", 4).ID
	w.policy(ttlPolicy("10m", 1).Annotated(gc.AnnotationApprovedHold, id))
	w.deletes(names("a-", 4)...)
	w.removed(names("a-", 4)...)
	w.policy(ttlPolicy("1h", 1).Annotated(gc.AnnotationApprovedHold, id))
	w.upsert(jobs(30*time.Minute, names("b-", 4)...)...)
	w.pass(approval.WindowLength + time.Minute)
	w.policy(ttlPolicy("10m", 1).Annotated(gc.AnnotationApprovedHold, id))
	w.confirmFresh()
	w.takes()
}

// TestAPolicyThatIsWrittenBack: a policy that is restored past the API with its status, after it was deleted, is a change like any other.
// The approvals in its annotation do not count.
func TestAPolicyThatIsWrittenBack(t *testing.T) {
	w := newWorld(t, ttlPolicy("10m", 1))
	w.Config.HoldAbove = 2
	w.clusterPolicy(ttlClusterPolicy("c", "never", 1)) // It keeps Jobs covered.
	w.removePolicy(ttlPolicy("10m", 1))
	w.upsert(jobs(30*time.Minute, names("a", 4)...)...)
	w.confirmFresh()
	w.takes()
	id := holdID(1)
	saved := ttlPolicy("10m", 1).Status(statusOf(1)).Annotated(gc.AnnotationApprovedHold, id)
	w.policy(saved)
	w.confirmFresh()
	w.takes()
	w.policy(saved.Annotated(gc.AnnotationApprovedHold, w.oneHold("p", 4).ID))
	w.confirmFresh()
	w.takes(names("a", 4)...)
}

// TestWindowsAreForgotten: the counts of changes that are long past are forgotten.
func TestWindowsAreForgotten(t *testing.T) {
	w := newWorld(t)
	for i := range 20 {
		c := func(ttl gc.TTL, generation int64) *gc.ClusterCleanupPolicy {
			p := ttlClusterPolicy("c", ttl, generation)
			p.UID = types.UID(fmt.Sprint("uid-", i))
			return p
		}
		w.clusterPolicy(c("never", 1))
		w.upsert(testbuilders.Job(fmt.Sprint("job-", i)).Complete(w.now.Add(-time.Hour)).Fact())
		w.clusterPolicy(c("9m", 2))
		w.now = w.now.Add(time.Hour)
	}
	if n := len(w.Recent); n > 1 {
		t.Errorf("%d windows are kept", n)
	}
}

// TestAPolicyThatCanBeReadAgain: the objects of a policy that becomes readable again are assessed, although its generation was held or
// approved before.
func TestAPolicyThatCanBeReadAgain(t *testing.T) {
	w := newHoldWorld(t, ttlPolicy("1h", 1))
	w.policy(ttlPolicy("10m", 2))
	listed := statusOf(2, w.oneHold("p", 4))
	w.policy(ttlPolicy("10m", 2).Status(listed).Annotated(gc.AnnotationUnreadable, "unknown field"))
	w.confirmFresh()
	w.takes()
	w.observePolicy(ttlPolicy("10m", 2).Status(listed))
	for _, name := range names("a-", 4) { // Its resources are listed again.
		w.upsert(w.facts[name])
	}
	w.listCovered()
	w.confirmFresh()
	w.takes()
	w.oneHold("p", 4)
}

// TestMaxHolds: a namespace can have about 250 holds. One more is joined with the last of them, and no approval of either covers both.
func TestMaxHolds(t *testing.T) {
	of := func(name string, ttl gc.TTL) *testbuilders.PolicyBuilder {
		return testbuilders.Policy(name).Rules(testbuilders.Rule("r", ttl).Labelled("of", name))
	}
	job := func(name, of string) *lifecycle.Fact {
		return testbuilders.Job(name).Label("of", of).Complete(testbuilders.Now.Add(-30 * time.Minute)).Fact()
	}
	w := newWorld(t)
	w.Config.HoldAbove = 2
	w.policy(of("z", "10m"))
	w.policy(of("p", "never"))
	stored := &assessment.Object{Name: "holds-0", Holds: &assessment.Holds{}}
	for i := range approval.MaxHolds {
		name := fmt.Sprint("z-", i)
		w.upsert(job(name, "z"))
		stored.Holds.Holds = append(stored.Holds.Holds, assessment.Hold{
			ID: fmt.Sprintf("id-%03d", i), Namespace: testbuilders.Home, Owner: testbuilders.UID("z"), Members: []types.UID{testbuilders.UID(name)},
		})
	}
	w.restart(func() {}) // Now everything is stored that there is.
	if !w.store.put(stored) {
		t.Fatal("there are holds already")
	}
	w.restart(func() {})
	if n := len(w.Engine.Namespaces[testbuilders.Home].Holds); n != approval.MaxHolds {
		t.Fatalf("there are %d holds, want %d", n, approval.MaxHolds)
	}
	for _, name := range names("p-", 4) {
		w.upsert(job(name, "p"))
	}
	last := w.Engine.Namespaces[testbuilders.Home].Holds[approval.MaxHolds-1].ID
	w.policy(of("p", "10m").Generation(2))
	listed := w.report("p").Holds
	if len(listed) != 1 || listed[0].Objects != 4 || listed[0].Policy != testbuilders.Home+"/z" {
		t.Fatalf("policy p reports %+v", listed)
	}
	if id := listed[0].ID; id == last || id == holdID(2) {
		t.Errorf("the joined hold has the ID %s of one of them", id)
	}
	w.observePolicy(of("z", "10m").Annotated(gc.AnnotationApprovedHold, listed[0].ID))
	w.confirmFresh()
	w.takes(names("p-", 4)...)
}

// TestTheHoldOfAPolicyThatCanBeReadAgain: it does not get the ID of the generation, which may have been approved.
func TestTheHoldOfAPolicyThatCanBeReadAgain(t *testing.T) {
	w := newHoldWorld(t, ttlPolicy("10m", 2).Annotated(gc.AnnotationUnreadable, "unknown field"))
	w.observePolicy(ttlPolicy("10m", 2))
	for _, f := range jobs(30*time.Minute, names("a-", 4)...) { // Its resources are listed again.
		w.upsert(f)
	}
	w.listCovered()
	if id := w.oneHold("p", 4).ID; id == holdID(2) {
		t.Errorf("the hold has the ID %s of the generation", id)
	}
}
