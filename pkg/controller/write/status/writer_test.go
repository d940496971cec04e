// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/metrics"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

func TestPatch(t *testing.T) {
	o := newFixture(t, testbuilders.Policy("p").Default("1h").Generation(2))
	o.upsert(testbuilders.Job("a").Complete(testbuilders.Now).Fact())
	patches, _ := o.after(time.Second)
	if len(patches) != 1 {
		t.Fatalf("%d patches", len(patches))
	}
	p := patches[0]
	if p.GetPatchType() != types.MergePatchType || p.GetSubresource() != "status" || p.GetNamespace() != testbuilders.Home ||
		p.GetName() != "p" {
		t.Errorf("got %+v", p)
	}
	var got, want any
	if err := json.Unmarshal(p.GetPatch(), &got); err != nil {
		t.Fatal(err)
	}
	// null removes a field that is unset now. The UID prevents a patch of another policy with that name.
	if err := json.Unmarshal([]byte(`{"metadata": {"uid": "uid-p"}, "status": {
		"observedGeneration": 2, "candidates": 1, "due": 0, "held": 0, "waiting": 0, "waitingForWindow": 0, "deleted": 0,
		"nextDeletionTime": "2026-03-01T13:00:00Z", "lastDeletionTime": null, "holds": null, "unlistedHolds": 0, "ceilings": null,
		"namespaces": null, "unlistedNamespaces": 0,
		"conditions": [{"type": "Ready", "status": "True", "reason": "Enforcing", "message": "Deletes what is due.",
			"observedGeneration": 2, "lastTransitionTime": "2026-03-01T12:00:01Z"}]}}`), &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %s\nwant %v", p.GetPatch(), want)
	}
	written := got.(map[string]any)["status"].(map[string]any)
	for field := range reflect.TypeFor[v1alpha1.CleanupPolicyStatus]().Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			if _, ok := written[name]; !ok {
				t.Errorf("a patch leaves out %s, so it could never be empty again", name)
			}
		}
	}
}

// TestReported: who listens gets the reports that statuses are written from, and none for a namespace where nothing may have changed.
func TestReported(t *testing.T) {
	o := newFixture(t, testbuilders.Policy("p").Default("1h"))
	var got []string
	o.Reported = func(namespace string, reports []report.Report) {
		got = append(got, fmt.Sprintf("%s: %d policies", namespace, len(reports)))
	}
	o.after(time.Second)
	o.after(time.Second)
	if want := []string{testbuilders.Home + ": 1 policies"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStatusIsWrittenWhenItChanges(t *testing.T) {
	o := newFixture(t, testbuilders.Policy("p").Default("1h"), testbuilders.Policy("q").Rules(testbuilders.Rule("r", "2h").For("pods")))
	o.writes(0, []string{"p", "q"}, nil)
	o.writes(time.Second, nil, nil)
	o.upsert(testbuilders.Job("a").Complete(testbuilders.Now).Fact())
	o.writes(time.Second, []string{"p"}, nil)
	o.upsert(testbuilders.Job("a").Complete(testbuilders.Now).Label("no", "matter").Fact())
	o.writes(time.Second, nil, nil)
}

// TestMeantResources: the status of a policy says which resource was perhaps meant by one that the cluster does not serve.
func TestMeantResources(t *testing.T) {
	o := newFixture(t)
	o.policy(testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h").For("other.example.com", "run.example.com")).Obj())
	patches, _ := o.after(time.Second)
	const want = "The cluster does not serve other.example.com, run.example.com. The policy applies as soon as it does. Did you mean runs.example.com?"
	if len(patches) != 1 || !strings.Contains(string(patches[0].GetPatch()), want) {
		t.Errorf("patches %s", patches)
	}
}

// TestPoliciesAreCounted: metrics count the policies by the reason of their condition Ready, until the replica stops leading.
func TestPoliciesAreCounted(t *testing.T) {
	legacyregistry.MustRegister(metrics.Policies)
	o := newFixture(t, testbuilders.Policy("p").Default("1h"), testbuilders.Policy("q").Default("1h"))
	counts := func(reason, ready string, want float64) {
		t.Helper()
		got, err := testutil.GetGaugeMetricValue(metrics.Policies.WithLabelValues(gc.KindCleanupPolicy, ready, reason))
		if err != nil || got != want {
			t.Errorf("%v policies are %s, want %v; error %v", got, reason, want, err)
		}
	}
	o.after(time.Second)
	counts("Enforcing", "True", 2)
	o.policy(testbuilders.Policy("q").Default("1h").Generation(2).Preview().Obj())
	o.after(time.Second)
	counts("Enforcing", "True", 1)
	counts("Previewing", "True", 1)
	o.Tracker.Observing(gc.ResourceJobs, errors.New("forbidden"), o.clock.Now())
	o.after(time.Second)
	counts("Enforcing", "True", 0)
	counts("Unobserved", "False", 2)
	o.Tracker.RemovePolicy(o.policies["q"], o.clock.Now())
	o.after(time.Second)
	counts("Unobserved", "False", 1)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	o.Writer.Run(ctx)
	counts("Unobserved", "False", 0)
}

// TestCountsAreDelayed: while many objects are being deleted, counts are written every three seconds, and everything else at once.
func TestCountsAreDelayed(t *testing.T) {
	o := newFixture(t, testbuilders.Policy("p").Default("0s"))
	o.writes(0, []string{"p"}, nil)
	due := func(from, to int) {
		for i := from; i < to; i++ {
			o.upsert(testbuilders.Job(fmt.Sprint("j", i)).Complete(testbuilders.Now).Fact())
		}
	}
	due(0, many)
	o.writes(time.Second, []string{"p"}, nil) // That is not many yet.
	due(many, many+1)
	o.writes(0, nil, nil)
	for range 2 {
		o.writes(time.Second, nil, nil)
	}
	o.writes(time.Second, []string{"p"}, nil) // The counts are remembered although nothing else changed.
	if got := o.policies["p"].Status.Due; got != many+1 {
		t.Errorf("wrote that %d are due", got)
	}

	due(many+1, many+2)
	o.writes(time.Second, nil, nil)
	o.policy(testbuilders.Policy("p").Default("0s").Generation(2).Obj())
	o.writes(time.Second, []string{"p"}, nil) // The new generation, together with the counts.
	if got := o.policies["p"].Status; got.Due != many+2 || got.ObservedGeneration != 2 {
		t.Errorf("wrote %+v", got)
	}
	o.writes(countsEvery, nil, nil)

	due(many+2, many+3)
	o.writes(time.Second, nil, nil)
	pod := testbuilders.Pod("held").Finalizer(batchv1.JobTrackingFinalizer).Succeeded(testbuilders.Now)
	o.upsert(pod.Fact()) // It changes the message of a condition, which is delayed too.
	o.writes(time.Second, nil, nil)
	for i := range many + 3 {
		o.Tracker.Remove(facts.Compress(testbuilders.Job(fmt.Sprint("j", i)).Complete(testbuilders.Now).Version("99").Fact()), o.clock.Now())
	}
	o.writes(time.Second, []string{"p"}, nil) // No longer many.
	if len(o.delayed) > 0 {
		t.Errorf("%v still wait", o.delayed)
	}
}

// slowReports are reports that take some time.
type slowReports struct {
	Tracker
	o     *fixture
	takes time.Duration
	made  int
	mixed bool // whether they say that objects are held, without the hold
}

func (s *slowReports) Reports(namespace string) []report.Report {
	s.made++
	s.o.clock.SetTime(s.o.clock.Now().Add(s.takes))
	reports := s.Tracker.Reports(namespace)
	for i := range reports {
		if s.mixed {
			reports[i].HeldByReason = []report.Group{{Reason: policy.ReasonHeld, Count: 1}}
		}
	}
	return reports
}

// TestMixedReports: a mixed report is not stored before it was the same for three seconds, also if reports take long.
func TestMixedReports(t *testing.T) {
	o := newFixture(t, testbuilders.Policy("p").Default("0s"))
	o.Config.Tracker = &slowReports{Tracker: o.Tracker, o: o, takes: costly + time.Millisecond, mixed: true}
	for _, want := range [][]string{nil, {"p"}} {
		if patches, _ := o.after(countsEvery); !slices.Equal(names(patches), want) {
			t.Errorf("wrote the status of %q, want %q", names(patches), want)
		}
	}
}

// TestCostlyTurns: namespaces that had no turn have it in the next flush, although reports take long.
func TestCostlyTurns(t *testing.T) {
	o := newFixture(t)
	o.Config.Tracker = &slowReports{Tracker: o.Tracker, o: o, takes: flushEvery / 2}
	o.policiesIn("a", "b", "c", "d")
	o.nothingUrgent()
	for _, want := range [][]string{{"of-a", "of-b"}, {"of-c", "of-d"}} {
		if patches, _ := o.after(0); !slices.Equal(names(patches), want) {
			t.Errorf("wrote the status of %q, want %q", names(patches), want)
		}
	}
}

// TestCostlyReports: reports that took long are made every three seconds, and for a new spec at once.
func TestCostlyReports(t *testing.T) {
	o := newFixture(t, testbuilders.Policy("p").Default("0s"))
	slow := &slowReports{Tracker: o.Tracker, o: o, takes: costly + time.Millisecond}
	o.Config.Tracker = slow
	o.writes(0, []string{"p"}, nil)
	rest := countsEvery - slow.takes
	for i := range many + 1 {
		o.upsert(testbuilders.Job(fmt.Sprint("j", i)).Complete(testbuilders.Now).Fact())
	}
	made := slow.made
	o.writes(rest-time.Second, nil, nil)
	if slow.made > made {
		t.Error("makes reports again soon")
	}
	o.writes(time.Second, []string{"p"}, nil)
	if got := o.policies["p"].Status.Due; got != many+1 {
		t.Errorf("wrote that %d are due", got)
	}
	o.policy(testbuilders.Policy("p").Default("0s").Generation(2).Obj())
	o.writes(0, []string{"p"}, nil)
	if got := o.policies["p"].Status.ObservedGeneration; got != 2 {
		t.Errorf("wrote that generation %d is observed", got)
	}
	slow.takes = 0
	o.after(countsEvery)
	made = slow.made
	o.upsert(testbuilders.Job("young").Complete(testbuilders.Now).Fact())
	if o.after(time.Second); slow.made == made {
		t.Error("makes no reports soon although they take no time")
	}
}

// TestOnlyCounts: only counts are delayed: a new leader needs the holds in the status, and people act on conditions.
func TestOnlyCounts(t *testing.T) {
	at := func(hour int) *metav1.Time {
		return &metav1.Time{Time: testbuilders.Now.Add(time.Duration(hour) * time.Hour)}
	}
	ready := func(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: gc.ConditionReady, Status: status, Reason: reason, Message: message}}
	}
	last := gc.CleanupPolicyStatus{
		ObservedGeneration: 3, Conditions: ready(metav1.ConditionTrue, "Enforcing", "1 of them"), Candidates: 5, Due: 4, Held: 1, Deleted: 7,
		Holds: []gc.PolicyHold{{ID: "a", Namespace: "ns", Objects: 4, Why: "why"}}, NextDeletionTime: at(1), LastDeletionTime: at(0),
		Ceilings:   []gc.CeilingStatus{{Resource: "pods", Objects: 3, MaxObjects: 2, Over: 1}},
		Namespaces: []gc.NamespaceStatus{{Namespace: "ns", Candidates: 5, Due: 4, Held: 1}},
	}
	for name, c := range map[string]struct {
		change func(*gc.CleanupPolicyStatus)
		counts bool
	}{
		"nothing": {func(*gc.CleanupPolicyStatus) {}, true},
		"counts": {func(s *gc.CleanupPolicyStatus) {
			s.Candidates, s.Due, s.Held, s.Deleted = 1, 2, 3, 4
			s.Ceilings = nil
		}, true},
		"counts by namespace": {func(s *gc.CleanupPolicyStatus) {
			s.Namespaces = []gc.NamespaceStatus{{Namespace: "other", Candidates: 3}, {Namespace: "ns", Candidates: 2}}
			s.UnlistedNamespaces = 7
		}, true},
		"times":                   {func(s *gc.CleanupPolicyStatus) { s.NextDeletionTime, s.LastDeletionTime = nil, at(2) }, true},
		"the text of a condition": {func(s *gc.CleanupPolicyStatus) { s.Conditions = ready(metav1.ConditionTrue, "Enforcing", "2 of them") }, true},
		"the objects of a hold": {func(s *gc.CleanupPolicyStatus) {
			s.Holds = []gc.PolicyHold{{ID: "a", Namespace: "ns", Objects: 9, Why: "why"}}
		}, true},
		"a generation":              {func(s *gc.CleanupPolicyStatus) { s.ObservedGeneration = 4 }, false},
		"a condition":               {func(s *gc.CleanupPolicyStatus) { s.Conditions = ready(metav1.ConditionFalse, "Enforcing", "1 of them") }, false},
		"the reason of a condition": {func(s *gc.CleanupPolicyStatus) { s.Conditions = ready(metav1.ConditionTrue, "Held", "1 of them") }, false},
		"a condition that was not there": {func(s *gc.CleanupPolicyStatus) {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: gc.ConditionThrottled})
		}, false},
		"a new hold": {func(s *gc.CleanupPolicyStatus) { s.Holds = append(s.Holds, gc.PolicyHold{ID: "b"}) }, false},
		"another hold": {func(s *gc.CleanupPolicyStatus) {
			s.Holds = []gc.PolicyHold{{ID: "b", Namespace: "ns", Objects: 4, Why: "why"}}
		}, false},
		"the end of a hold":       {func(s *gc.CleanupPolicyStatus) { s.Holds = nil }, false},
		"a hold that has no room": {func(s *gc.CleanupPolicyStatus) { s.UnlistedHolds = 1 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			status := *last.DeepCopy()
			c.change(&status)
			if got := onlyCounts(&status, &last); got != c.counts {
				t.Errorf("only counts differ: %v", got)
			}
		})
	}
}

func TestFailedWritesAreRepeated(t *testing.T) {
	o := newFixture(t, testbuilders.Policy("p").Default("1h"))
	o.refuse = errors.New("etcd is away")
	for range 3 {
		if patches, _ := o.after(time.Second); len(patches) != 1 {
			t.Fatalf("%d patches", len(patches))
		}
	}
	o.refuse = apierrors.NewNotFound(schema.GroupResource{Resource: "cleanuppolicies"}, "p") // For example, because its namespace is removed.
	o.after(time.Second)
	if patches, _ := o.after(time.Second); len(patches) != 0 {
		t.Errorf("%d patches for a removed policy", len(patches))
	}
}

func TestUnreadablePoliciesAreNotWritten(t *testing.T) {
	o := newFixture(t, testbuilders.Policy("p").Annotated(gc.AnnotationUnreadable, "why"))
	o.writes(time.Second, nil, nil)
}

// TestBudget: statuses and events share one budget, and what exceeds it is written later.
func TestBudget(t *testing.T) {
	o := newFixture(
		t,
		testbuilders.Policy("a").Default("1h"),
		testbuilders.Policy("b").Default("1h"),
		testbuilders.Policy("c").Default("1h"),
	)
	o.Writer.budget = rate.NewLimiter(rate.Every(time.Hour), 4)
	o.Gone(append(gone("a", "default", testbuilders.Job("a").Fact()), gone("b", "default", testbuilders.Job("b").Fact())...))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	o.flush(ctx)
	if got := names(o.patches); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("wrote the status of %q", got)
	}
	if n := len(o.cluster.Actions()); n != 1 {
		t.Errorf("wrote %d events, want 1", n)
	}
	o.upsert(testbuilders.Job("x").Complete(testbuilders.Now).Fact())
	o.flush(ctx)
	if n := len(o.patches); n != 3 {
		t.Errorf("wrote %d statuses above the budget", n-3)
	}
	o.Writer.budget = rate.NewLimiter(rate.Inf, 1)
	o.flush(ctx)
	if n := len(o.patches); n != 3+3 {
		t.Errorf("wrote %d statuses later, want 3", n-3)
	}
}

// TestTurns: while more is to be written than the budget allows, the namespaces take turns, and cluster policies are always first.
func TestTurns(t *testing.T) {
	o := newFixture(t)
	o.takes = flushEvery * 2 / 5
	o.policiesIn("a", "b", "c", "d", "e", "f", "g")
	o.Tracker.SetClusterPolicy(
		&gc.ClusterCleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: "everywhere", UID: "everywhere"}},
		testbuilders.Now,
	)
	if patches, _ := o.after(0); !slices.Equal(names(patches), []string{"everywhere", "everywhere", "of-g"}) {
		t.Errorf("wrote the status of %q, want the cluster policy first, and then the newest specs", names(patches))
	}
	o.nothingUrgent()
	o.pending.Insert("", "g")
	for _, want := range [][]string{{"everywhere", "of-a", "of-b"}, {"everywhere", "of-c", "of-d"}, {"everywhere", "of-e", "of-f"}} {
		if patches, _ := o.after(0); !slices.Equal(names(patches), want) {
			t.Errorf("wrote the status of %q, want %q", names(patches), want)
		}
		o.pending.Insert("") // The cluster policy changes again.
	}
	o.pending.Insert("a", "b")
	if patches, _ := o.after(0); !slices.Equal(names(patches), []string{"everywhere", "of-g", "of-a"}) {
		t.Errorf("wrote the status of %q, want the status of the last one before another turn of the first", names(patches))
	}
}

func TestRunWritesEverythingAtItsStart(t *testing.T) {
	o := newFixture(t, testbuilders.Policy("p").Default("1h"))
	o.Tracker.TakeUnwritten() // As if a former leader had written the statuses.
	o.wrote = make(chan string, 1)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { o.Writer.Run(ctx) })
	select {
	case name := <-o.wrote:
		if name != "p" {
			t.Errorf("wrote the status of %s", name)
		}
	case <-ctx.Done():
		t.Error("wrote nothing")
	}
	cancel()
	running.Wait()
}
