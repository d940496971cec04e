// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// allCandidates is the query for all candidates that are Jobs and Pods.
func allCandidates() gc.CandidateQuery {
	return gc.CandidateQuery{
		Resources: sets.New(gc.ResourceJobs, gc.ResourcePods), Labels: labels.Everything(), Fields: fields.Everything(),
	}
}

// find returns the page for a query.
func (d *driver) find(q gc.CandidateQuery) gc.CandidatePage {
	var page gc.CandidatePage
	d.read(d.Candidates(q, &page))
	return page
}

// candidate returns the explanation for one object, whether it is a candidate or not.
func (w *world) candidate(name string) gc.CleanupCandidate {
	w.Helper()
	q := allCandidates()
	q.All, q.Fields = true, fields.OneTermEqualSelector("metadata.name", string(w.facts[name].UID))
	q.Resources = sets.New(w.facts[name].Resource)
	page := w.find(q)
	if len(page.Items) != 1 {
		w.Fatalf("%d candidates for %q", len(page.Items), name)
	}
	return page.Items[0]
}

// namesOf returns namespace and name of each candidate.
func namesOf(page gc.CandidatePage) string {
	var out []string
	for i := range page.Items {
		out = append(out, page.Items[i].Namespace+"/"+page.Items[i].Status.Object.Name)
	}
	return strings.Join(out, " ")
}

// TestCandidatesOfNamespaces lists two namespaces. The order is by namespace and UID, and does not depend on the order of observation.
func TestCandidatesOfNamespaces(t *testing.T) {
	selector := fields.ParseSelectorOrDie
	for name, c := range map[string]struct {
		change func(*gc.CandidateQuery)
		want   string
		hidden int
	}{
		"everything":        {func(*gc.CandidateQuery) {}, "team-a/due team-a/kept team-a/pod team-a/waiting team-b/other", 0},
		"a namespace":       {func(q *gc.CandidateQuery) { q.Namespace = "team-b" }, "team-b/other", 0},
		"no such namespace": {func(q *gc.CandidateQuery) { q.Namespace = "team-c" }, "", 0},
		"a label":           {func(q *gc.CandidateQuery) { q.Labels = labels.SelectorFromSet(labels.Set{"app": "train"}) }, "team-a/due", 0},
		"a label and a field": {func(q *gc.CandidateQuery) {
			q.Labels, q.Fields = labels.SelectorFromSet(labels.Set{"app": "train"}), selector("state=Waiting")
		}, "", 0},
		"a state":                {func(q *gc.CandidateQuery) { q.Fields = selector("state=Due") }, "team-a/due team-b/other", 0},
		"all other states":       {func(q *gc.CandidateQuery) { q.Fields = selector("state!=Due") }, "team-a/kept team-a/pod team-a/waiting", 0},
		"a resource":             {func(q *gc.CandidateQuery) { q.Fields = selector("resource=pods") }, "team-a/pod", 0},
		"a policy":               {func(q *gc.CandidateQuery) { q.Fields = selector("policy=p") }, "team-a/due team-a/kept team-a/pod team-a/waiting", 0},
		"a policy of all":        {func(q *gc.CandidateQuery) { q.Fields = selector("policy=c") }, "team-b/other", 0},
		"a namespace as a field": {func(q *gc.CandidateQuery) { q.Fields = selector("metadata.namespace=team-b") }, "team-b/other", 0},
		"an object":              {func(q *gc.CandidateQuery) { q.All, q.Fields = true, selector("object=jobs.batch/kept") }, "team-a/kept", 0},
		"an object of another resource": {
			func(q *gc.CandidateQuery) { q.All, q.Fields = true, selector("object=pods/kept") }, "", 0},
		"an object that is no candidate": {
			func(q *gc.CandidateQuery) { q.All, q.Fields = true, selector("object=jobs.batch/running") }, "team-a/running", 0},
		"a UID": {func(q *gc.CandidateQuery) { q.All, q.Fields = true, selector("metadata.name=uid-other") }, "team-b/other", 0},
		"a UID of another namespace": {
			func(q *gc.CandidateQuery) {
				q.All, q.Namespace, q.Fields = true, "team-a", selector("metadata.name=uid-other")
			}, "", 0},
		"an unknown UID": {func(q *gc.CandidateQuery) { q.All, q.Fields = true, selector("metadata.name=uid-none") }, "", 0},

		"a hidden resource": {func(q *gc.CandidateQuery) { q.Resources = sets.New(gc.ResourceJobs) }, "team-a/due team-a/kept team-a/waiting team-b/other", 1},
		"all hidden":        {func(q *gc.CandidateQuery) { q.Resources = nil }, "", 5},
		"all of a namespace hidden": {
			func(q *gc.CandidateQuery) { q.Resources, q.Namespace = nil, "team-b" }, "", 1},
		"selectors do not change what is hidden": {
			func(q *gc.CandidateQuery) {
				q.Resources, q.Labels, q.Fields = nil, labels.SelectorFromSet(labels.Set{"app": "train"}), selector("state=Due")
			}, "", 5},
		"a hidden object": {
			func(q *gc.CandidateQuery) {
				q.Resources, q.All, q.Fields = nil, true, selector("metadata.name=uid-due")
			}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, testbuilders.Policy("p").Rules(
				testbuilders.Rule("kept", "never").Labelled("keep", "yes"), testbuilders.Rule("train", "0s").Labelled("app", "train"),
				testbuilders.Rule("r", "2h")))
			w.clusterPolicy(ttlClusterPolicy("c", "0s", 1))
			w.namespace("team-b")
			w.upsert(job(time.Hour, "waiting"), testbuilders.Job("other").In("team-b").Complete(w.now.Add(-time.Hour)).Fact(),
				testbuilders.Job("kept").Label("keep", "yes").Complete(w.now.Add(-time.Hour)).Fact(),
				testbuilders.Job("running").Fact(), testbuilders.Pod("pod").Succeeded(w.now.Add(-time.Hour)).Fact(),
				testbuilders.Job("due").Label("app", "train").Complete(w.now.Add(-time.Hour)).Fact())
			q := allCandidates()
			c.change(&q)
			page := w.find(q)
			if got := namesOf(page); got != c.want || page.Hidden != c.hidden || page.Next != nil {
				t.Errorf("got %q, %d hidden, next %v; want %q, %d hidden", got, page.Hidden, page.Next, c.want, c.hidden)
			}
		})
	}
}

// TestPagesCountTheHiddenOnce lists two namespaces in pages that end within a namespace and at its end.
func TestPagesCountTheHiddenOnce(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("2h"), testbuilders.Policy("p").In("team-b").WithUID("uid-q").Default("2h"))
	w.namespace("team-b")
	for i := range 4 {
		for _, namespace := range []string{"team-a", "team-b"} {
			name := fmt.Sprint(namespace, i)
			w.upsert(testbuilders.Job("job-"+name).In(namespace).Complete(w.now.Add(-time.Hour)).Fact(),
				testbuilders.Pod("pod-"+name).In(namespace).Succeeded(w.now.Add(-time.Hour)).Fact())
		}
	}
	whole := allCandidates()
	whole.Resources = sets.New(gc.ResourceJobs)
	all := w.find(whole)
	if len(all.Items) != 8 || all.Hidden != 8 {
		t.Fatalf("%d candidates and %d hidden ones, want 8 each", len(all.Items), all.Hidden)
	}
	for limit := 1; limit <= 9; limit++ {
		var names []string
		hidden := 0
		for q, more := whole, true; more; {
			q.Limit = limit
			page := w.find(q)
			if len(page.Items) > limit || len(page.Items) == 0 {
				t.Fatalf("limit %d: a page has %d items", limit, len(page.Items))
			}
			names, hidden = append(names, namesOf(page)), hidden+page.Hidden
			if more = page.Next != nil; more {
				q.After = *page.Next
			}
		}
		if got := strings.Join(names, " "); got != namesOf(all) || hidden != all.Hidden {
			t.Errorf("limit %d: %q and %d hidden, want %q and %d", limit, got, hidden, namesOf(all), all.Hidden)
		}
	}
}

// TestPagesWhileObjectsComeAndGo: after each single step of the search, objects come and go. Objects that were there all the time are found
// exactly once, in their order, and no others are found.
func TestPagesWhileObjectsComeAndGo(t *testing.T) {
	testbuilders.Checks(t, 300)
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t, testbuilders.Policy("p").Default("2h"), testbuilders.Policy("p").In("team-b").WithUID("uid-q").Default("2h"))
		w.namespace("team-b")
		var there []string
		add := func() {
			name := rapid.StringMatching(`[a-z]{4}`).Draw(r, "name")
			if w.facts[name] == nil {
				namespace := rapid.SampledFrom([]string{"team-a", "team-b"}).Draw(r, "namespace")
				w.upsert(testbuilders.Job(name).In(namespace).Complete(w.now.Add(-time.Hour)).Fact())
				there = append(there, name)
			}
		}
		for range rapid.IntRange(0, 12).Draw(r, "objects") {
			add()
		}
		always := sets.New(there...)
		w.interrupt = func() {
			w.setBudget(0)
			switch i := rapid.IntRange(0, 5).Draw(r, "change"); {
			case i == 0:
				add()
			case i == 1 && len(there) > 0:
				at := rapid.IntRange(0, len(there)-1).Draw(r, "which")
				always.Delete(there[at])
				w.removed(there[at])
				there = slices.Delete(there, at, at+1)
			}
			w.setBudget(1)
		}
		w.setBudget(1)
		found := map[string]int{}
		q := allCandidates()
		q.Limit = rapid.IntRange(0, 4).Draw(r, "limit")
		for before := (gc.CandidatePosition{}); ; q.After = before {
			page := w.find(q)
			for i := range page.Items {
				c := &page.Items[i]
				position := gc.CandidatePosition{Namespace: c.Namespace, UID: testbuilders.UID(c.Status.Object.Name)}
				if position.Compare(before) <= 0 {
					r.Fatalf("%v follows %v", position, before)
				}
				before, found[c.Status.Object.Name] = position, found[c.Status.Object.Name]+1
			}
			if q.Limit > 0 && len(page.Items) > q.Limit {
				r.Fatalf("a page has %d items, the limit is %d", len(page.Items), q.Limit)
			}
			if page.Next == nil {
				break
			}
			before = *page.Next
		}
		for name := range always {
			if found[name] != 1 {
				r.Fatalf("%s was found %d times among %v", name, found[name], found)
			}
		}
	})
}

// explained has the parts that TestCandidates compares.
type explained struct {
	state           gc.CandidateState
	reason          policy.Reason
	message         string // a part of it
	ttl             gc.TTL
	by              string // policy/rule
	due             string // after the finish; empty for no time
	after           gc.After
	propagation     metav1.DeletionPropagation
	listed, preview bool
}

func TestCandidates(t *testing.T) {
	const background = metav1.DeletePropagationBackground
	hour := testbuilders.Now.Add(-time.Hour)
	done := func() *testbuilders.JobBuilder { return testbuilders.Job("j").Complete(hour) }
	for name, c := range map[string]struct {
		policies []*testbuilders.PolicyBuilder
		fact     *lifecycle.Fact
		then     func(*world)
		want     explained
	}{
		"waiting": {
			[]*testbuilders.PolicyBuilder{testbuilders.Policy("p").Default("2h")}, done().Fact(), nil,
			explained{gc.CandidateWaiting, policy.ReasonNotDue, "It is kept until it is due. To keep it longer, use kubectl winnow keep or the annotation gc.winnow.dev/keep-until", "2h", "p/default", "2h0m0s", gc.AfterFinished, background, true, false},
		},
		"waiting for what will be held": {
			[]*testbuilders.PolicyBuilder{testbuilders.Policy("p").Default("2h")}, done().TTL("soon").Fact(), nil,
			explained{gc.CandidateWaiting, policy.ReasonNotDue, `When it is due, it will be held (InvalidAnnotation): annotation gc.winnow.dev/ttl: "soon"`,
				"2h", "p/default", "2h0m0s", gc.AfterFinished, background, true, false},
		},
		"due": {
			[]*testbuilders.PolicyBuilder{testbuilders.Policy("p").Rules(testbuilders.Rule("r", "30m").Propagation(metav1.DeletePropagationForeground))},
			done().Fact(), nil,
			explained{gc.CandidateDue, policy.ReasonExpired, "Its TTL has ended", "30m", "p/r", "30m0s", gc.AfterFinished,
				metav1.DeletePropagationForeground, true, false},
		},
		"due on a replica that does not lead": {
			[]*testbuilders.PolicyBuilder{testbuilders.Policy("p").Default("30m")}, done().Fact(), func(w *world) { w.Follow() },
			explained{gc.CandidateDue, policy.ReasonExpired, "Its TTL has ended; the leader deletes it, and reports any failure in the status of the policy",
				"30m", "p/default", "30m0s", gc.AfterFinished, background, true, false},
		},
		"held": {
			[]*testbuilders.PolicyBuilder{testbuilders.Policy("p").Default("30m").Suspended()}, done().Fact(), nil,
			explained{gc.CandidateHeld, policy.ReasonSuspended, "policy team-a/p is suspended", "30m", "p/default", "30m0s", gc.AfterFinished, background, true, false},
		},
		"held by its annotation": {
			[]*testbuilders.PolicyBuilder{testbuilders.Policy("p").Default("30m")}, done().TTL("soon").Fact(), nil,
			explained{gc.CandidateHeld, policy.ReasonInvalidAnnotation, `"soon"`, "30m", "p/default", "30m0s", gc.AfterFinished, background, true, false},
		},
		"kept": {
			[]*testbuilders.PolicyBuilder{testbuilders.Policy("p").Default("never")}, done().Fact(), nil,
			explained{gc.CandidateKept, policy.ReasonNever, "It is kept without a limit", "never", "p/default", "", gc.AfterFinished, background, true, false},
		},
		"terminating": {
			[]*testbuilders.PolicyBuilder{testbuilders.Policy("p").Default("30m")}, done().Finalizer("example.com/wait").Terminating().Fact(), nil,
			explained{gc.CandidateTerminating, policy.ReasonTerminating, `waits for finalizers ["example.com/wait"]`, "30m", "p/default", "", gc.AfterFinished,
				background, true, false},
		},
		"terminating since our delete": {
			[]*testbuilders.PolicyBuilder{testbuilders.Policy("p").Default("30m")}, done().Fact(), func(w *world) { w.deletes("j") },
			explained{gc.CandidateTerminating, policy.ReasonTerminating, "It is being deleted", "30m", "p/default", "", gc.AfterFinished, background, true, false},
		},
		"refused": {
			[]*testbuilders.PolicyBuilder{testbuilders.Policy("p").Default("30m")}, done().Fact(), func(w *world) {
				w.takes("j")
				w.done("j", deletion.Refused)
			},
			explained{gc.CandidateHeld, policy.ReasonRefused, "the server's words", "30m", "p/default", "30m0s", gc.AfterFinished, background, true, false},
		},
		"only a Preview policy decides": {
			[]*testbuilders.PolicyBuilder{testbuilders.Policy("p").Default("30m").Preview()}, done().Fact(), nil,
			explained{gc.CandidateDue, policy.ReasonExpired, "nothing is deleted, because the policy is in Preview mode", "30m", "p/default", "30m0s", gc.AfterFinished, background, true, true},
		},
		"an enforcing policy decides before a Preview policy": {
			[]*testbuilders.PolicyBuilder{testbuilders.Policy("a").Default("never").Preview(), testbuilders.Policy("p").Default("2h")}, done().Fact(), nil,
			explained{gc.CandidateWaiting, policy.ReasonNotDue, "", "2h", "p/default", "2h0m0s", gc.AfterFinished, background, true, false},
		},
		"after creation": {
			[]*testbuilders.PolicyBuilder{testbuilders.Policy("p").Rules(testbuilders.Rule("r", "3d").AfterCreated().For(gc.ResourceJobs).Labelled("app", "x"))}, done().Label("app", "x").Fact(), nil,
			explained{gc.CandidateWaiting, policy.ReasonNotDue, "", "3d", "p/r", "49h0m0s", gc.AfterCreated, background, true, false},
		},
		"running": {
			[]*testbuilders.PolicyBuilder{testbuilders.Policy("p").Default("30m")}, testbuilders.Job("j").Fact(), nil,
			explained{gc.CandidateNone, policy.ReasonNotFinished, "It has not finished", "", "p/default", "", gc.AfterFinished, background, false, false},
		},
		"running, and only a Preview policy matches": {
			[]*testbuilders.PolicyBuilder{testbuilders.Policy("p").Default("30m").Preview()}, testbuilders.Job("j").Fact(), nil,
			explained{gc.CandidateNone, policy.ReasonNotFinished, "It has not finished", "", "", "", gc.AfterFinished, "", false, false},
		},
		"left to its owner": {
			[]*testbuilders.PolicyBuilder{testbuilders.Policy("p").Default("30m")},
			testbuilders.Pod("j").Succeeded(hour).ControlledBy("batch/v1", "Job", "parent").Fact(), nil,
			explained{gc.CandidateNone, policy.ReasonLeftToOwner, "left to its owner, and deleted together with it: Job/parent", "30m", "p/default", "", gc.AfterFinished, background, false, false},
		},
		"running, and about to get a deadline": {
			[]*testbuilders.PolicyBuilder{testbuilders.Policy("p").Default("30m").Deadline("2h")},
			testbuilders.Job("j").Started(hour).Fact(), nil,
			explained{gc.CandidateNone, policy.ReasonActiveDeadline, "It gets a deadline", "", "p/default", "", gc.AfterFinished, "", false, false},
		},
		"no rule matches": {
			[]*testbuilders.PolicyBuilder{testbuilders.Policy("p").Rules(testbuilders.Rule("r", "30m").Labelled("app", "x"))}, done().Fact(), nil,
			explained{gc.CandidateNone, policy.ReasonNoPolicy, "No policy matches it", "", "", "", gc.AfterFinished, "", false, false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.policies...)
			w.upsert(job(time.Minute, "unrelated"), c.fact)
			w.removed("unrelated")
			if c.then != nil {
				c.then(w)
			}
			got := w.candidate("j")
			s := got.Status
			seen := explained{
				state: s.State, reason: policy.Reason(s.Reason), message: c.want.message, ttl: s.TTL, after: s.After, propagation: s.PropagationPolicy,
				listed: len(w.find(allCandidates()).Items) > 0,
			}
			if s.DecidedBy != nil {
				seen.by, seen.preview = s.DecidedBy.Name+"/"+s.DecidedBy.Rule, s.DecidedBy.Mode == gc.ModePreview
			}
			if s.DueTime != nil {
				seen.due = s.DueTime.Sub(hour).String()
			}
			if diff := cmp.Diff(c.want, seen, cmp.AllowUnexported(explained{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !strings.Contains(s.Message, c.want.message) {
				t.Errorf("message %q, want %q in it", s.Message, c.want.message)
			}
			w.checkIdentity(&got)
		})
	}
}

// checkIdentity fails unless a candidate names its object.
func (w *world) checkIdentity(c *gc.CleanupCandidate) {
	w.Helper()
	f := w.facts[c.Status.Object.Name]
	want := gc.CandidateObject{Resource: f.Resource, Name: f.Name, ResourceVersion: fmt.Sprint(f.ResourceVersion)}
	if c.Status.Object != want || c.Name != string(f.UID) || c.Namespace != f.Namespace || !c.CreationTimestamp.Time.Equal(f.Created) ||
		c.UID != "" || c.ResourceVersion != "" || !maps.Equal(c.Labels, map[string]string(facts.Compress(f).LabelSet())) {
		w.Errorf("the candidate is %+v with %+v, want %+v", c.ObjectMeta, c.Status.Object, want)
	}
	if f.Finished != (c.Status.Since != nil && c.Status.After == gc.AfterFinished) && c.Status.After != gc.AfterCreated {
		w.Errorf("since %v, and finished at %v", c.Status.Since, f.FinishedAt)
	}
}

// TestCandidateLimits: rank and limits in small and large pools, per key, and in ceilings. Lists leave out the rank in large pools.
func TestCandidateLimits(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Rules(
		testbuilders.Rule("small", "never").Labelled("size", "small").Keeping(1), testbuilders.Rule("large", "never").Keeping(view.RankMost)))
	w.clusterPolicy(jobCeiling(1, view.RankMost+5))
	at := func(name string, seconds int) *testbuilders.JobBuilder {
		return testbuilders.Job(name).Complete(w.now.Add(-time.Duration(seconds) * time.Second))
	}
	w.upsert(at("small-new", 10).Label("size", "small").Fact(), at("small-old", 20).Label("size", "small").Fact())
	for i := range view.RankMost + 1 {
		w.upsert(at(fmt.Sprintf("large-%04d", i), 100+i).Fact())
	}
	limit := func(rule string, objects, most, rank int64) gc.CandidateLimit {
		l := gc.CandidateLimit{
			Policy:  gc.CandidatePolicy{Kind: gc.KindCleanupPolicy, Name: "p", Mode: gc.ModeEnforce, Rule: rule},
			Objects: objects, MaxObjects: &most, Over: rank > most || rank == 0,
		}
		if rule == "" {
			l.Policy = gc.CandidatePolicy{Kind: gc.KindClusterCleanupPolicy, Name: "all", Mode: gc.ModeEnforce}
		}
		if rank > 0 {
			l.Rank = &rank
		}
		return l
	}
	const all = view.RankMost + 3
	for name, want := range map[string][]gc.CandidateLimit{
		"small-new":  {limit("small", 2, 1, 1), limit("", all, all, 1)},
		"small-old":  {limit("small", 2, 1, 2), limit("", all, all, 2)},
		"large-0006": {limit("large", view.RankMost+1, view.RankMost, 7), limit("", all, all, 9)},
		"large-1000": {limit("large", view.RankMost+1, view.RankMost, view.RankMost+1), limit("", all, all, all)},
	} {
		if diff := cmp.Diff(want, w.candidate(name).Status.Limits); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, want := range map[string]string{
		"small-new":  "It is kept until newer objects replace it: it is the newest of 2, and the limit is 1",
		"large-0000": "It is kept until newer objects replace it: it is the newest of 1001, and the limit is 1000",
		"large-0001": "It is kept until newer objects replace it: it is the 2nd newest of 1001, and the limit is 1000",
		"large-0002": "It is kept until newer objects replace it: it is the 3rd newest of 1001, and the limit is 1000",
		"large-0010": "It is kept until newer objects replace it: it is the 11th newest of 1001, and the limit is 1000",
		"large-0020": "It is kept until newer objects replace it: it is the 21st newest of 1001, and the limit is 1000",
		"large-0111": "It is kept until newer objects replace it: it is the 112th newest of 1001, and the limit is 1000",
	} {
		if s := w.candidate(name).Status; s.Reason != string(policy.ReasonWithinCapacity) || s.Message != want || s.TTL != "" || s.Policies[0].KeepsUntil != "" {
			t.Errorf("%s: %s for %q until %q: %s", name, s.Reason, s.TTL, s.Policies[0].KeepsUntil, s.Message)
		}
	}
	for _, c := range w.find(allCandidates()).Items {
		if c.Status.Object.Name == "large-0006" && !strings.HasSuffix(c.Status.Message, ": it is one of 1001, and the limit is 1000") {
			t.Errorf("in a list: %s", c.Status.Message)
		}
		for _, l := range c.Status.Limits {
			if (l.Rank != nil) != (l.Objects <= view.RankMost) {
				t.Fatalf("%s: a list has the rank %v of %d objects", c.Status.Object.Name, l.Rank, l.Objects)
			}
		}
	}
}

// TestPreviewWithinCapacity: a Preview policy says which place an object would have, too.
func TestPreviewWithinCapacity(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Preview().Rules(testbuilders.Rule("few", "").WithoutTTL().Keeping(1)))
	w.upsert(job(time.Minute, "new"), job(time.Hour, "old"))
	const want = "It is kept until newer objects replace it: it is the newest of 2, and the limit is 1; nothing is deleted, because the policy " +
		"is in Preview mode"
	if s := w.candidate("new").Status; s.Reason != string(policy.ReasonWithinCapacity) || s.Message != want || s.TTL != "" {
		t.Errorf("%s, TTL %q: %s", s.Reason, s.TTL, s.Message)
	}
	if s := w.candidate("old").Status; s.Reason != string(policy.ReasonOverCapacity) || s.TTL != "" {
		t.Errorf("%s, TTL %q: %s", s.Reason, s.TTL, s.Message)
	}
}

// TestCandidateOfCeiling: the policy of the ceiling decides, and the explanation has the step.
func TestCandidateOfCeiling(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("2h"))
	w.clusterPolicy(jobCeiling(1, 1))
	w.upsert(job(time.Hour, "old"), job(time.Minute, "new"))
	s := w.candidate("old").Status
	if s.State != gc.CandidateDue || s.Reason != string(policy.ReasonOverCeiling) || s.TTL != "2h" ||
		*s.DecidedBy != (gc.CandidatePolicy{Kind: gc.KindClusterCleanupPolicy, Name: "all", Mode: gc.ModeEnforce}) {
		t.Errorf("got %s by %+v for %s with TTL %s", s.State, s.DecidedBy, s.Reason, s.TTL)
	}
	if len(s.Adjustments) != 1 || s.Adjustments[0].Source != "guardrails.ceilings" || s.Adjustments[0].Policy != "all" {
		t.Errorf("adjustments %+v", s.Adjustments)
	}
	if len(s.Policies) != 2 || s.Policies[0].Result != gc.ConsideredDecides || s.Policies[1].Result != gc.ConsideredNoMatch {
		t.Errorf("policies %+v", s.Policies)
	}
}

// TestUnreadablePolicyInCandidates: a policy that cannot be read is named first, because it stops everything.
func TestUnreadablePolicyInCandidates(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("30m"))
	w.upsert(job(time.Hour, "j"))
	w.policy(testbuilders.Policy("broken").Default("soon"))
	s := w.candidate("j").Status
	if s.State != gc.CandidateHeld || s.Reason != string(policy.ReasonPolicyUnreadable) {
		t.Errorf("%s for %s", s.State, s.Reason)
	}
	if len(s.Policies) != 2 || s.Policies[0].Name != "broken" || s.Policies[0].Result != gc.ConsideredUnreadable || s.Policies[0].Message == "" {
		t.Errorf("policies %+v", s.Policies)
	}
}

// TestCandidatesOfExcludedNamespaces: nothing in them is a candidate, and no policy is asked.
func TestCandidatesOfExcludedNamespaces(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("30m"))
	w.upsert(job(time.Hour, "j"))
	w.namespace(testbuilders.Home, gc.LabelProtected, "true")
	if page := w.find(allCandidates()); len(page.Items) != 0 {
		t.Errorf("candidates %s", namesOf(page))
	}
	if w.Records.Get(testbuilders.UID("j")) == nil {
		return // A protected namespace is not covered, so nothing is known of its objects.
	}
	if s := w.candidate("j").Status; s.Reason != string(policy.ReasonNamespaceProtected) || len(s.Policies) != 0 {
		t.Errorf("%+v", s)
	}
}

// TestCandidateOwners: what the controller means, and its name.
func TestCandidateOwners(t *testing.T) {
	hour := testbuilders.Now.Add(-time.Hour)
	w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", "30m").Dependents(gc.DependentsAfterOwnerFinished)))
	w.upsert(testbuilders.Job("done").Complete(hour).Fact(), testbuilders.Job("running").Fact())
	for owner, want := range map[string]gc.CandidateOwner{
		"batch/v1 Job done":      {Kind: "Job.batch", Name: "done", State: gc.CandidateOwnerFinished},
		"batch/v1 Job running":   {Kind: "Job.batch", Name: "running", State: gc.CandidateOwnerRunning},
		"batch/v1 Job gone":      {Kind: "Job.batch", Name: "gone", State: gc.CandidateOwnerAbsent},
		"apps/v1 ReplicaSet any": {Kind: "ReplicaSet.apps", Name: "any", State: gc.CandidateOwnerIndependent},
		"example.com/v1 Run any": {Kind: "Run.example.com", Name: "any", State: gc.CandidateOwnerUnknown},
	} {
		of := strings.Fields(owner)
		w.upsert(testbuilders.Pod("pod").Succeeded(hour).ControlledBy(of[0], of[1], of[2]).Fact())
		w.listCovered()
		if got := w.candidate("pod").Status.Owner; got == nil || *got != want {
			t.Errorf("%s: got %+v, want %+v", owner, got, want)
		}
		w.removed("pod")
	}
	if got := w.candidate("done").Status.Owner; got != nil {
		t.Errorf("an object without a controller has the owner %+v", got)
	}
}

// TestCandidateObservedTime: a candidate says when the watch of its resource was last heard.
func TestCandidateObservedTime(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("2h"))
	w.upsert(job(time.Hour, "j"))
	w.Heard(gc.ResourceJobs, w.now)
	if got := w.candidate("j").Status.ObservedTime; got == nil || !got.Time.Equal(w.now) {
		t.Errorf("observed at %v, want %v", got, w.now)
	}
}

// TestResources: Resources returns the covered resources that can be deleted, in one namespace or in any, and why some objects are not
// known.
func TestResources(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h").For(gc.ResourcePods)))
	w.observeNamespace("team-b")
	w.observePolicy(testbuilders.Policy("q").In("team-b").WithUID("uid-q").
		Rules(testbuilders.Rule("r", "1h").For(gc.ResourceJobs).KeepingPercent(50)))
	expect := func(namespace string, want map[string]string) {
		t.Helper()
		if diff := cmp.Diff(want, w.Resources(namespace)); diff != "" {
			t.Errorf("in %q (-want +got):\n%s", namespace, diff)
		}
	}
	const notListed, failing = "Winnow has not listed all jobs.batch yet", "jobs.batch cannot be observed: no right"
	expect("team-a", map[string]string{gc.ResourceJobs: "", gc.ResourcePods: ""}) // Jobs own Pods.
	expect("team-b", map[string]string{gc.ResourceJobs: notListed})
	expect("", map[string]string{gc.ResourceJobs: notListed, gc.ResourcePods: ""})
	expect("team-c", map[string]string{})
	w.Observing(gc.ResourceJobs, errors.New("no right"), w.now)
	expect("team-a", map[string]string{gc.ResourceJobs: failing, gc.ResourcePods: ""})
	expect("team-b", map[string]string{gc.ResourceJobs: failing})
	w.Observing(gc.ResourceJobs, nil, w.now)
	w.Heard(gc.ResourcePods, w.now)
	w.Watches.Expire(w.now.Add(freshness.StaleAfter))
	expect("team-a", map[string]string{gc.ResourceJobs: "", gc.ResourcePods: "the watch of pods has been silent for 1m30s"})
}

// BenchmarkCandidates lists 100,000 candidates of one namespace in pages of 500, as kubectl does. An operation is one page.
func BenchmarkCandidates(b *testing.B) {
	t := newDriver(memory.Config{HoldAbove: -1, HoldAboveTotal: -1})
	var all []*facts.Compact
	for i := range 100_000 {
		all = append(all, facts.Compress(testbuilders.Job(fmt.Sprintf("job-%06d", i)).
			WithUID(types.UID(fmt.Sprintf("%08x-1111-4222-8333-%012x", i*7919%100_000, i))).Complete(testbuilders.Now.Add(-time.Hour)).Fact()))
	}
	t.ReplaceNamespaces([]*metav1.PartialObjectMetadata{testbuilders.Namespace(testbuilders.Home, "1")}, "1", testbuilders.Now)
	t.ReplacePolicies([]*gc.CleanupPolicy{testbuilders.Policy("p").Default("7d").Version("1").Obj()}, "1", testbuilders.Now)
	t.ReplaceClusterPolicies(nil, "1", testbuilders.Now)
	t.ReplaceCronJobs(nil, testbuilders.Now)
	t.Replace(gc.ResourcePods, nil, 1, testbuilders.Now)
	t.Replace(gc.ResourceJobs, all, 1, testbuilders.Now)
	q := allCandidates()
	q.Namespace, q.Limit = testbuilders.Home, 500
	b.ReportAllocs()
	for b.Loop() {
		page := t.find(q)
		if len(page.Items) != q.Limit {
			b.Fatalf("a page has %d items", len(page.Items))
		}
		if q.After = (gc.CandidatePosition{}); page.Next != nil {
			q.After = *page.Next
		}
	}
}
