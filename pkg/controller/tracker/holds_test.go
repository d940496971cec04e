// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/given"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

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
	waiting := w.report(name).Waiting
	if len(waiting) != 1 || waiting[0].Objects != objects {
		w.Fatalf("policy %s has these holds, want one with %d objects: %+v", name, objects, waiting)
	}
	return waiting[0]
}

func (w *world) waitsForNothing(name string) {
	w.Helper()
	if waiting := w.report(name).Waiting; len(waiting) != 0 {
		w.Fatalf("policy %s has these holds: %+v", name, waiting)
	}
}

// TestAHoldEndsWithItsCause: what came due by time meanwhile does not keep a hold that nothing of the change waits under, whether or not
// anybody took a report in between.
func TestAHoldEndsWithItsCause(t *testing.T) {
	for name, report := range map[string]bool{"reported": true, "never reported": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, keep("1h", 1))
			w.holdAbove = 2
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

// TestNothingDueNothingHeld: a change that makes nothing due causes no hold, though something comes due by time before anybody looks.
func TestNothingDueNothingHeld(t *testing.T) {
	w := newWorld(t, keep("2h", 1))
	w.holdAbove = 0
	w.upsert(job(50*time.Minute, "a"))
	w.policy(keep("1h", 2))
	w.pass(10 * time.Minute)
	w.waitsForNothing("p")
	w.takes("a")
}

// TestTimeIsNotTheWorkOfALaterChange: what was due by time before a change needs no approval, though nobody had looked.
func TestTimeIsNotTheWorkOfALaterChange(t *testing.T) {
	w := newWorld(t, keep("1h", 1))
	w.holdAbove = 2
	w.upsert(jobs(59*time.Minute, names("a-", 4)...)...)
	w.now = w.now.Add(2 * time.Minute) // Nobody calls Expire.
	w.policy(keep("50m", 2))
	w.agree()
	w.waitsForNothing("p")
	w.takes(names("a-", 4)...)
}

// TestFollowersEndHolds: a replica that does not lead ends what the leader has ended, though its own view of the objects is the older one,
// and takes what came due by time for no change's work.
func TestFollowersEndHolds(t *testing.T) {
	w := newWorld(t, keep("1h", 1))
	w.holdAbove = 2
	w.Follow()
	w.upsert(jobs(30*time.Minute, names("a-", 4)...)...)
	w.policy(keep("10m", 2))
	id := w.waits("p", 4).ID
	w.policy(keep("10m", 2).Status(gc.CleanupPolicyStatus{ObservedGeneration: 2, Holds: []gc.PolicyHold{{ID: id, Namespace: given.Home, Objects: 4}}}))
	w.waits("p", 4)
	w.policy(keep("10m", 2).Status(gc.CleanupPolicyStatus{ObservedGeneration: 2}))
	w.waitsForNothing("p")
	w.Lead()
	w.agree()
	w.takes(names("a-", 4)...)
}

// TestALongLivedFollower: generation 2 is held and generation 3 makes none due; then others come due by time, and generation 4 changes
// nothing. A replica that only followed deletes these when it leads.
func TestALongLivedFollower(t *testing.T) {
	w := newWorld(t, keep("1h", 1))
	w.holdAbove = 2
	w.Follow()
	w.upsert(jobs(30*time.Minute, names("a-", 4)...)...)
	w.policy(keep("10m", 2))
	w.policy(keep("1h", 3))
	w.pass(30*time.Minute + time.Second)
	w.policy(keep("61m", 4)) // They are not due for a minute.
	w.pass(time.Minute)
	w.policy(keep("60m", 5))
	w.Lead()
	w.agree()
	w.waitsForNothing("p")
	w.takes(names("a-", 4)...)
}

// TestAHoldIsNotSplit: what waits goes on waiting when other policies, each for few of the objects, decide for it.
func TestAHoldIsNotSplit(t *testing.T) {
	for name, takeAway := range map[string]bool{"held policy stays": false, "held policy is deleted": true} {
		t.Run(name, func(t *testing.T) {
			held := func(ttl gc.TTL, generation int64) *given.PolicyBuilder {
				return given.Policy("z").Default(ttl).Generation(generation)
			}
			w := newWorld(t, held("never", 1))
			w.holdAbove = 5
			var all []string
			for part := range 4 {
				for _, name := range names(fmt.Sprint("job-", part, "-"), 5) {
					f := given.Job(name).Label("part", fmt.Sprint(part)).Complete(w.now.Add(-time.Hour)).Fact()
					w.upsert(f)
					all = append(all, name)
				}
			}
			w.policy(held("10m", 2))
			w.waits("z", 20)
			for part := range 4 {
				w.policy(given.Policy(fmt.Sprint("a", part)).Rules(given.Rule("r", "10m").Labelled("part", fmt.Sprint(part))))
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
			if len(r.Waiting) != 1 || r.Waiting[0].Objects != 20 || r.Waiting[0].Policy != "" {
				t.Fatalf("policy %s has these holds: %+v", approver, r.Waiting)
			}
			if other := w.report("a3").Waiting; len(other) != 1 || other[0].ID != r.Waiting[0].ID || other[0].Policy != given.Home+"/"+approver {
				t.Errorf("policy a3 tells of %+v, want that %s waits", other, approver)
			}
			w.policy(builderOf(r).Annotated(gc.AnnotationApprovedHold, r.Waiting[0].ID))
			w.takes(all...)
		})
	}
}

// builderOf is a policy as it is stored.
func builderOf(r Report) *given.PolicyBuilder {
	b := given.Policy(r.Name).Generation(r.Generation)
	if r.Name == "z" {
		return b.Default("10m")
	}
	return b.Rules(given.Rule("r", "10m").Labelled("part", r.Name[1:]))
}

// TestSmallChangesCountTogether: twenty changes of one object each are one of twenty, until ten minutes later.
func TestSmallChangesCountTogether(t *testing.T) {
	w := newWorld(t, given.Policy("p").Rules(given.Rule("r", "1h").Labelled("go", "yes")))
	w.holdAbove = 5
	var rules []*given.RuleBuilder
	edit := func(i int) {
		w.upsert(given.Job(fmt.Sprint("job-", i)).Label("part", fmt.Sprint(i)).Complete(w.now.Add(-2 * time.Hour)).Fact())
		rules = append(rules, given.Rule(fmt.Sprint("r", i), "1h").Labelled("part", fmt.Sprint(i)))
		w.policy(given.Policy("p").Rules(rules...).Generation(int64(len(rules) + 1)))
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
	w.pass(windowFor)
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
	w.holdAbove, w.holdAboveTotal = 10, 400
	for i := range namespaces {
		name := fmt.Sprint("ns-", i)
		w.namespace(name)
		for _, job := range names(name+"-", each) {
			w.upsert(given.Job(job).In(name).Complete(w.now.Add(-time.Hour)).Fact())
		}
	}
	p := clusterDefault("c", "10m", 2)
	w.clusterPolicy(p)
	w.agree()
	w.takes()
	r := w.Reports("")[0]
	if len(r.Waiting) != 1 || r.Waiting[0].Namespace != "" || r.Waiting[0].Objects != namespaces*each {
		t.Fatalf("waiting: %+v", r.Waiting)
	}
	p = clusterDefault("c", "10m", 2)
	p.Annotations = map[string]string{gc.AnnotationApprovedHold: r.Waiting[0].ID}
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

// TestManyHoldsAreCounted: a status lists as many holds as can be stored, and counts the others. A replica that starts holds in the
// namespaces of those, too.
func TestManyHoldsAreCounted(t *testing.T) {
	const namespaces = holdsListed + 7
	start := func(p *gc.ClusterCleanupPolicy) *world {
		w := newWorld(t)
		w.holdAbove = 1
		name := func(i int) string { return fmt.Sprintf("ns-%03d", i) }
		for i := range namespaces {
			w.tellNamespace(name(i))
		}
		w.tellClusterPolicy(p)
		for i := range namespaces {
			name := name(i)
			for _, job := range names(name+"-", 2) {
				w.upsert(given.Job(job).In(name).Complete(w.now.Add(-time.Hour)).Fact())
			}
		}
		w.listed()
		w.agree()
		return w
	}
	w := start(clusterDefault("c", "never", 1))
	w.clusterPolicy(clusterDefault("c", "10m", 2))
	r := w.Reports("")[0]
	if len(r.Waiting) != holdsListed || r.Unlisted != namespaces-holdsListed {
		t.Fatalf("lists %d holds and counts %d, want %d and %d", len(r.Waiting), r.Unlisted, holdsListed, namespaces-holdsListed)
	}
	p := clusterDefault("c", "10m", 2)
	p.Status = gc.CleanupPolicyStatus{ObservedGeneration: 2, Holds: r.Waiting, UnlistedHolds: r.Unlisted}
	start(p).takes()
}

// TestStatusOfHoldsIsRepaired: what somebody else writes into status.holds is written over by the leader.
func TestStatusOfHoldsIsRepaired(t *testing.T) {
	w := newWorld(t, keep("1h", 1))
	w.holdAbove = 2
	w.Lead()
	w.upsert(jobs(30*time.Minute, names("a-", 4)...)...)
	w.policy(keep("10m", 2))
	want := w.waits("p", 4)
	w.policy(keep("10m", 2).Status(gc.CleanupPolicyStatus{ObservedGeneration: 2, Holds: []gc.PolicyHold{want}}))
	w.TakeDirty()
	w.policy(keep("10m", 2).Status(gc.CleanupPolicyStatus{ObservedGeneration: 2}))
	if !slices.Contains(w.TakeDirty(), given.Home) {
		t.Errorf("nobody is to write the status of namespace %s again", given.Home)
	}
	w.waits("p", 4)
	w.agree()
	w.takes()
}

// TestAnApprovalCoversNothingUnweighed: an approval of what a first change made due releases nothing that a second one, which cannot be
// weighed yet, has added.
func TestAnApprovalCoversNothingUnweighed(t *testing.T) {
	jobsAfter := func(ttl gc.TTL, generation int64) *given.PolicyBuilder {
		return given.Policy("p").Rules(given.Rule("jobs", ttl).For(gc.ResourceJobs)).Generation(generation)
	}
	w := newWorld(t, jobsAfter("never", 1))
	w.holdAbove = 2
	w.upsert(jobs(time.Hour, names("old-", 4)...)...)
	w.upsert(jobs(10*time.Minute, names("young-", 8)...)...)
	w.policy(jobsAfter("30m", 2))
	id := w.waits("p", 4).ID
	// Pods are not listed yet, so that nothing can be weighed.
	both := given.Policy("p").Rules(given.Rule("jobs", "5m").For(gc.ResourceJobs), given.Rule("pods", "5m").For(gc.ResourcePods)).Generation(3)
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

// TestAReplicaThatStartsHoldsForAllApprovals: the status does not tell which of two holds an object waits under, so that it waits for both.
func TestAReplicaThatStartsHoldsForAllApprovals(t *testing.T) {
	hold := func(id, of string) gc.PolicyHold {
		return gc.PolicyHold{ID: id, Namespace: given.Home, Objects: 4, Policy: of}
	}
	own := func() *given.PolicyBuilder { return given.Policy("own").Default("10m") }
	other := func() *given.PolicyBuilder {
		return given.Policy("other").Rules(given.Rule("r", "10m").Labelled("none", "such"))
	}
	w := newWorld(t)
	w.tellPolicy(own().Status(gc.CleanupPolicyStatus{ObservedGeneration: 1, Holds: []gc.PolicyHold{hold("1", ""), hold("2", given.Home+"/other")}}))
	w.tellPolicy(other().Status(gc.CleanupPolicyStatus{ObservedGeneration: 1, Holds: []gc.PolicyHold{hold("2", "")}}))
	w.upsert(jobs(time.Hour, names("a-", 4)...)...)
	w.listed()
	w.agree()
	w.takes()
	w.policy(own().Annotated(gc.AnnotationApprovedHold, "1"))
	w.agree()
	w.takes()
	w.policy(other().Annotated(gc.AnnotationApprovedHold, "2"))
	w.agree()
	w.takes(names("a-", 4)...)
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
	w.holdAbove = 2
	w.upsert(jobs(30*time.Minute, names("a", 4)...)...)
	w.takes()
	ids := map[string]bool{HoldID(given.UID("p"), 1, given.Home): true}
	for _, ttl := range []gc.TTL{"10m", "5m"} {
		w.policy(keep(ttl, 1))
		id := w.waits("p", 4).ID
		if ids[id] {
			t.Errorf("%s: the id %s is that of another change", ttl, id)
		}
		ids[id] = true
		w.policy(keep(ttl, 1).Annotated(gc.AnnotationApprovedHold, HoldID(given.UID("p"), 1, given.Home)))
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

// TestAHoldThatComesBackToAStatus: a follower takes a hold over again that somebody took out of the status, and the leader has written again.
func TestAHoldThatComesBackToAStatus(t *testing.T) {
	w := newWorld(t, keep("1h", 1))
	w.holdAbove = 2
	w.Follow()
	w.upsert(jobs(30*time.Minute, names("a-", 4)...)...)
	w.policy(keep("10m", 2))
	told := gc.CleanupPolicyStatus{ObservedGeneration: 2, Holds: []gc.PolicyHold{w.waits("p", 4)}}
	w.policy(keep("10m", 2).Status(told))
	w.policy(keep("10m", 2).Status(gc.CleanupPolicyStatus{ObservedGeneration: 2}))
	w.policy(keep("10m", 2).Status(told))
	w.Lead()
	w.agree()
	w.waits("p", 4)
	w.takes()
}

// TestListsComeInAnyOrder: a generation of a cluster policy that no controller has observed is weighed, whether policies or namespaces are
// listed first.
func TestListsComeInAnyOrder(t *testing.T) {
	for name, policiesFirst := range map[string]bool{"policies first": true, "namespaces first": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Tracker = New(Config{HoldAbove: 2, HoldAboveTotal: -1})
			w.ReplaceCronJobs(nil, w.now)
			w.ReplacePolicies(nil, w.next(), w.now)
			p := clusterDefault("c", "10m", 2)
			p.Status = gc.CleanupPolicyStatus{ObservedGeneration: 1}
			lists := []func(){
				func() {
					w.ReplaceNamespaces([]*metav1.PartialObjectMetadata{given.Namespace(given.Home, w.next())}, w.next(), w.now)
				},
				func() { w.ReplaceClusterPolicies([]*gc.ClusterCleanupPolicy{p}, w.next(), w.now) },
			}
			if policiesFirst {
				slices.Reverse(lists)
			}
			for _, list := range lists {
				list()
			}
			w.upsert(jobs(time.Hour, names("a-", 4)...)...)
			w.listed()
			if r := w.Reports("")[0]; len(r.Waiting) != 1 || r.Waiting[0].Objects != 4 {
				t.Errorf("waiting: %+v", r.Waiting)
			}
			w.decided("a-0", policy.Hold, policy.ReasonHeld)
		})
	}
}

// TestAContentThatComesBack: the approval of a spec that was changed past the API covers nothing when the same spec comes back later.
func TestAContentThatComesBack(t *testing.T) {
	w := newWorld(t, keep("1h", 1))
	w.holdAbove = 2
	w.upsert(jobs(30*time.Minute, names("a-", 4)...)...)
	w.policy(keep("10m", 1))
	id := w.waits("p", 4).ID
	w.policy(keep("10m", 1).Annotated(gc.AnnotationApprovedHold, id))
	w.deletes(names("a-", 4)...)
	w.removed(names("a-", 4)...)
	w.policy(keep("1h", 1).Annotated(gc.AnnotationApprovedHold, id))
	w.upsert(jobs(30*time.Minute, names("b-", 4)...)...)
	w.pass(windowFor + time.Minute)
	w.policy(keep("10m", 1).Annotated(gc.AnnotationApprovedHold, id))
	w.agree()
	w.takes()
}

// TestAHoldIsListedOnce: of a hold of all namespaces together, a policy that decides in one of them tells too.
func TestAHoldIsListedOnce(t *testing.T) {
	w := newWorld(t)
	c := clusterDefault("c", "10m", 2)
	c.Status = gc.CleanupPolicyStatus{
		ObservedGeneration: 2, Holds: []gc.PolicyHold{{ID: "Y", Objects: 8}, {ID: "X", Namespace: "ns-0", Objects: 4}},
	}
	all := []string{"ns-0", "ns-a", "ns-b"}
	for _, ns := range all {
		w.tellNamespace(ns)
	}
	w.tellClusterPolicy(c)
	w.tellPolicy(given.Policy("a1").In("ns-a").Default("10m").Status(gc.CleanupPolicyStatus{
		ObservedGeneration: 1, Holds: []gc.PolicyHold{{ID: "Y", Namespace: "ns-a", Policy: "c", Objects: 4}},
	}))
	for _, ns := range all {
		for _, name := range names(ns+"-", 4) {
			w.upsert(given.Job(name).In(ns).Complete(w.now.Add(-time.Hour)).Fact())
		}
	}
	w.listed()
	ids := sets.New[string]()
	for _, h := range w.Reports("")[0].Waiting {
		if ids.Has(h.ID) {
			t.Errorf("id %s is listed twice: %+v", h.ID, w.Reports("")[0].Waiting)
		}
		ids.Insert(h.ID)
	}
}

// TestSomebodyCanBeAsked: a hold of a policy that does not select the namespace any more becomes that of the policy which decides.
func TestSomebodyCanBeAsked(t *testing.T) {
	w := newWorld(t)
	w.Tracker = New(Config{HoldAbove: 2, HoldAboveTotal: -1})
	w.ReplaceCronJobs(nil, w.now)
	c := clusterDefault("c", "10m", 3)
	c.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"no": "one"}}
	c.Status = gc.CleanupPolicyStatus{ObservedGeneration: 3}
	w.ReplaceClusterPolicies([]*gc.ClusterCleanupPolicy{c}, w.next(), w.now)
	w.ReplacePolicies([]*gc.CleanupPolicy{keep("10m", 1).Status(gc.CleanupPolicyStatus{
		ObservedGeneration: 1, Holds: []gc.PolicyHold{{ID: "Y", Namespace: given.Home, Policy: "c", Objects: 4}},
	}).Obj()}, w.next(), w.now)
	w.ReplaceNamespaces([]*metav1.PartialObjectMetadata{given.Namespace(given.Home, w.next())}, w.next(), w.now)
	w.upsert(jobs(time.Hour, names("a-", 4)...)...)
	w.listed()
	if h := w.waits("p", 4); h.Policy != "" {
		t.Errorf("%+v is to be approved where nothing is known of it", h)
	}
}

// TestDueOfAPreviewThatWasHeld: what a preview would do under a hold that was taken over can be listed before it is settled anew.
func TestDueOfAPreviewThatWasHeld(t *testing.T) {
	told := func(of string) gc.CleanupPolicyStatus {
		return gc.CleanupPolicyStatus{ObservedGeneration: 1, Holds: []gc.PolicyHold{{ID: "X", Namespace: given.Home, Objects: 4, Policy: of}}}
	}
	w := newWorld(t)
	w.tellPolicy(given.Policy("z").Rules(given.Rule("r", "10m").Labelled("of", "z")).Status(told("")))
	w.tellPolicy(given.Policy("p").Rules(given.Rule("r", "10m").Labelled("of", "p")).Preview().Status(told(given.Home + "/z")))
	for _, of := range []string{"z", "p"} {
		for _, name := range names(of+"-", 4) {
			w.upsert(given.Job(name).Label("of", of).Complete(w.now.Add(-time.Hour)).Fact())
		}
	}
	w.listed()
	if n := len(w.Due()); n != 8 {
		t.Errorf("%d objects are due, want 8", n)
	}
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
		w.upsert(given.Job(fmt.Sprint("job-", i)).Complete(w.now.Add(-time.Hour)).Fact())
		w.clusterPolicy(c("9m", 2))
		w.now = w.now.Add(time.Hour)
	}
	if n := len(w.recent); n > 1 {
		t.Errorf("%d windows are kept", n)
	}
}

// TestAPolicyThatCanBeReadAgain: what it would delete then is weighed, though its generation is the one that was held or approved before.
func TestAPolicyThatCanBeReadAgain(t *testing.T) {
	w := newWorld(t, keep("1h", 1))
	w.holdAbove = 2
	w.upsert(jobs(30*time.Minute, names("a-", 4)...)...)
	w.policy(keep("10m", 2))
	told := gc.CleanupPolicyStatus{ObservedGeneration: 2, Holds: []gc.PolicyHold{w.waits("p", 4)}}
	w.policy(keep("10m", 2).Status(told).Annotated(gc.AnnotationUnreadable, "unknown field"))
	w.agree()
	w.takes()
	w.tellPolicy(keep("10m", 2).Status(told))
	for _, name := range names("a-", 4) { // Its resources are listed anew.
		w.upsert(w.facts[name])
	}
	w.listed()
	w.agree()
	w.takes()
	w.waits("p", 4)
}
