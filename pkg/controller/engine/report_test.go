// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

func TestReportCountsWhatThePolicyDecides(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("1h").Rules(
		testbuilders.Rule("kept", "never").Outcome(gc.OutcomeFailed),
	), testbuilders.Policy("q").Rules(testbuilders.Rule("longer", "2h").Labelled("app", "train")))
	w.upsert(
		testbuilders.Job("running").Fact(),
		testbuilders.Job("fresh").Complete(w.now.Add(-30*time.Minute)).Fact(),
		testbuilders.Job("fresher").Complete(w.now.Add(-10*time.Minute)).Fact(),
		testbuilders.Job("due").Complete(w.now.Add(-time.Hour)).Fact(),
		testbuilders.Job("failed").Failed(w.now.Add(-time.Hour)).Fact(),
		testbuilders.Job("train").Label("app", "train").Complete(w.now.Add(-time.Hour)).Fact(),
		testbuilders.Job("malformed").TTL("?").Complete(w.now.Add(-time.Hour)).Fact(),
		testbuilders.Job("malformed-2").TTL("??").Complete(w.now.Add(-time.Hour)).Fact(),
		testbuilders.Job("old").Complete(time.Time{}).Fact(),
		testbuilders.Job("going").Complete(w.now.Add(-time.Hour)).Terminating().Finalizer("example.com/f").Fact(),
		podOf("running", "left").Fact(),
	)
	w.counts("p", counts{candidates: 8, due: 4, held: 2})
	w.counts("q", counts{candidates: 1})
	p, q := w.report("p"), w.report("q")
	if at := p.NextDeletion; at == nil || !at.Time.Equal(w.now.Add(30*time.Minute)) {
		t.Errorf("p deletes next at %v", at)
	}
	if at := q.NextDeletion; at == nil || !at.Time.Equal(w.now.Add(time.Hour)) {
		t.Errorf("q deletes next at %v", at)
	}
	if p.LastDeletion != nil || p.Unreadable != nil || p.Excluded != "" || p.DoesNothing || p.Stored.Name != "p" {
		t.Errorf("got %+v", p)
	}
	w.holds("p", report.Group{Reason: policy.ReasonInvalidAnnotation, Detail: w.Explain(w.Records.Get("uid-malformed")).Detail, Object: "jobs.batch/malformed", Count: 2})
	want := []report.Group{{Reason: policy.ReasonTerminating, Detail: `waits for finalizers ["example.com/f"]`, Object: "jobs.batch/going", Count: 1}}
	if !slices.Equal(p.AwaitingByReason, want) {
		t.Errorf("awaits %+v", p.AwaitingByReason)
	}
	totals := w.Totals(w.now)
	held := map[policy.Reason]int{policy.ReasonInvalidAnnotation: 2}
	if totals.Objects != 11 || totals.Timers != 4 || totals.Ready != 1 || !maps.Equal(totals.Held[gc.ResourceJobs], held) {
		t.Errorf("totals %+v", totals)
	}
}

// TestReportCountsWhatCeilingsCount: the objects of all selected namespaces count, whichever policy decides for them, and whether the
// policy enforces, previews or stops all deletions. A preview counts the objects that it would count if it were enforced, with its own
// rules.
func TestReportCountsWhatCeilingsCount(t *testing.T) {
	most := func(n int64) *int64 { return &n }
	governs := func(generation int64, change func(*gc.ClusterCleanupPolicySpec)) *gc.ClusterCleanupPolicy {
		p := guardrailPolicy(generation, gc.Guardrails{Ceilings: []gc.Ceiling{
			{Resources: []string{gc.ResourcePods}, MaxObjects: most(1)}, {Resources: []string{gc.ResourceJobs}, MaxObjects: most(3)},
		}})
		change(&p.Spec)
		return p
	}
	jobs, pods := gc.CeilingStatus{
		Resource:   gc.ResourceJobs,
		Objects:    5,
		MaxObjects: 3,
		Over:       2,
	}, gc.CeilingStatus{
		Resource:   gc.ResourcePods,
		MaxObjects: 1,
	}
	counted, none := []gc.CeilingStatus{jobs, pods}, []gc.CeilingStatus{{Resource: gc.ResourceJobs, MaxObjects: 3}, pods}
	jobs.Objects, jobs.Over = 6, 3
	withHook := []gc.CeilingStatus{jobs, pods}
	for name, c := range map[string]struct {
		change func(*gc.ClusterCleanupPolicySpec)
		want   []gc.CeilingStatus
	}{
		"enforcing":  {func(*gc.ClusterCleanupPolicySpec) {}, counted},
		"previewing": {func(s *gc.ClusterCleanupPolicySpec) { s.Mode = gc.ModePreview }, counted},
		"suspended":  {func(s *gc.ClusterCleanupPolicySpec) { s.Suspend = true }, counted},
		"stopping":   {func(s *gc.ClusterCleanupPolicySpec) { s.Guardrails.SuspendAll = true }, counted},
		"previewing with a separate rule": {func(s *gc.ClusterCleanupPolicySpec) {
			s.Mode = gc.ModePreview
			s.Rules = []gc.CleanupRule{{Name: "hooks", TTL: new(gc.TTL("never")), ManagedElsewhere: gc.ManagedElsewhereDelete}}
		}, withHook},
		"no ceilings":      {func(s *gc.ClusterCleanupPolicySpec) { s.Guardrails.Ceilings = nil }, nil},
		"not to be read":   {func(s *gc.ClusterCleanupPolicySpec) { s.Guardrails.Ceilings[0].MaxObjects = nil }, nil},
		"other namespaces": {func(s *gc.ClusterCleanupPolicySpec) { s.NamespaceSelector.MatchLabels = map[string]string{"team": "b"} }, none},
		"for Jobs only":    {func(s *gc.ClusterCleanupPolicySpec) { s.Guardrails.Ceilings = s.Guardrails.Ceilings[1:] }, counted[:1]},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.clusterPolicy(governs(1, c.change))
			w.fill(testbuilders.Home, 2)
			w.fill("b", 2)
			w.upsert(
				testbuilders.Job("runs").Fact(),
				testbuilders.Job("kept").TTL("never").Complete(w.now).Fact(),
				testbuilders.Job("held").Annotation("argocd.argoproj.io/hook", "PreSync").Complete(w.now).Fact(),
				testbuilders.Job("going").Complete(w.now).Terminating().Finalizer("example.com/f").Fact(),
			)
			got := w.Reports("")[0].Ceilings
			if !slices.Equal(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if w.confirmFresh(); w.Reports("")[0].Mode == gc.ModePreview {
				w.takes()
			}
		})
	}
}

// TestReportCountsByNamespace: the report on a cluster policy counts its objects by namespace, even on a preview, and in whatever steps it
// is made. A namespace without candidates, objects of other policies, and the reports on policies of a namespace add nothing.
func TestReportCountsByNamespace(t *testing.T) {
	for _, mode := range []gc.PolicyMode{gc.ModeEnforce, gc.ModePreview} {
		for _, budget := range []int{0, 1} {
			w := newWorld(t)
			w.namespace("b")
			w.namespace("c")
			w.namespace("d")
			p := ttlClusterPolicy("all", "1h", 1)
			p.Spec.Mode = mode
			w.clusterPolicy(p)
			own := testbuilders.Policy("own").Default("1h").Obj()
			own.Namespace, own.ResourceVersion = "d", w.next()
			w.SetPolicy(own, w.now)
			w.listCovered()
			at := func(ns, name string, ago time.Duration) *testbuilders.JobBuilder {
				return testbuilders.Job(name).In(ns).Complete(w.now.Add(-ago))
			}
			w.upsert(
				at(testbuilders.Home, "a1", 0).Fact(), at(testbuilders.Home, "a2", 0).Fact(), at("b", "b1", 2*time.Hour).Fact(),
				at("b", "b2", 2*time.Hour).TTL("?").Fact(), at("b", "b3", 0).Fact(), testbuilders.Job("c1").In("c").Fact(),
				at("d", "d1", 2*time.Hour).Fact(),
			)
			w.setBudget(budget)
			want := []gc.NamespaceStatus{{Namespace: "b", Candidates: 3, Due: 2, Held: 1}, {Namespace: testbuilders.Home, Candidates: 2}}
			if r := w.Reports("")[0]; !slices.Equal(r.Namespaces, want) || r.UnlistedNamespaces != 0 || r.Candidates != 5 || r.Due != 2 || r.Held != 1 {
				t.Errorf("%s: got %+v", mode, r)
			}
			if r := w.Reports("d")[0]; r.Candidates != 1 || r.Namespaces != nil {
				t.Errorf("%s: got %+v", mode, r)
			}
		}
	}
}

func TestReportsOfPoliciesThatDoNothing(t *testing.T) {
	w := newWorld(
		t,
		testbuilders.Policy("b-unreadable").Default("1y"),
		testbuilders.Policy("a-empty"),
		testbuilders.Policy("c").Default("0s"),
	)
	w.upsert(job(0, "a"))
	reports := w.Reports(testbuilders.Home)
	if len(reports) != 3 || !reports[0].DoesNothing || reports[1].Unreadable == nil || reports[1].DoesNothing || reports[2].DoesNothing {
		t.Fatalf("got %+v", reports)
	}
	w.takes()
	w.holds(
		"c",
		report.Group{Reason: policy.ReasonPolicyUnreadable, Detail: "policy team-a/b-unreadable: spec.ttlAfterFinished: has the unknown unit \"y\"; units are w, d, h, m and s", Object: "jobs.batch/a", Count: 1},
	)
	w.policy(testbuilders.Policy("b-unreadable").Default("1w").Generation(2))
	w.decided("a", policy.Wait, policy.ReasonNotDue)
	w.removePolicy(testbuilders.Policy("b-unreadable"))
	w.takes("a")
	if got := w.Reports("team-b"); got != nil {
		t.Errorf("reports of an unknown namespace: %+v", got)
	}
}

func TestReportOfAProtectedNamespace(t *testing.T) {
	w := newWorld(t, ttlPolicy("0s", 1))
	w.upsert(job(0, "a"))
	w.namespace(testbuilders.Home, gc.LabelProtected, "true")
	if r := w.report("p"); r.Excluded != policy.ReasonNamespaceProtected || r.Candidates != 0 || r.Due != 0 {
		t.Errorf("got %+v", r)
	}
}

// TestPreview: a preview counts the decisions that it would make together with the enforcing policies, and deletes nothing.
func TestPreview(t *testing.T) {
	preview := func(ttl gc.TTL) *testbuilders.PolicyBuilder { return testbuilders.Policy("p").Preview().Default(ttl) }
	for name, c := range map[string]struct {
		preview, enforced *testbuilders.PolicyBuilder
		want              counts
		next              time.Duration
		taken             []string
	}{
		"alone":                           {preview("1h"), nil, counts{candidates: 3, due: 1, held: 0}, 30 * time.Minute, nil},
		"it keeps the longest":            {preview("90m"), testbuilders.Policy("q").Default("1h"), counts{candidates: 3}, 30 * time.Minute, []string{"a"}},
		"another keeps longer":            {preview("0s"), testbuilders.Policy("q").Default("2h"), counts{}, 0, nil},
		"equal ones: the first by name":   {preview("1h"), testbuilders.Policy("q").Default("1h"), counts{candidates: 3, due: 1}, 30 * time.Minute, []string{"a"}},
		"equal ones: the second by name":  {preview("1h"), testbuilders.Policy("a").Default("1h"), counts{}, 0, []string{"a"}},
		"where no other matches":          {preview("1h"), testbuilders.Policy("q").Rules(testbuilders.Rule("r", "never").For("pods")), counts{candidates: 3, due: 1}, 30 * time.Minute, nil},
		"unlike another preview":          {preview("1h"), testbuilders.Policy("q").Preview().Default("never"), counts{candidates: 3, due: 1}, 30 * time.Minute, nil},
		"it would keep what another ends": {preview("never"), testbuilders.Policy("q").Default("0s"), counts{candidates: 3}, 0, []string{"a", "b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.preview)
			if c.enforced != nil {
				w.policy(c.enforced)
				w.confirmFresh()
			}
			w.upsert(job(time.Hour, "a"), job(30*time.Minute, "b"), job(0, "c"))
			w.counts("p", c.want)
			if next := w.report("p").NextDeletion; (next == nil) != (c.next == 0) || next != nil && next.Sub(w.now) != c.next {
				t.Errorf("next at %v", next)
			}
			w.takes(c.taken...)
		})
	}
	t.Run("counts what comes due while time passes", func(t *testing.T) {
		w := newWorld(t, preview("1h"))
		w.upsert(job(0, "a"))
		w.counts("p", counts{candidates: 1})
		w.pass(time.Hour)
		w.counts("p", counts{candidates: 1, due: 1})
		w.takes()
	})
}

// TestDeletedNeverDecreases: a new leader continues from the number in the status.
func TestDeletedNeverDecreases(t *testing.T) {
	last := metav1.NewTime(testbuilders.Now.Add(-time.Hour))
	w := newWorld(t, ttlPolicy("0s", 1).Status(gc.CleanupPolicyStatus{Deleted: 40, LastDeletionTime: &last}))
	w.counts("p", counts{deleted: 40})
	if r := w.report("p"); !r.LastDeletion.Equal(&last) {
		t.Errorf("last deletion at %v", r.LastDeletion)
	}
	w.upsert(jobs(0, "a", "b")...)
	w.deletes("a", "b")
	w.removed("a", "b")
	w.counts("p", counts{deleted: 42})
	w.policy(ttlPolicy("0s", 1).Status(gc.CleanupPolicyStatus{Deleted: 41})) // The replica wrote this a moment ago.
	w.counts("p", counts{deleted: 42})
	w.policy(ttlPolicy("0s", 1).Status(gc.CleanupPolicyStatus{Deleted: 50})) // Another leader wrote this.
	w.counts("p", counts{deleted: 50})
	w.policy(testbuilders.Policy("p").WithUID("uid-2").Default("0s"))
	w.counts("p", counts{})
}

func TestDirty(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	w.namespace("team-b")
	w.TakeUnwritten()
	for name, do := range map[string]func(){
		"an object":      func() { w.upsert(job(0, "a")) },
		"time":           func() { w.upsert(job(0, "a")); w.TakeUnwritten(); w.pass(time.Hour) },
		"a removal":      func() { w.upsert(job(0, "b")); w.TakeUnwritten(); w.removed("b") },
		"a policy":       func() { w.policy(ttlPolicy("1h", w.report("p").Stored.Generation+1)) },
		"its protection": func() { w.namespace(testbuilders.Home, gc.LabelProtected, "true"); w.namespace(testbuilders.Home) },
	} {
		if do(); !slices.Equal(w.TakeUnwritten(), []string{testbuilders.Home}) {
			t.Errorf("after %s, the namespace is not to be reported", name)
		}
		if got := w.TakeUnwritten(); len(got) != 0 {
			t.Errorf("after %s, %q is to be reported twice", name, got)
		}
	}
}

// TestGroupNamesTheFirst: a group names its first object, in whatever order objects are counted.
func TestGroupNamesTheFirst(t *testing.T) {
	w := newWorld(t, ttlPolicy("0s", 1))
	for _, name := range []string{"d", "b", "c"} {
		w.upsert(testbuilders.Job(name).Complete(w.now).TTL(name).Fact())
	}
	for range 10 {
		if g := w.report("p").HeldByReason[0]; g.Object != "jobs.batch/b" || !strings.Contains(g.Detail, `"b"`) || g.Count != 3 {
			t.Fatalf("got %+v", g)
		}
	}
}

// TestReportsCreateNoNamespace: a namespace that is forgotten during a report stays forgotten.
func TestReportsCreateNoNamespace(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	w.upsert(jobs(0, "a", "b")...)
	w.setBudget(1)
	var reports []report.Report
	w.interrupt = sync.OnceFunc(func() {
		w.removePolicy(ttlPolicy("1h", 1))
		w.RemoveNamespace(testbuilders.Namespace(testbuilders.Home, w.next()), w.now)
		w.stepAll()
	})
	w.read(w.ReportOn(testbuilders.Home, &reports))
	if len(reports) != 1 || len(w.Engine.Namespaces) != 0 {
		t.Errorf("%d reports, and %d namespaces are known", len(reports), len(w.Engine.Namespaces))
	}
}

// TestHeldObjectsOfAPreview: a Preview reports the objects as held that would be held if it were enforced, and nothing is due once the
// policy is removed.
func TestHeldObjectsOfAPreview(t *testing.T) {
	w := newWorld(t, ttlPolicy("0s", 1).Preview(), testbuilders.Policy("q").Rules(testbuilders.Rule("r", "never").Labelled("no", "such")))
	w.upsert(jobs(time.Minute, "a", "b")...)
	w.counts("p", counts{candidates: 2, due: 2})
	w.clusterPolicy(guardrailPolicy(1, gc.Guardrails{SuspendAll: true}))
	w.counts("p", counts{candidates: 2, due: 2, held: 2})
	w.clusterPolicy(guardrailPolicy(2, gc.Guardrails{}))
	w.counts("p", counts{candidates: 2, due: 2})
	w.removePolicy(ttlPolicy("0s", 1))
	if due := w.Due(); len(due) != 0 {
		t.Errorf("%d objects are due by a policy that is gone", len(due))
	}
}
