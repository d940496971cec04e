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
	"unicode/utf8"

	"golang.org/x/time/rate"
	batchv1 "k8s.io/api/batch/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/tracker"
	gcfake "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/fake"
)

// office is a writer, the tracker that it reads from, and what it wrote. Statuses that it writes come back to the tracker as
// they would by the watch.
type office struct {
	*testing.T
	*Writer
	Tracker  *tracker.Tracker
	clock    *clocktesting.FakePassiveClock
	patches  []clienttesting.PatchAction
	wrote    chan string   // may be nil
	takes    time.Duration // that each patch takes
	refuse   error         // what patches are answered
	cluster  *fake.Clientset
	policies map[string]*gc.CleanupPolicy
	version  uint64
}

func newOffice(t *testing.T, policies ...*testbuilders.PolicyBuilder) *office {
	o := &office{
		T:        t,
		clock:    clocktesting.NewFakePassiveClock(testbuilders.Now),
		cluster:  fake.NewClientset(),
		policies: map[string]*gc.CleanupPolicy{},
	}
	client := gcfake.NewSimpleClientset()
	client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchAction)
		o.patches = append(o.patches, patch)
		o.clock.SetTime(o.clock.Now().Add(o.takes))
		if patch.GetNamespace() == "" {
			return true, &v1alpha1.ClusterCleanupPolicy{}, o.refuse
		}
		if o.wrote != nil {
			o.wrote <- patch.GetName()
		}
		return true, &v1alpha1.CleanupPolicy{}, o.refuse
	})
	o.Tracker = tracker.New(engine.Config{HoldAbove: -1, HoldAboveTotal: -1}, nil)
	o.Writer = New(
		Config{
			Tracker:  o.Tracker,
			Policies: client.GcV1alpha1(),
			Events:   o.cluster,
			Clock:    o.clock,
			Instance: "replica-1",
		},
	)
	o.Tracker.ReplacePolicies(nil, "", testbuilders.Now)
	o.Tracker.ReplaceClusterPolicies(nil, "", testbuilders.Now)
	o.Tracker.ReplaceNamespaces([]*metav1.PartialObjectMetadata{testbuilders.Namespace(testbuilders.Home, "1")}, "", testbuilders.Now)
	o.Tracker.ReplaceCronJobs(nil, testbuilders.Now)
	for _, p := range policies {
		o.policy(p.Obj())
	}
	return o
}

func (o *office) policy(p *gc.CleanupPolicy) {
	o.policies[p.Name] = p
	o.Tracker.SetPolicy(p, o.clock.Now())
	for resource := range o.Tracker.Coverage() {
		o.Tracker.BeginMerge(resource, testbuilders.Home).End(true, o.clock.Now())
	}
}

func (o *office) upsert(all ...*lifecycle.Fact) {
	for _, f := range all {
		o.version++
		f.ResourceVersion = o.version
		o.Tracker.Upsert(facts.Compress(f), o.clock.Now())
	}
}

// after lets time pass, flushes, and returns the patches of statuses and the events that were written.
func (o *office) after(d time.Duration) (patches []clienttesting.PatchAction, events []eventsv1.Event) {
	o.Helper()
	o.clock.SetTime(o.clock.Now().Add(d))
	o.patches = nil
	o.cluster.ClearActions()
	o.flush(context.Background())
	for _, action := range o.cluster.Actions() {
		events = append(events, *action.(clienttesting.CreateAction).GetObject().(*eventsv1.Event))
	}
	return o.patches, events
}

// comeBack has the tracker see what was patched.
func (o *office) comeBack(patches []clienttesting.PatchAction) {
	o.Helper()
	for _, patch := range patches {
		var versioned v1alpha1.CleanupPolicy
		if err := json.Unmarshal(patch.GetPatch(), &versioned); err != nil {
			o.Fatal(err)
		}
		p := o.policies[patch.GetName()].DeepCopy()
		if err := v1alpha1.Convert_v1alpha1_CleanupPolicyStatus_To_gc_CleanupPolicyStatus(&versioned.Status, &p.Status, nil); err != nil {
			o.Fatal(err)
		}
		o.policy(p)
	}
}

func names(patches []clienttesting.PatchAction) []string {
	var out []string
	for _, p := range patches {
		out = append(out, p.GetName())
	}
	return out
}

func notes(events []eventsv1.Event) []string {
	var out []string
	for _, e := range events {
		out = append(out, e.Type+" "+e.Reason+": "+e.Note)
	}
	return out
}

func (o *office) writes(d time.Duration, wantPatches []string, wantNotes []string) {
	o.Helper()
	patches, events := o.after(d)
	if got := names(patches); !slices.Equal(got, wantPatches) {
		o.Fatalf("wrote the status of %q, want %q", got, wantPatches)
	}
	if got := notes(events); !slices.Equal(got, wantNotes) {
		o.Fatalf("wrote events\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(wantNotes, "\n"))
	}
	o.comeBack(patches)
}

func TestPatch(t *testing.T) {
	o := newOffice(t, testbuilders.Policy("p").Default("1h").Generation(2))
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
	// What is not there is taken away by null, and the UID keeps the patch from a policy of the same name.
	if err := json.Unmarshal([]byte(`{"metadata": {"uid": "uid-p"}, "status": {
		"observedGeneration": 2, "candidates": 1, "due": 0, "held": 0, "deleted": 0,
		"nextDeletionTime": "2026-03-01T13:00:00Z", "lastDeletionTime": null, "holds": null, "unlistedHolds": 0, "ceilings": null,
		"conditions": [{"type": "Ready", "status": "True", "reason": "Enforcing", "message": "Deletes what is due.",
			"observedGeneration": 2, "lastTransitionTime": "2026-03-01T12:00:01Z"}]}}`), &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %s\nwant %v", p.GetPatch(), want)
	}
}

func TestStatusIsWrittenOnceItChanges(t *testing.T) {
	o := newOffice(t, testbuilders.Policy("p").Default("1h"), testbuilders.Policy("q").Rules(testbuilders.Rule("r", "2h").For("pods")))
	o.writes(0, []string{"p", "q"}, nil)
	o.writes(time.Second, nil, nil)
	o.upsert(testbuilders.Job("a").Complete(testbuilders.Now).Fact())
	o.writes(time.Second, []string{"p"}, nil)
	o.upsert(testbuilders.Job("a").Complete(testbuilders.Now).Label("no", "matter").Fact())
	o.writes(time.Second, nil, nil)
}

// TestCountsAreGathered: while many objects are being deleted, counts wait for three seconds, and all else is written at once.
func TestCountsAreGathered(t *testing.T) {
	o := newOffice(t, testbuilders.Policy("p").Default("0s"))
	o.writes(0, []string{"p"}, nil)
	due := func(from, to int) {
		for i := from; i < to; i++ {
			o.upsert(testbuilders.Job(fmt.Sprint("j", i)).Complete(testbuilders.Now).Fact())
		}
	}
	due(0, many)
	o.writes(time.Second, []string{"p"}, nil) // These are few.
	due(many, many+1)
	o.writes(0, nil, nil)
	for range 2 {
		o.writes(time.Second, nil, nil)
	}
	o.writes(time.Second, []string{"p"}, nil) // Nothing else changed, so what waits is remembered.
	if got := o.policies["p"].Status.Due; got != many+1 {
		t.Errorf("wrote that %d are due", got)
	}

	due(many+1, many+2)
	o.writes(time.Second, nil, nil)
	o.policy(testbuilders.Policy("p").Default("0s").Generation(2).Obj())
	o.writes(time.Second, []string{"p"}, nil) // A new generation, and what has waited with it.
	if got := o.policies["p"].Status; got.Due != many+2 || got.ObservedGeneration != 2 {
		t.Errorf("wrote %+v", got)
	}
	o.writes(countsEvery, nil, nil)

	due(many+2, many+3)
	o.writes(time.Second, nil, nil)
	pod := testbuilders.Pod("held").Finalizer(batchv1.JobTrackingFinalizer).Succeeded(testbuilders.Now)
	o.upsert(pod.Fact()) // The text of the condition tells of it, which waits too.
	o.writes(time.Second, nil, nil)
	for i := range many + 3 {
		o.Tracker.Remove(facts.Compress(testbuilders.Job(fmt.Sprint("j", i)).Complete(testbuilders.Now).Fact()), o.clock.Now())
	}
	o.writes(time.Second, []string{"p"}, nil) // Little is left.
	if len(o.delayed) > 0 {
		t.Errorf("%v still wait", o.delayed)
	}
}

// TestOnlyCounts: whoever takes over must find a hold in the status, and people act on conditions.
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
		Ceilings: []gc.CeilingStatus{{Resource: "pods", Objects: 3, MaxObjects: 2, Over: 1}},
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

func TestStatusThatCannotBeWrittenIsTriedAgain(t *testing.T) {
	o := newOffice(t, testbuilders.Policy("p").Default("1h"))
	o.refuse = errors.New("etcd is away")
	for range 3 {
		if patches, _ := o.after(time.Second); len(patches) != 1 {
			t.Fatalf("%d patches", len(patches))
		}
	}
	o.refuse = apierrors.NewNotFound(schema.GroupResource{Resource: "cleanuppolicies"}, "p") // Its namespace goes, say.
	o.after(time.Second)
	if patches, _ := o.after(time.Second); len(patches) != 0 {
		t.Errorf("%d patches for a policy that is gone", len(patches))
	}
}

func TestNothingIsWrittenOverAPolicyThatIsNotUnderstood(t *testing.T) {
	o := newOffice(t, testbuilders.Policy("p").Annotated(gc.AnnotationUnreadable, "why"))
	o.writes(time.Second, nil, nil)
}

func TestWarnings(t *testing.T) {
	o := newOffice(t, testbuilders.Policy("p").Default("0s"))
	pod := func() *testbuilders.PodBuilder {
		return testbuilders.Pod("a").Finalizer(batchv1.JobTrackingFinalizer).Succeeded(testbuilders.Now)
	}
	o.upsert(pod().Fact())
	const held = "Warning Uncounted: Held, Uncounted: pods/a (the Job controller has not counted this Pod yet)"
	o.writes(0, []string{"p"}, nil) // It may pass.
	o.writes(warnAfter-1, nil, nil)
	o.writes(1, nil, []string{held})
	o.upsert(pod().Label("new", "state").Fact())
	o.writes(repeatAfter-1, nil, nil) // Once.
	o.upsert(pod().Fact())
	o.writes(1, nil, []string{held}) // And again while it stands.

	o.upsert(testbuilders.Pod("a").TTL("1h").Succeeded(o.clock.Now()).Fact())
	o.writes(time.Second, []string{"p"}, nil)
	o.upsert(pod().Fact())
	o.writes(time.Second, []string{"p"}, nil) // Another time, so it settles again.
	o.writes(warnAfter, nil, []string{held})
	o.Tracker.RemovePolicy(o.policies["p"], o.clock.Now())
	o.writes(time.Second, nil, nil)
	if n := len(o.correlator.warnings); n != 0 {
		t.Errorf("%d warnings of a policy that is gone are remembered", n)
	}
}

func TestWhatWaitsForAFinalizerIsToldOf(t *testing.T) {
	o := newOffice(t, testbuilders.Policy("p").Default("0s"))
	o.upsert(
		testbuilders.Job("a").Complete(testbuilders.Now).Finalizer("example.com/f").Terminating().Fact(),
		testbuilders.Pod("b").Finalizer(batchv1.JobTrackingFinalizer).Succeeded(testbuilders.Now).Fact(),
	)
	o.after(0)
	_, events := o.after(warnAfter)
	got := notes(events)
	if len(got) != 2 || !strings.HasPrefix(got[0], "Warning Uncounted: Held, Uncounted: pods/b") ||
		got[1] != `Warning Terminating: Being deleted, Terminating: jobs.batch/a (waits for finalizers ["example.com/f"])` {
		t.Errorf("got %q", got)
	}
}

func gone(policy, rule string, facts ...*lifecycle.Fact) []deletion.Gone {
	var out []deletion.Gone
	for _, f := range facts {
		out = append(out, deletion.Gone{Order: &deletion.Order{
			Fact: f, Policy: types.NamespacedName{Namespace: testbuilders.Home, Name: policy}, PolicyUID: testbuilders.UID(policy), Rule: rule,
		}})
	}
	return out
}

func TestDeletionsAreSummedUp(t *testing.T) {
	o := newOffice(t)
	job, pod := testbuilders.Job("a").Fact(), testbuilders.Pod("a").Fact()
	o.Gone(gone("p", "default", job))
	o.writes(0, nil, []string{"Normal Deleted: Deleted 1 jobs.batch by rule default"}) // The first at once.
	o.Gone(gone("p", "default", job, pod, job))
	o.Gone(gone("p", "a-rule", pod))
	o.Gone(nil)
	o.writes(sumFor-1, nil, nil)
	o.writes(1, nil, []string{"Normal Deleted: Deleted 1 pods by rule a-rule, 2 jobs.batch by rule default, 1 pods by rule default"})
	o.writes(sumFor, nil, nil)
	if len(o.correlator.sums) != 0 {
		t.Error("sums of policies that delete nothing are kept")
	}
	o.Gone(gone("p", "default", job))
	o.Gone(gone("q", "default", pod))
	_, events := o.after(time.Second)
	if got := notes(events); len(got) != 2 {
		t.Errorf("got %q", got)
	}
}

func TestEvent(t *testing.T) {
	long := strings.Repeat("é", noteMost)
	for name, c := range map[string]struct {
		policy, note, wantName, wantNote string
	}{
		"as a rule":                           {"p", "Deleted", "p.", "Deleted"},
		"a long name":                         {strings.Repeat("x", 253), "Deleted", strings.Repeat("x", 200) + ".", "Deleted"},
		"a long name, cut where none may end": {strings.Repeat("x", 198) + ".-" + strings.Repeat("x", 53), "Deleted", strings.Repeat("x", 198) + ".", "Deleted"},
		"a long note, cut between characters": {"p", long, "p.", strings.Repeat("é", (noteMost-3)/2) + "..."},
		"a note that just fits":               {"p", long[:noteMost], "p.", long[:noteMost]},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			e := event{
				subject: subject{types.NamespacedName{Namespace: testbuilders.Home, Name: c.policy}, "uid-p"},
				kind:    "Normal",
				reason:  "Deleted",
				note:    c.note,
			}
			if err := o.createEvent(context.Background(), e); err != nil {
				t.Fatal(err)
			}
			got := o.cluster.Actions()[0].(clienttesting.CreateAction).GetObject().(*eventsv1.Event)
			if want := fmt.Sprintf("%s%x", c.wantName, testbuilders.Now.UnixNano()); got.Name != want {
				t.Errorf("it is called %s, want %s", got.Name, want)
			}
			if got.Note != c.wantNote || len(got.Note) > noteMost || !utf8.ValidString(got.Note) {
				t.Errorf("it says %q", got.Note)
			}
			r := got.Regarding
			if got.Namespace != testbuilders.Home || got.Type != "Normal" || got.Reason != "Deleted" || got.Action != "Cleanup" ||
				got.ReportingController != "gc.winnow.dev/winnow" || got.ReportingInstance != "replica-1" || !got.EventTime.Time.Equal(testbuilders.Now) ||
				r.APIVersion != "gc.winnow.dev/v1alpha1" || r.Kind != "CleanupPolicy" || r.Namespace != testbuilders.Home || r.Name != c.policy || r.UID != "uid-p" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestBudget: statuses and events spend from one budget, and what it does not reach for is written later.
func TestBudget(t *testing.T) {
	o := newOffice(
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
		t.Errorf("wrote %d statuses beyond the budget", n-3)
	}
	o.Writer.budget = rate.NewLimiter(rate.Inf, 1)
	o.flush(ctx)
	if n := len(o.patches); n != 3+3 {
		t.Errorf("wrote %d statuses later, want 3", n-3)
	}
}

// TestTurns: while more waits than can be written at once, everybody has a turn, and cluster policies wait for nobody.
func TestTurns(t *testing.T) {
	o := newOffice(t)
	o.takes = flushEvery * 2 / 5
	for _, ns := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		p := testbuilders.Policy("of-" + ns).Default("1h").Obj()
		p.Namespace = ns
		o.Tracker.SetPolicy(p, testbuilders.Now)
	}
	o.Tracker.SetClusterPolicy(
		&gc.ClusterCleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: "everywhere", UID: "everywhere"}},
		testbuilders.Now,
	)
	if patches, _ := o.after(0); !slices.Equal(names(patches), []string{"everywhere", "everywhere", "of-g"}) {
		t.Errorf("wrote the status of %q, want the cluster policy first, and then the newest specs", names(patches))
	}
	for _, ok := o.Tracker.PopUrgent(); ok; _, ok = o.Tracker.PopUrgent() { // Nobody waits for any of them any more.
	}
	o.pending.Insert("", "g")
	for _, want := range [][]string{{"everywhere", "of-a", "of-b"}, {"everywhere", "of-c", "of-d"}, {"everywhere", "of-e", "of-f"}} {
		if patches, _ := o.after(0); !slices.Equal(names(patches), want) {
			t.Errorf("wrote the status of %q, want %q", names(patches), want)
		}
		o.pending.Insert("") // It changes all the time.
	}
	o.pending.Insert("a", "b")
	if patches, _ := o.after(0); !slices.Equal(names(patches), []string{"everywhere", "of-g", "of-a"}) {
		t.Errorf("wrote the status of %q, want that of the last one before another turn of the first", names(patches))
	}
}

func TestRunWritesAllThatIsKnownAtItsStart(t *testing.T) {
	o := newOffice(t, testbuilders.Policy("p").Default("1h"))
	o.Tracker.TakeDirty() // By the leader before, say.
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
