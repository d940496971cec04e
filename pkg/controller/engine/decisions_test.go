// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

func TestTakeReturnsDueObjects(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 3))
	w.upsert(job(0, "a"))
	w.takes()
	if next, ok := w.Next(); !ok || !next.Equal(w.now.Add(time.Hour)) {
		t.Fatalf("the next time is %v, %v", next, ok)
	}
	w.pass(time.Hour - 1)
	w.takes()
	w.pass(1)
	w.takes("a")
	o := w.orders["a"]
	if o.Policy.String() != "team-a/p" || o.PolicyUID != "uid-p" || o.PolicyGeneration != 3 || o.Rule != "default" ||
		o.Propagation != "Background" || o.Reread ||
		!o.Due.Equal(w.now) || !reflect.DeepEqual(o.Fact, facts.Compress(w.facts["a"]).Fact()) || !o.Until.Equal(w.now.Add(freshness.For)) {
		t.Errorf("got %+v", o)
	}
	w.takes() // The order is in flight.
}

// TestChangesBeforeTake: every change that keeps an object also affects objects that are already queued.
func TestChangesBeforeTake(t *testing.T) {
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
		"its label is removed":        {func(w *world) { w.upsert(testbuilders.Job("a").Complete(testbuilders.Now).Fact()) }, policy.Ignore, policy.ReasonNoPolicy},
		"somebody deletes it":         {func(w *world) { w.upsert(due().Terminating().Fact()) }, policy.Await, policy.ReasonTerminating},
		"the policy is lengthened":    {func(w *world) { w.policy(testbuilders.Policy("p").Default("2h").Generation(2)) }, policy.Wait, policy.ReasonNotDue},
		"the policy is lengthened past the API, under its generation": {func(w *world) {
			w.policy(testbuilders.Policy("p").Default("2h"))
		}, policy.Wait, policy.ReasonNotDue},
		"the policy previews":                {func(w *world) { w.policy(p().Preview().Generation(2)) }, policy.Ignore, policy.ReasonNoPolicy},
		"the policy is recreated, longer":    {func(w *world) { w.policy(testbuilders.Policy("p").WithUID("uid-2").Default("2h")) }, policy.Wait, policy.ReasonNotDue},
		"another policy wants it kept":       {func(w *world) { w.policy(testbuilders.Policy("q").Default("never")) }, policy.Keep, policy.ReasonNever},
		"another policy cannot be read":      {func(w *world) { w.policy(testbuilders.Policy("q").Mode("Simulate")) }, policy.Hold, policy.ReasonPolicyUnreadable},
		"the policy cannot be read any more": {func(w *world) { w.policy(p().Annotations("x").Generation(2)) }, -1, ""},
		"the policy is not understood any more, in the same generation": {func(w *world) {
			w.policy(p().Annotated(gc.AnnotationUnreadable, "why"))
		}, -1, ""},
		"another policy is not understood": {func(w *world) {
			w.policy(testbuilders.Policy("q").Annotated(gc.AnnotationUnreadable, "why"))
		}, policy.Hold, policy.ReasonPolicyUnreadable},
		"a cluster policy for other namespaces is not understood": {func(w *world) {
			q := guardrailPolicy(1, gc.Guardrails{})
			q.Spec.NamespaceSelector.MatchLabels = map[string]string{"team": "other"}
			metav1.SetMetaDataAnnotation(&q.ObjectMeta, gc.AnnotationUnreadable, "why")
			w.clusterPolicy(q)
		}, policy.Hold, policy.ReasonPolicyUnreadable},
		"the policy is deleted":      {func(w *world) { w.removePolicy(p()) }, -1, ""},
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
			if c.action != policy.Hold && w.NeedsRead(w.now) {
				t.Error("a read is needed with nothing to do")
			}
		})
	}
}

// TestUnreadablePoliciesAreReported: an unreadable policy holds the objects of its namespace, and is named in the reports of the other
// policies. The objects are deleted once it can be read.
func TestUnreadablePoliciesAreReported(t *testing.T) {
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

func TestALengthenedPolicyKeepsQueuedObjects(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	for i := range 1000 {
		w.upsert(job(2*time.Hour, fmt.Sprint(i)))
	}
	o, ok := w.Take(w.now)
	if !ok {
		t.Fatal("nothing to take")
	}
	w.policy(ttlPolicy("3h", 2))
	w.confirmFresh()
	w.takes()
	w.Done(o, deletion.Result{Outcome: deletion.Accepted}, w.now)
	w.counts("p", counts{candidates: 1000, due: 1}) // This object is being deleted.
	w.policy(ttlPolicy("1h", 3))
	w.confirmFresh()
	for range 999 { // All except the object that is being deleted.
		if _, ok := w.Take(w.now); !ok {
			t.Fatal("the shortened policy does not take effect")
		}
	}
	w.takes()
}

func TestAShortenedPolicyTakesEffectAtOnce(t *testing.T) {
	w := newWorld(t, ttlPolicy("1d", 1))
	w.upsert(jobs(2*time.Hour, "a", "b")...)
	w.takes()
	w.policy(ttlPolicy("1h", 2))
	w.takes("a", "b")
}

func TestStatusAloneChangesNoDecision(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	before := w.report("p").Stored
	ps := w.PolicyState(before.NamespacedName())
	compiled := ps.Compiled
	w.policy(ttlPolicy("1h", 1).Status(gc.CleanupPolicyStatus{Candidates: 5}))
	if w.report("p").Stored == before {
		t.Error("the stored policy is not the newest")
	}
	if ps.Compiled != compiled {
		t.Error("the policy was compiled again, as if its spec had changed")
	}
	w.upsert(job(time.Minute, "a"))
	w.decided("a", policy.Wait, policy.ReasonNotDue)
}

// TestTheClockOfTakeMayBeBehind: Take may be called with an earlier time than the last event.
func TestTheClockOfTakeMayBeBehind(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	before := w.now
	w.now = w.now.Add(time.Millisecond)
	w.upsert(testbuilders.Job("a").Complete(before.Add(time.Millisecond - time.Hour)).Fact())
	w.decided("a", policy.Delete, policy.ReasonExpired)
	if o, ok := w.Take(before); ok {
		t.Fatalf("took %s before its time", o.Fact.Name)
	}
	if next, ok := w.Next(); !ok || !next.Equal(w.now) {
		t.Fatalf("the next time is %v, %v", next, ok)
	}
	w.Expire(w.now)
	w.takes("a")
}

func TestAnOlderVersionIsIgnored(t *testing.T) {
	w := newWorld(t, ttlPolicy("0s", 1))
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
			w.listCovered()
			w.namespaces[types.NamespacedName{Name: c.namespace}] = freshness.Revision{UID: m.UID, Version: m.ResourceVersion}
			w.confirmFresh()
			if c.taken {
				w.takes("a")
			} else {
				w.takes()
			}
		})
	}
}

func TestARecreatedNamespace(t *testing.T) {
	w := newWorld(t, ttlPolicy("0s", 1))
	w.RemoveNamespace(testbuilders.Namespace(testbuilders.Home, w.next()), w.now)
	w.upsert(job(0, "a"))
	w.takes()
	w.namespace(testbuilders.Home)
	w.takes("a")
}

func TestReplaceNamespaces(t *testing.T) {
	w := newWorld(t, ttlPolicy("0s", 1), testbuilders.Policy("q").In("team-b").Default("0s"))
	w.namespace("team-b")
	w.upsert(job(0, "a"), testbuilders.Job("b").In("team-b").Complete(w.now).Fact())
	protected := testbuilders.Namespace(testbuilders.Home, w.next(), gc.LabelProtected, "true")
	w.ReplaceNamespaces([]*metav1.PartialObjectMetadata{protected}, w.next(), w.now)
	w.decided("a", policy.Ignore, policy.ReasonNamespaceProtected)
	w.decided("b", policy.Ignore, policy.ReasonNamespaceUnknown)
}

func TestUnusedNamespacesAreForgotten(t *testing.T) {
	w := newWorld(t)
	w.namespace("team-b")
	p := testbuilders.Policy("q").In("team-b").Default("0s")
	w.policy(p)
	w.upsert(testbuilders.Job("b").In("team-b").Complete(w.now).Fact())
	w.removed("b")
	w.RemoveNamespace(testbuilders.Namespace("team-b", w.next()), w.now)
	w.removePolicy(p)
	if len(w.Engine.Namespaces) != 1 {
		t.Errorf("%d namespaces are left, want only the namespace of the test", len(w.Engine.Namespaces))
	}
	if w.Reports("team-b") != nil {
		t.Error("a removed namespace has reports")
	}
}

func TestReplacePolicies(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1), testbuilders.Policy("q").Default("never"))
	w.upsert(job(2*time.Hour, "a"))
	w.decided("a", policy.Keep, policy.ReasonNever)
	list := []*gc.CleanupPolicy{ttlPolicy("1h", 1).Obj(), testbuilders.Policy("r").Default("30m").Obj()}
	w.ReplacePolicies(list, w.next(), w.now)
	w.decided("a", policy.Delete, policy.ReasonExpired)
	if got := len(w.Reports(testbuilders.Home)); got != 2 {
		t.Errorf("%d reports, want 2", got)
	}
	w.ReplacePolicies([]*gc.CleanupPolicy{ttlPolicy("3h", 0).Obj()}, "1", w.now) // It is older than memory.
	w.decided("a", policy.Delete, policy.ReasonExpired)
}

func TestPolicyNamespaces(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	w.namespace("team-b")
	if got := w.PolicyNamespaces(); len(got) != 2 || got[0] != "" || got[1] != testbuilders.Home {
		t.Errorf("got %q", got)
	}
}

var _ lifecycle.Owners = &engine.Engine{}

// TestDecision: Decision returns the present decision, not the decision after a timer.
func TestDecision(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
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

// TestASuspendedPolicy: the objects that a suspended policy would delete are held, and are assessed when it resumes. Other policies delete.
func TestASuspendedPolicy(t *testing.T) {
	p := func(generation int64, suspend bool) *testbuilders.PolicyBuilder {
		b := testbuilders.Policy("p").Rules(testbuilders.Rule("r", "10m").Labelled("of", "p")).Generation(generation)
		if suspend {
			b = b.Suspended()
		}
		return b
	}
	w := newWorld(t, p(1, true), testbuilders.Policy("q").Rules(testbuilders.Rule("r", "10m").Labelled("of", "q")))
	w.Config.HoldAbove = 2
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
	w.oneHold("p", 3)
	w.policy(p(3, true))
	w.decided("p-0", policy.Hold, policy.ReasonSuspended)
	w.oneHold("p", 3)
}

// TestThePolicyThatStopsIsNamed: if several policies stop deletions, the first by name is reported.
func TestThePolicyThatStopsIsNamed(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("0s"), testbuilders.Policy("x").Default("1y"), testbuilders.Policy("y").Default("1y"))
	w.upsert(job(time.Hour, "a"))
	if got := w.Explain(w.Records.Get("uid-a")).Detail; got[:len("policy team-a/x:")] != "policy team-a/x:" {
		t.Errorf("a is held with detail %q", got)
	}
	w = newWorld(t, testbuilders.Policy("p").Default("0s"))
	for _, name := range []string{"b", "a", "c"} {
		p := guardrailPolicy(1, gc.Guardrails{SuspendAll: true})
		p.Name, p.UID = name, testbuilders.UID(name)
		w.clusterPolicy(p)
	}
	w.upsert(job(time.Hour, "a"))
	if got := w.Explain(w.Records.Get("uid-a")).Detail; got != "cluster policy a stops all deletions in this namespace" {
		t.Errorf("a is held with detail %q", got)
	}
}

// TestTheNextTimeIsTheEarliest: a later time of a Preview does not hide an earlier one.
func TestTheNextTimeIsTheEarliest(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("1h"), testbuilders.Policy("q").Default("2h").Preview())
	w.upsert(job(0, "a"))
	if next, ok := w.Next(); !ok || !next.Equal(testbuilders.Now.Add(time.Hour)) {
		t.Errorf("the next time is %s, %v", next, ok)
	}
	w.pass(time.Hour)
	w.takes("a")
}
