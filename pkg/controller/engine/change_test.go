// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
	"github.com/winnow-dev/winnow/pkg/controller/report"
)

func TestAnObjectIsTakenOnceItIsDue(t *testing.T) {
	w := newWorld(t, keep("1h", 1))
	w.upsert(job(0, "a"))
	w.takes()
	if next, ok := w.Next(); !ok || !next.Equal(w.now.Add(time.Hour)) {
		t.Fatalf("looks again at %v, %v", next, ok)
	}
	w.pass(time.Hour - 1)
	w.takes()
	w.pass(1)
	w.takes("a")
	o := w.orders["a"]
	if o.Policy.String() != "team-a/p" || o.PolicyUID != "uid-p" || o.Rule != "default" || o.Propagation != "Background" || o.Reread ||
		!o.Due.Equal(w.now) || !reflect.DeepEqual(o.Fact, facts.Compress(w.facts["a"]).Fact()) || !o.Until.Equal(w.now.Add(freshness.For)) {
		t.Errorf("got %+v", o)
	}
	w.takes() // It is under way.
}

// TestWhatChangesBeforeTake: every change that covers an object takes effect on what waits to be deleted already.
func TestWhatChangesBeforeTake(t *testing.T) {
	p := func() *testbuilders.PolicyBuilder {
		return testbuilders.Policy("p").Rules(testbuilders.Rule("r", "0s").Labelled("app", "train"))
	}
	due := func() *testbuilders.JobBuilder {
		return testbuilders.Job("a").Label("app", "train").Complete(testbuilders.Now.Add(-time.Hour))
	}
	for name, c := range map[string]struct {
		change func(*world)
		action policy.Action
		reason policy.Reason
	}{
		"the object is extended":      {func(w *world) { w.upsert(due().TTL("2h").Fact()) }, policy.Wait, policy.ReasonNotDue},
		"the object is kept":          {func(w *world) { w.upsert(due().TTL("never").Fact()) }, policy.Keep, policy.ReasonNever},
		"the object is kept until":    {func(w *world) { w.upsert(due().KeepUntil("2026-03-01T13:00:00Z").Fact()) }, policy.Wait, policy.ReasonNotDue},
		"its annotation is malformed": {func(w *world) { w.upsert(due().TTL("?").Fact()) }, policy.Hold, policy.ReasonInvalidAnnotation},
		"its label goes":              {func(w *world) { w.upsert(testbuilders.Job("a").Complete(testbuilders.Now).Fact()) }, policy.Ignore, policy.ReasonNoPolicy},
		"somebody deletes it":         {func(w *world) { w.upsert(due().Terminating().Fact()) }, policy.Await, policy.ReasonTerminating},
		"the policy is lengthened":    {func(w *world) { w.policy(testbuilders.Policy("p").Default("2h").Generation(2)) }, policy.Wait, policy.ReasonNotDue},
		"the policy is lengthened past the API, under its generation": {func(w *world) {
			w.policy(testbuilders.Policy("p").Default("2h"))
		}, policy.Wait, policy.ReasonNotDue},
		"the policy previews":                {func(w *world) { w.policy(p().Preview().Generation(2)) }, policy.Ignore, policy.ReasonNoPolicy},
		"the policy is made anew, longer":    {func(w *world) { w.policy(testbuilders.Policy("p").WithUID("uid-2").Default("2h")) }, policy.Wait, policy.ReasonNotDue},
		"another policy wants it kept":       {func(w *world) { w.policy(testbuilders.Policy("q").Default("never")) }, policy.Keep, policy.ReasonNever},
		"another policy cannot be read":      {func(w *world) { w.policy(testbuilders.Policy("q").Mode("Simulate")) }, policy.Hold, policy.ReasonPolicyUnreadable},
		"the policy cannot be read any more": {func(w *world) { w.policy(p().Annotations("x").Generation(2)) }, -1, ""},
		"the policy is not understood any more, though it says to be the same": {func(w *world) {
			w.policy(p().Annotated(gc.AnnotationUnreadable, "why"))
		}, -1, ""},
		"another policy is not understood": {func(w *world) {
			w.policy(testbuilders.Policy("q").Annotated(gc.AnnotationUnreadable, "why"))
		}, policy.Hold, policy.ReasonPolicyUnreadable},
		"a cluster policy is not understood, which says to select another namespace": {func(w *world) {
			q := everywhere(1, gc.Guardrails{})
			q.Spec.NamespaceSelector.MatchLabels = map[string]string{"team": "other"}
			metav1.SetMetaDataAnnotation(&q.ObjectMeta, gc.AnnotationUnreadable, "why")
			w.clusterPolicy(q)
		}, policy.Hold, policy.ReasonPolicyUnreadable},
		"the policy is deleted":      {func(w *world) { w.withoutPolicy(p()) }, -1, ""},
		"the namespace is protected": {func(w *world) { w.namespace(testbuilders.Home, gc.LabelProtected, "true") }, policy.Ignore, policy.ReasonNamespaceProtected},
		"the namespace is being deleted": {func(w *world) {
			m := testbuilders.Namespace(testbuilders.Home, w.next())
			m.DeletionTimestamp = &m.CreationTimestamp
			w.SetNamespace(m, w.now)
		}, policy.Ignore, policy.ReasonNamespaceTerminating},
		"the namespace is gone": {func(w *world) { w.RemoveNamespace(testbuilders.Namespace(testbuilders.Home, w.next()), w.now) }, policy.Ignore, policy.ReasonNamespaceUnknown},
		"the object is gone":    {func(w *world) { w.removed("a") }, -1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, p())
			w.upsert(due().Fact())
			w.decided("a", policy.Delete, policy.ReasonExpired)
			c.change(w)
			if c.action >= 0 {
				w.decided("a", c.action, c.reason)
			} else {
				w.forgotten()
			}
			w.takes()
			if c.action != policy.Hold && w.Busy(w.now) {
				t.Error("something is to be done, it seems")
			}
		})
	}
}

// TestWhatIsNotUnderstoodIsToldWhereItHolds: what else holds for its objects goes on once all is understood.
func TestWhatIsNotUnderstoodIsToldWhereItHolds(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("1h"))
	w.policy(testbuilders.Policy("q").Annotated(gc.AnnotationUnreadable, `unknown field "spec.x"`))
	w.upsert(testbuilders.Job("a").Complete(w.now.Add(-time.Hour)).Fact())
	w.takes()
	w.holds("p", report.Group{Reason: policy.ReasonPolicyUnreadable, Detail: `policy team-a/q: unknown field "spec.x"`, Object: "jobs.batch/a", Count: 1})
	if why := w.report("q").Unreadable; why == nil || why.Error() != `unknown field "spec.x"` {
		t.Errorf("q cannot be read: %v", why)
	}
	w.policy(testbuilders.Policy("q").Default("30m"))
	w.takes("a")
}

func TestALengthenedPolicySparesWhatIsQueued(t *testing.T) {
	w := newWorld(t, keep("1h", 1))
	for i := range 1000 {
		w.upsert(job(2*time.Hour, fmt.Sprint(i)))
	}
	o, ok := w.Take(w.now)
	if !ok {
		t.Fatal("nothing to take")
	}
	w.policy(keep("3h", 2))
	w.agree()
	w.takes()
	w.Done(o, deletion.Result{Outcome: deletion.Accepted}, w.now)
	w.counts("p", counts{candidates: 1000, due: 1}) // The one that is being deleted.
	w.policy(keep("1h", 3))
	w.agree()
	for range 999 { // All but the one that is deleted already.
		if _, ok := w.Take(w.now); !ok {
			t.Fatal("the shortened policy does not take effect")
		}
	}
	w.takes()
}

func TestAPolicyThatIsShortenedTakesEffectAtOnce(t *testing.T) {
	w := newWorld(t, keep("1d", 1))
	w.upsert(jobs(2*time.Hour, "a", "b")...)
	w.takes()
	w.policy(keep("1h", 2))
	w.takes("a", "b")
}

func TestStatusAloneChangesNoDecision(t *testing.T) {
	w := newWorld(t, keep("1h", 1))
	before := w.report("p").Stored
	ps := w.policyState(before.NamespacedName())
	compiled := ps.compiled
	w.policy(keep("1h", 1).Status(gc.CleanupPolicyStatus{Candidates: 5}))
	if w.report("p").Stored == before {
		t.Error("the stored policy is not the newest")
	}
	if ps.compiled != compiled {
		t.Error("the policy was compiled again, as if its spec had changed")
	}
	w.upsert(job(time.Minute, "a"))
	w.decided("a", policy.Wait, policy.ReasonNotDue)
}

// TestTheClockOfTakeMayBeBehind: whoever told of an object read the clock a moment after whoever takes it.
func TestTheClockOfTakeMayBeBehind(t *testing.T) {
	w := newWorld(t, keep("1h", 1))
	before := w.now
	w.now = w.now.Add(time.Millisecond)
	w.upsert(testbuilders.Job("a").Complete(before.Add(time.Millisecond - time.Hour)).Fact())
	w.decided("a", policy.Delete, policy.ReasonExpired)
	if o, ok := w.Take(before); ok {
		t.Fatalf("took %s before its time", o.Fact.Name)
	}
	if next, ok := w.Next(); !ok || !next.Equal(w.now) {
		t.Fatalf("looks again at %v, %v", next, ok)
	}
	w.Expire(w.now)
	w.takes("a")
}

func TestAnOlderStateIsPassedOver(t *testing.T) {
	w := newWorld(t, keep("0s", 1))
	w.upsert(testbuilders.Job("a").Complete(w.now).TTL("2h").Fact())
	old := job(time.Hour, "a")
	old.ResourceVersion = w.version - 1
	w.Upsert(facts.Compress(old), w.now)
	w.decided("a", policy.Wait, policy.ReasonNotDue)
	w.takes()
}

func TestNamespaces(t *testing.T) {
	for name, c := range map[string]struct {
		namespace string
		labels    []string
		terminate bool
		taken     bool
	}{
		"an ordinary one":             {namespace: "team-b", taken: true},
		"protected":                   {namespace: "team-b", labels: []string{gc.LabelProtected, "true"}},
		"not protected, but labelled": {namespace: "team-b", labels: []string{gc.LabelProtected, "false"}, taken: true},
		"protected by flag":           {namespace: "winnow-system"},
		"kube-system":                 {namespace: "kube-system"},
		"kube-public":                 {namespace: "kube-public"},
		"kube-node-lease":             {namespace: "kube-node-lease"},
		"protected, whatever its label says": {
			namespace: "kube-system", labels: []string{gc.LabelProtected, "false"}},
		"being deleted": {namespace: "team-b", terminate: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, testbuilders.Policy("p").In(c.namespace).Default("0s"))
			w.upsert(testbuilders.Job("a").In(c.namespace).Complete(w.now).Fact())
			w.decided("a", policy.Ignore, policy.ReasonNamespaceUnknown)
			m := testbuilders.Namespace(c.namespace, w.next(), c.labels...)
			if c.terminate {
				m.DeletionTimestamp = &m.CreationTimestamp
			}
			w.SetNamespace(m, w.now)
			w.listed()
			w.namespaces[types.NamespacedName{Name: c.namespace}] = freshness.Revision{UID: m.UID, Version: m.ResourceVersion}
			w.agree()
			if c.taken {
				w.takes("a")
			} else {
				w.takes()
			}
		})
	}
}

func TestANamespaceThatIsMadeAnew(t *testing.T) {
	w := newWorld(t, keep("0s", 1))
	w.RemoveNamespace(testbuilders.Namespace(testbuilders.Home, w.next()), w.now)
	w.upsert(job(0, "a"))
	w.takes()
	w.namespace(testbuilders.Home)
	w.takes("a")
}

func TestReplaceNamespaces(t *testing.T) {
	w := newWorld(t, keep("0s", 1), testbuilders.Policy("q").In("team-b").Default("0s"))
	w.namespace("team-b")
	w.upsert(job(0, "a"), testbuilders.Job("b").In("team-b").Complete(w.now).Fact())
	protected := testbuilders.Namespace(testbuilders.Home, w.next(), gc.LabelProtected, "true")
	w.ReplaceNamespaces([]*metav1.PartialObjectMetadata{protected}, w.next(), w.now)
	w.decided("a", policy.Ignore, policy.ReasonNamespaceProtected)
	w.decided("b", policy.Ignore, policy.ReasonNamespaceUnknown)
}

func TestForgetsNamespacesOfWhichNothingIsKnown(t *testing.T) {
	w := newWorld(t)
	w.namespace("team-b")
	p := testbuilders.Policy("q").In("team-b").Default("0s")
	w.policy(p)
	w.upsert(testbuilders.Job("b").In("team-b").Complete(w.now).Fact())
	w.removed("b")
	w.RemoveNamespace(testbuilders.Namespace("team-b", w.next()), w.now)
	w.withoutPolicy(p)
	if len(w.Engine.namespaces) != 1 {
		t.Errorf("%d namespaces are left, want that of the test alone", len(w.Engine.namespaces))
	}
	if w.Reports("team-b") != nil {
		t.Error("a namespace that is gone has reports")
	}
}

func TestPoliciesFromANewList(t *testing.T) {
	w := newWorld(t, keep("1h", 1), testbuilders.Policy("q").Default("never"))
	w.upsert(job(2*time.Hour, "a"))
	w.decided("a", policy.Keep, policy.ReasonNever)
	list := []*gc.CleanupPolicy{keep("1h", 1).Obj(), testbuilders.Policy("r").Default("30m").Obj()}
	w.ReplacePolicies(list, w.next(), w.now)
	w.decided("a", policy.Delete, policy.ReasonExpired)
	if got := len(w.Reports(testbuilders.Home)); got != 2 {
		t.Errorf("%d reports, want 2", got)
	}
	// A list may be older than what was known: then that is what holds, until a reading says otherwise.
	w.ReplacePolicies([]*gc.CleanupPolicy{keep("3h", 0).Obj()}, "1", w.now)
	w.decided("a", policy.Wait, policy.ReasonNotDue)
}

func TestPolicyNamespaces(t *testing.T) {
	w := newWorld(t, keep("1h", 1))
	w.namespace("team-b")
	if got := w.PolicyNamespaces(); len(got) != 2 || got[0] != "" || got[1] != testbuilders.Home {
		t.Errorf("got %q", got)
	}
}

var _ lifecycle.Owners = &Engine{}

// TestDecisionOfWhatWaits: whoever asks why is told what is, not what will be.
func TestDecisionOfWhatWaits(t *testing.T) {
	w := newWorld(t, keep("1h", 1))
	w.upsert(job(0, "a"), job(time.Hour, "b"))
	for name, want := range map[string]policy.Decision{
		"a": {Action: policy.Wait, Reason: policy.ReasonNotDue, At: testbuilders.Now.Add(time.Hour)},
		"b": {Action: policy.Delete, Reason: policy.ReasonExpired, At: testbuilders.Now},
	} {
		if _, got := w.Decision(w.facts[name].UID); got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

// TestASuspendedPolicy: what it would delete is held, and comes due anew when it goes on; other policies delete.
func TestASuspendedPolicy(t *testing.T) {
	p := func(generation int64, suspend bool) *testbuilders.PolicyBuilder {
		b := testbuilders.Policy("p").Rules(testbuilders.Rule("r", "10m").Labelled("of", "p")).Generation(generation)
		if suspend {
			b = b.Suspended()
		}
		return b
	}
	w := newWorld(t, p(1, true), testbuilders.Policy("q").Rules(testbuilders.Rule("r", "10m").Labelled("of", "q")))
	w.config.HoldAbove = 2
	for _, of := range []string{"p", "q"} {
		for _, name := range names(of+"-", 3) {
			w.upsert(testbuilders.Job(name).Label("of", of).Complete(w.now).Fact())
		}
	}
	w.pass(10 * time.Minute)
	w.decided("p-0", policy.Hold, policy.ReasonSuspended)
	w.takes(names("q-", 3)...)
	if r := w.report("p"); !r.Suspend || r.SuspendedBy != "" || r.Due != 3 || r.Held != 3 {
		t.Errorf("reported as %+v", r)
	}
	w.policy(p(2, false))
	w.takes()
	w.waits("p", 3)
	w.policy(p(3, true))
	w.decided("p-0", policy.Hold, policy.ReasonSuspended)
	w.waits("p", 3)
}
