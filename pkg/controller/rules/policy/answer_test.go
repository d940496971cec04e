// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

var (
	now      = testbuilders.Now
	finished = now.Add(-time.Hour) // when all objects of the tables below finished
)

const (
	ignore = policy.Ignore
	keep   = policy.Keep
	wait   = policy.Wait
	hold   = policy.Hold
	remove = policy.Delete
	await  = policy.Await
)

// answer is the expected answer for an object: the action, the reason, who decides, and when it is due, counted from its finish; empty if
// it is never due, or if that is not known.
type answer struct {
	action policy.Action
	reason policy.Reason
	by     string // policy/rule
	after  string
}

// decide decides with policies of the namespace only.
func decide(f *lifecycle.Fact, owner lifecycle.OwnerState, enforcing []*policy.Policy) (policy.Resolution, policy.Decision) {
	var matches policy.Matches
	matches.Ask(f, enforcing, nil, nil, nil)
	effective := policy.Resolve(policy.Object{Fact: f, Owner: ownership(owner)}, matches.Enforced)
	return effective.Decide(policy.Limits{Bounds: &policy.NoBounds}, now)
}

// ownership returns the state of a controller. If it has finished, it finished long ago.
func ownership(state lifecycle.OwnerState) lifecycle.Ownership {
	out := lifecycle.Ownership{State: state}
	switch state {
	case lifecycle.OwnerFinished:
		out.FinishedAt = now.AddDate(-20, 0, 0)
	case lifecycle.OwnerInDoubt:
		out.Detail = "Job/j is in doubt"
	case lifecycle.OwnerUnknown:
		out.Detail = "nothing says whether Job/j still needs it"
	case lifecycle.OwnerNone, lifecycle.OwnerRunning, lifecycle.OwnerAbsent:
	}
	return out
}

// decideAnswer decides as the engine does: with the enforcing policies, by name.
func decideAnswer(
	t *testing.T,
	f *lifecycle.Fact,
	owner lifecycle.OwnerState,
	policies []*testbuilders.PolicyBuilder,
) (answer, policy.Resolution, policy.Decision) {
	t.Helper()
	var enforcing []*policy.Policy
	for _, b := range policies {
		if p := compiled(t, b); !p.Preview {
			enforcing = append(enforcing, p)
		}
	}
	r, d := decide(f, owner, enforcing)
	out := answer{action: d.Action, reason: d.Reason}
	if r.Policy != nil {
		out.by = r.Policy.Name + "/" + r.RuleName()
	}
	if !d.At.IsZero() {
		out.after = d.At.Sub(f.FinishedAt).String()
	}
	return out, r, d
}

func policies(all ...*testbuilders.PolicyBuilder) []*testbuilders.PolicyBuilder { return all }

// job and pod return objects that finished an hour ago.
func job(name string) *testbuilders.JobBuilder { return testbuilders.Job(name).Complete(finished) }
func pod(name string) *testbuilders.PodBuilder { return testbuilders.Pod(name).Succeeded(finished) }

func TestWhichAnswerHolds(t *testing.T) {
	expired := func(by, after string) answer { return answer{remove, policy.ReasonExpired, by, after} }
	notDue := func(by, after string) answer { return answer{wait, policy.ReasonNotDue, by, after} }
	nothing := answer{action: ignore, reason: policy.ReasonNoPolicy}
	failedJob := testbuilders.Job("j").Failed(finished).Fact()

	for name, c := range map[string]struct {
		fact     *lifecycle.Fact
		policies []*testbuilders.PolicyBuilder
		want     answer
	}{
		// 1. No policy matches it: nothing happens, whatever its annotations say.
		"1: no policy": {job("j").Fact(), nil, nothing},
		"1: no policy, whatever its annotations say": {
			job("j").TTL("0s").KeepUntil("nonsense").Fact(), nil, nothing},
		"1: no policy, whatever its native TTL says": {job("j").NativeTTL(0).Fact(), nil, nothing},
		"1: an empty policy does nothing":            {job("j").Fact(), policies(testbuilders.Policy("p")), nothing},
		"1: a policy for other resources": {
			job("j").Fact(), policies(testbuilders.Policy("p").Rules(testbuilders.Rule("r", "0s").For("pods"))), nothing},
		"1: a policy for other labels": {
			job("j").Label("app", "serve").Fact(), policies(testbuilders.Policy("p").Rules(testbuilders.Rule("r", "0s").Labelled("app", "train"))), nothing},
		"1: a policy for another outcome": {
			job("j").Fact(), policies(testbuilders.Policy("p").Rules(testbuilders.Rule("r", "0s").Outcome(gc.OutcomeFailed))), nothing},

		// 2. In one policy the first rule that matches decides; the trigger does not matter for matching; then the defaults.
		"2: the first rule that matches, not the earliest": {
			job("j").Fact(), policies(testbuilders.Policy("p").Rules(testbuilders.Rule("first", "2h"), testbuilders.Rule("second", "0s"))), notDue("p/first", "2h0m0s")},
		"2: nor the latest": {
			job("j").Fact(), policies(testbuilders.Policy("p").Rules(testbuilders.Rule("first", "0s"), testbuilders.Rule("second", "never"))), expired("p/first", "0s")},
		"2: a rule of other resources is passed over": {
			job("j").Fact(), policies(testbuilders.Policy("p").Rules(testbuilders.Rule("pods", "2h").For("pods"), testbuilders.Rule("jobs", "30m").For("jobs.batch"))),
			expired("p/jobs", "30m0s")},
		"2: a rule of no resources is for Jobs":    {job("j").Fact(), policies(testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1m"))), expired("p/r", "1m0s")},
		"2: and for Pods":                          {pod("j").Fact(), policies(testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1m"))), expired("p/r", "1m0s")},
		"2: a rule of other labels is passed over": {job("j").Label("app", "serve").Fact(), policies(testbuilders.Policy("p").Default("1m").Rules(testbuilders.Rule("r", "0s").Labelled("app", "train"))), expired("p/default", "1m0s")},
		"2: a rule of the label decides":           {job("j").Label("app", "train").Fact(), policies(testbuilders.Policy("p").Default("1m").Rules(testbuilders.Rule("r", "0s").Labelled("app", "train"))), expired("p/r", "0s")},
		"2: a rule of the other outcome is passed over": {
			failedJob, policies(testbuilders.Policy("p").Default("0s").Rules(testbuilders.Rule("good", "1m").Outcome(gc.OutcomeSucceeded), testbuilders.Rule("bad", "7d").Outcome(gc.OutcomeFailed))),
			notDue("p/bad", "168h0m0s")},
		"2: a rule inherits nothing from the defaults": {
			job("j").Fact(), policies(testbuilders.Policy("p").Default("0s").Rules(testbuilders.Rule("r", "never"))), answer{keep, policy.ReasonNever, "p/r", ""}},
		"2: what no rule matches gets the defaults": {
			pod("j").Fact(), policies(testbuilders.Policy("p").Default("30m").Rules(testbuilders.Rule("r", "never").For("jobs.batch"))), expired("p/default", "30m0s")},
		"2: without defaults it gets nothing": {
			pod("j").Fact(), policies(testbuilders.Policy("p").Rules(testbuilders.Rule("r", "0s").For("jobs.batch"))), nothing},
		"2: a running Job is matched by the rule that will decide": {
			testbuilders.Job("j").Fact(), policies(testbuilders.Policy("p").Default("0s").Rules(testbuilders.Rule("r", "1h"))), answer{ignore, policy.ReasonNotFinished, "p/r", ""}},
		"2: a rule with an outcome matches until that is known": {
			testbuilders.Job("j").Fact(), policies(testbuilders.Policy("p").Default("0s").Rules(testbuilders.Rule("r", "1h").Outcome(gc.OutcomeFailed))),
			answer{ignore, policy.ReasonNotFinished, "p/r", ""}},
		"2: and not any more when it is another": {
			job("j").Fact(), policies(testbuilders.Policy("p").Default("0s").Rules(testbuilders.Rule("r", "1h").Outcome(gc.OutcomeFailed))), expired("p/default", "0s")},

		// The TTL counts from the finish.
		"due to the second":   {job("j").Fact(), policies(testbuilders.Policy("p").Default("1h")), expired("p/default", "1h0m0s")},
		"not a second before": {job("j").Fact(), policies(testbuilders.Policy("p").Default("1h1s")), notDue("p/default", "1h0m1s")},
		"never":               {job("j").Fact(), policies(testbuilders.Policy("p").Default("never")), answer{keep, policy.ReasonNever, "p/default", ""}},
		"never is not due, whatever else is wrong": {
			testbuilders.Job("j").Complete(time.Time{}).TTL("x").Fact(), policies(testbuilders.Policy("p").Default("never")), answer{keep, policy.ReasonNever, "p/default", ""}},

		// 4. Several policies match: the latest answer wins.
		"4: the latest of two":       {job("j").Fact(), policies(testbuilders.Policy("a").Default("10m"), testbuilders.Policy("b").Default("30m")), expired("b/default", "30m0s")},
		"4: in whatever order":       {job("j").Fact(), policies(testbuilders.Policy("a").Default("30m"), testbuilders.Policy("b").Default("10m")), expired("a/default", "30m0s")},
		"4: never is latest":         {job("j").Fact(), policies(testbuilders.Policy("a").Default("never"), testbuilders.Policy("b").Default("3650d")), answer{keep, policy.ReasonNever, "a/default", ""}},
		"4: of equal ones the first": {job("j").Fact(), policies(testbuilders.Policy("a").Default("60m"), testbuilders.Policy("b").Default("1h")), expired("a/default", "1h0m0s")},
		"4: one that does not match does not count": {
			job("j").Fact(), policies(testbuilders.Policy("a").Rules(testbuilders.Rule("r", "never").For("pods")), testbuilders.Policy("b").Default("0s")), expired("b/default", "0s")},
		"4: all must agree": {
			job("j").Fact(), policies(testbuilders.Policy("a").Default("0s"), testbuilders.Policy("b").Default("0s"), testbuilders.Policy("c").Default("2h")), notDue("c/default", "2h0m0s")},

		// 6. A Preview policy does not count and shuts out no default.
		"6: a preview alone": {job("j").Fact(), policies(testbuilders.Policy("a").Preview().Default("0s")), nothing},
		"6: a preview does not lengthen": {
			job("j").Fact(), policies(testbuilders.Policy("a").Preview().Default("never"), testbuilders.Policy("b").Default("0s")), expired("b/default", "0s")},
		"6: nor does it shut out a default": {
			job("j").Fact(), policies(testbuilders.Policy("a").Preview().Rules(testbuilders.Rule("r", "never")), testbuilders.Policy("b").Default("0s")), expired("b/default", "0s")},

		// 7. A native TTL replaces the answer, if a policy matches.
		"7: a shorter native TTL": {job("j").NativeTTL(60).Fact(), policies(testbuilders.Policy("p").Default("1d")), expired("p/default", "1m0s")},
		"7: a longer native TTL":  {job("j").NativeTTL(7200).Fact(), policies(testbuilders.Policy("p").Default("0s")), notDue("p/default", "2h0m0s")},
		"7: it replaces never":    {job("j").NativeTTL(0).Fact(), policies(testbuilders.Policy("p").Default("never")), expired("p/default", "0s")},
		"7: it replaces the latest of several": {
			job("j").NativeTTL(60).Fact(), policies(testbuilders.Policy("a").Default("1h"), testbuilders.Policy("b").Default("never")), expired("b/default", "1m0s")},

		// 8. The annotations adjust last, see TestAnnotations.
		"8: the annotation lengthens a native TTL": {job("j").NativeTTL(60).TTL("2h").Fact(), policies(testbuilders.Policy("p").Default("0s")), notDue("p/default", "2h0m0s")},
		"8: of several policies the strictest annotationTTL holds": {
			job("j").TTL("0s").Fact(), policies(testbuilders.Policy("a").Default("30m").Annotations(gc.AnnotationAny), testbuilders.Policy("b").Default("2h")), notDue("b/default", "2h0m0s")},
		"8: Ignore is the strictest": {
			job("j").TTL("never").Fact(),
			policies(testbuilders.Policy("a").Default("30m").Annotations(gc.AnnotationIgnore), testbuilders.Policy("b").Default("1m").Annotations(gc.AnnotationAny)), expired("a/default", "30m0s")},
		"8: also when another policy decides": {
			job("j").TTL("never").Fact(),
			policies(testbuilders.Policy("a").Default("1m").Annotations(gc.AnnotationIgnore), testbuilders.Policy("b").Default("30m").Annotations(gc.AnnotationAny)), expired("b/default", "30m0s")},
		"8: a policy that does not match is not asked": {
			job("j").TTL("never").Fact(),
			policies(testbuilders.Policy("a").Rules(testbuilders.Rule("r", "0s").For("pods")).Annotations(gc.AnnotationIgnore), testbuilders.Policy("b").Default("1m").Annotations(gc.AnnotationAny)),
			answer{keep, policy.ReasonNever, "b/default", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _, _ := decideAnswer(t, c.fact, lifecycle.OwnerNone, c.policies); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestAnnotations(t *testing.T) {
	const past, soon, future = "2026-03-01T11:10:00Z", "2026-03-01T11:40:00Z", "2026-03-01T14:00:00+01:00"
	expired := func(after string) answer { return answer{remove, policy.ReasonExpired, "p/default", after} }
	notDue := func(after string) answer { return answer{wait, policy.ReasonNotDue, "p/default", after} }
	invalid := func(after string) answer { return answer{hold, policy.ReasonInvalidAnnotation, "p/default", after} }
	never := answer{keep, policy.ReasonNever, "p/default", ""}
	// Three answers for each case: with ExtendOnly, Any and Ignore. The policy says 30m, so without annotations all objects are due.
	for name, c := range map[string]struct {
		job                     *testbuilders.JobBuilder
		extendOnly, any, ignore answer
	}{
		"none":            {job("j"), expired("30m0s"), expired("30m0s"), expired("30m0s")},
		"shorter":         {job("j").TTL("10m"), expired("30m0s"), expired("10m0s"), expired("30m0s")},
		"at once":         {job("j").TTL("0s"), expired("30m0s"), expired("0s"), expired("30m0s")},
		"the same":        {job("j").TTL("30m"), expired("30m0s"), expired("30m0s"), expired("30m0s")},
		"longer, but due": {job("j").TTL("1h"), expired("1h0m0s"), expired("1h0m0s"), expired("30m0s")},
		"longer":          {job("j").TTL("2h"), notDue("2h0m0s"), notDue("2h0m0s"), expired("30m0s")},
		"never":           {job("j").TTL("never"), never, never, expired("30m0s")},
		"malformed":       {job("j").TTL("2 hours"), invalid("30m0s"), invalid("30m0s"), expired("30m0s")},
		"empty":           {job("j").TTL(""), invalid("30m0s"), invalid("30m0s"), expired("30m0s")},
		"more than ten years": {
			job("j").TTL("3651d"), invalid("30m0s"), invalid("30m0s"), expired("30m0s")},
		"kept until before it is due":    {job("j").KeepUntil(past), expired("30m0s"), expired("30m0s"), expired("30m0s")},
		"kept until after it was due":    {job("j").KeepUntil(soon), expired("40m0s"), expired("40m0s"), expired("30m0s")},
		"kept until the future":          {job("j").KeepUntil(future), notDue("2h0m0s"), notDue("2h0m0s"), expired("30m0s")},
		"kept until now":                 {job("j").KeepUntil("2026-03-01T12:00:00Z"), expired("1h0m0s"), expired("1h0m0s"), expired("30m0s")},
		"kept until nonsense":            {job("j").KeepUntil("tomorrow"), invalid("30m0s"), invalid("30m0s"), expired("30m0s")},
		"kept until a date without time": {job("j").KeepUntil("2027-01-01"), invalid("30m0s"), invalid("30m0s"), expired("30m0s")},
		"kept until nothing":             {job("j").KeepUntil(""), invalid("30m0s"), invalid("30m0s"), expired("30m0s")},
		"both: the later":                {job("j").TTL("50m").KeepUntil(soon), expired("50m0s"), expired("50m0s"), expired("30m0s")},
		"both, the TTL shorter: keep-until only lengthens": {
			job("j").TTL("0s").KeepUntil(past), expired("30m0s"), expired("10m0s"), expired("30m0s")},
		"both, the TTL never":                          {job("j").TTL("never").KeepUntil(past), never, never, expired("30m0s")},
		"a malformed TTL is held when it would be due": {job("j").TTL("x").KeepUntil(future), notDue("2h0m0s"), notDue("2h0m0s"), expired("30m0s")},
		"a malformed time, the TTL longer":             {job("j").TTL("2h").KeepUntil("x"), notDue("2h0m0s"), notDue("2h0m0s"), expired("30m0s")},
		"a malformed time, the TTL shorter":            {job("j").TTL("0s").KeepUntil("x"), invalid("30m0s"), invalid("0s"), expired("30m0s")},
		"a native TTL is what they adjust": {
			job("j").NativeTTL(1200).TTL("10m"), expired("20m0s"), expired("10m0s"), expired("20m0s")},
	} {
		for mode, want := range map[gc.AnnotationTTLMode]answer{
			gc.AnnotationExtendOnly: c.extendOnly, gc.AnnotationAny: c.any, gc.AnnotationIgnore: c.ignore,
		} {
			t.Run(name+"/"+string(mode), func(t *testing.T) {
				got, _, _ := decideAnswer(
					t,
					c.job.Fact(),
					lifecycle.OwnerNone,
					policies(testbuilders.Policy("p").Default("30m").Annotations(mode)),
				)
				if got != want {
					t.Errorf("got  %+v\nwant %+v", got, want)
				}
			})
		}
	}
}

func TestOwnersAndFinalizers(t *testing.T) {
	owned := func() *testbuilders.PodBuilder { return pod("a").ControlledBy("batch/v1", "Job", "j") }
	withOwner, afterOwner := testbuilders.Policy("p").
		Rules(testbuilders.Rule("r", "30m")),
		testbuilders.Policy("p").
			Rules(testbuilders.Rule("r", "30m").Dependents(gc.DependentsAfterOwnerFinished))
	expired := answer{remove, policy.ReasonExpired, "p/r", "30m0s"}
	left := answer{ignore, policy.ReasonLeftToOwner, "p/r", ""}
	terminating := answer{await, policy.ReasonTerminating, "p/r", ""}
	for name, c := range map[string]struct {
		fact     *lifecycle.Fact
		owner    lifecycle.OwnerState
		policies []*testbuilders.PolicyBuilder
		want     answer
		detail   string
	}{
		"nobody counts on it": {owned().Fact(), lifecycle.OwnerNone, policies(withOwner), expired, ""},
		"a running controller, with its owner": {
			owned().Fact(), lifecycle.OwnerRunning, policies(withOwner), left, "Job/j"},
		"a running controller, after its owner": {
			owned().Fact(), lifecycle.OwnerRunning, policies(afterOwner), left, "Job/j"},
		"a finished controller, with its owner": {
			owned().Fact(), lifecycle.OwnerFinished, policies(withOwner), left, "Job/j"},
		"a finished controller, after its owner": {
			owned().Fact(), lifecycle.OwnerFinished, policies(afterOwner), expired, ""},
		"a finished controller, under defaults": {
			owned().Fact(), lifecycle.OwnerFinished, policies(testbuilders.Policy("p").Default("30m")),
			answer{ignore, policy.ReasonLeftToOwner, "p/default", ""}, "Job/j"},
		"a finished controller, and policies that disagree: all must agree": {
			owned().Fact(), lifecycle.OwnerFinished, policies(afterOwner, testbuilders.Policy("q").Rules(testbuilders.Rule("r", "0s"))), left, "Job/j"},
		"a controller that is not seen is deleted, and the object with it": {
			owned().Fact(), lifecycle.OwnerAbsent, policies(afterOwner), left, "Job/j"},
		"a controller of unknown kind, due": {
			owned().Fact(), lifecycle.OwnerUnknown, policies(afterOwner),
			answer{hold, policy.ReasonOwnerActive, "p/r", "30m0s"}, "nothing says whether Job/j still needs it"},
		"a controller in doubt, with its owner": {owned().Fact(), lifecycle.OwnerInDoubt, policies(withOwner), left, "Job/j"},
		"a controller in doubt, after its owner": {
			owned().Fact(), lifecycle.OwnerInDoubt, policies(afterOwner), answer{hold, policy.ReasonOwnerActive, "p/r", "30m0s"}, "Job/j is in doubt"},
		"a controller of unknown kind, not due": {
			owned().TTL("2h").Fact(), lifecycle.OwnerUnknown, policies(afterOwner), answer{wait, policy.ReasonNotDue, "p/r", "2h0m0s"}, ""},
		"a Pod that its Job has not counted, due": {
			owned().Finalizer(batchv1.JobTrackingFinalizer).Fact(), lifecycle.OwnerFinished, policies(afterOwner),
			answer{hold, policy.ReasonUncounted, "p/r", "30m0s"}, "the Job controller has not counted this Pod yet"},
		"a Pod that its Job has not counted, not due": {
			owned().Finalizer(batchv1.JobTrackingFinalizer).TTL("2h").Fact(), lifecycle.OwnerFinished, policies(afterOwner),
			answer{wait, policy.ReasonNotDue, "p/r", "2h0m0s"}, ""},
		"finalizers that contradict each other, due": {
			job("a").Finalizer("orphan", "foregroundDeletion").Fact(), lifecycle.OwnerNone, policies(withOwner),
			answer{hold, policy.ReasonConflictingFinalizers, "p/r", "30m0s"},
			"it has both finalizers orphan and foregroundDeletion, and a delete would remove one of them; remove the one you do not want"},
		"finalizers that contradict each other, being deleted": {
			job("a").Terminating().Finalizer("orphan", "foregroundDeletion").Fact(), lifecycle.OwnerNone, policies(withOwner), terminating,
			`waits for finalizers ["orphan" "foregroundDeletion"]`},
		"an object being deleted": {
			job("a").Terminating().Finalizer("example.com/f", "example.com/g").Fact(), lifecycle.OwnerNone, policies(withOwner), terminating,
			`waits for finalizers ["example.com/f" "example.com/g"]`},
		"an object being deleted that waits for nobody": {
			pod("a").Terminating().Fact(), lifecycle.OwnerNone, policies(withOwner), terminating, "no finalizers; it is gone when its grace period ends"},
		"a running object being deleted is no candidate": {
			testbuilders.Job("a").Terminating().Fact(), lifecycle.OwnerNone, policies(withOwner), answer{ignore, policy.ReasonNotFinished, "p/r", ""}, ""},
		"an object being deleted along with its owner is no candidate": {
			owned().Terminating().Fact(), lifecycle.OwnerAbsent, policies(withOwner), left, "Job/j"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, d := decideAnswer(t, c.fact, c.owner, c.policies)
			if got != c.want || d.Detail != c.detail {
				t.Errorf("got  %+v, %q\nwant %+v, %q", got, d.Detail, c.want, c.detail)
			}
		})
	}
}

// TestWhatDecides: a decision says what its author may not expect to decide: the lifecycle of the resource, or the object's own spec.
func TestWhatDecides(t *testing.T) {
	custom := func(resource string, finishes bool) *lifecycle.Fact {
		f := testbuilders.Job("a").Fact()
		f.Resource, f.Finishes = resource, finishes
		return f
	}
	const native = "the object sets it in its spec, which counts instead of the TTL of the rule"
	for name, c := range map[string]struct {
		fact   *lifecycle.Fact
		reason policy.Reason
		detail string
	}{
		"a Job that runs": {testbuilders.Job("a").Fact(), policy.ReasonNotFinished, ""},
		"a resource without a lifecycle": {custom("services", false), policy.ReasonNotFinished,
			"services have no lifecycle, so Winnow does not know when they have finished; " +
				"write a ResourceLifecycle, or set after: Created or after: Matched"},
		"a resource with a lifecycle": {custom("prowjobs.prow.k8s.io", true), policy.ReasonNotFinished,
			"the lifecycle of prowjobs.prow.k8s.io says when it has"},
		"the TTL of the rule":                {job("a").Fact(), policy.ReasonExpired, ""},
		"a TTL of the object":                {job("a").NativeTTL(60).Fact(), policy.ReasonExpired, native},
		"an annotation longer than that":     {job("a").NativeTTL(60).TTL("2m").Fact(), policy.ReasonExpired, ""},
		"a TTL of the object that is longer": {job("a").NativeTTL(7200).Fact(), policy.ReasonNotDue, ""},
	} {
		t.Run(name, func(t *testing.T) {
			rule := testbuilders.Rule("r", "30m").For("jobs.batch", "services", "prowjobs.prow.k8s.io")
			_, _, d := decideAnswer(t, c.fact, lifecycle.OwnerNone, policies(testbuilders.Policy("p").Rules(rule)))
			if d.Reason != c.reason || d.Detail != c.detail {
				t.Errorf("got %s, %q, want %s, %q", d.Reason, d.Detail, c.reason, c.detail)
			}
		})
	}
}

// failedToRead is an object for which an expression of its lifecycle failed.
func failedToRead(change func(*lifecycle.Fact)) *lifecycle.Fact {
	f := testbuilders.Job("j").Fact()
	f.Failed = "spec.finished.when: no such key: phase"
	change(f)
	return f
}

func TestDoubtMeansKeep(t *testing.T) {
	for name, c := range map[string]struct {
		fact   *lifecycle.Fact
		want   answer
		detail string
	}{
		"a finish time that is missing": {testbuilders.Job("j").Failed(time.Time{}).Fact(), answer{hold, policy.ReasonFinishTimeUnknown, "p/default", ""},
			"its condition Failed has no transition time"},
		"a Pod with an unknown finish time": {testbuilders.Pod("j").Phase(corev1.PodFailed).Fact(), answer{hold, policy.ReasonFinishTimeUnknown, "p/default", ""},
			"neither a container nor a condition says when it finished"},
		"an expression that fails": {failedToRead(func(*lifecycle.Fact) {}), answer{hold, policy.ReasonExpressionError, "p/default", ""},
			"spec.finished.when: no such key: phase"},
		"an expression that fails, and a malformed annotation": {
			failedToRead(func(f *lifecycle.Fact) { f.TTL = new("2 hours") }), answer{hold, policy.ReasonExpressionError, "p/default", ""},
			"spec.finished.when: no such key: phase"},
		"an expression that fails for an object that is being deleted": {
			failedToRead(func(f *lifecycle.Fact) { f.Terminating = true }), answer{await, policy.ReasonTerminating, "p/default", ""},
			"no finalizers; it is gone when its grace period ends"},
		"a finish time in the future counts from when it is reached": {testbuilders.Job("j").Complete(now.Add(time.Hour)).Fact(),
			answer{wait, policy.ReasonNotDue, "p/default", "30m0s"}, ""},
		"a malformed annotation": {job("j").TTL("2 hours").Fact(), answer{hold, policy.ReasonInvalidAnnotation, "p/default", "30m0s"},
			`annotation gc.winnow.dev/ttl: "2 hours" contains a space; did you mean "2h"?`},
		"a malformed time": {job("j").KeepUntil("tomorrow").Fact(), answer{hold, policy.ReasonInvalidAnnotation, "p/default", "30m0s"},
			`annotation gc.winnow.dev/keep-until: "tomorrow" is not a time like "2026-01-02T15:04:05Z"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, d := decideAnswer(t, c.fact, lifecycle.OwnerNone, policies(testbuilders.Policy("p").Default("30m")))
			if got != c.want || d.Detail != c.detail {
				t.Errorf("got  %+v, %q\nwant %+v, %q", got, d.Detail, c.want, c.detail)
			}
		})
	}
}

func TestPropagation(t *testing.T) {
	const background, foreground, orphan = metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan
	ruled := func(name string, ttl gc.TTL, p metav1.DeletionPropagation) *testbuilders.PolicyBuilder {
		return testbuilders.Policy(name).Rules(testbuilders.Rule("r", ttl).Propagation(p))
	}
	for name, c := range map[string]struct {
		fact     *lifecycle.Fact
		policies []*testbuilders.PolicyBuilder
		want     metav1.DeletionPropagation
	}{
		"defaults":                     {job("j").Fact(), policies(testbuilders.Policy("p").Default("0s")), background},
		"a rule says Background":       {job("j").Fact(), policies(ruled("p", "0s", background)), background},
		"a rule says Foreground":       {job("j").Fact(), policies(ruled("p", "0s", foreground)), foreground},
		"the policy that decides says": {job("j").Fact(), policies(ruled("a", "1m", foreground), ruled("b", "0s", background)), foreground},
		"the object is to orphan":      {job("j").Finalizer("orphan").Fact(), policies(ruled("p", "0s", foreground)), orphan},
		"the object is to go last":     {job("j").Finalizer("foregroundDeletion").Fact(), policies(ruled("p", "0s", background)), foreground},
	} {
		t.Run(name, func(t *testing.T) {
			if _, r, _ := decideAnswer(t, c.fact, lifecycle.OwnerNone, c.policies); r.Propagation != c.want {
				t.Errorf("got %q, want %q", r.Propagation, c.want)
			}
		})
	}
}

// BenchmarkResolve decides for a Job by two policies with three rules each, as happens for every Job if one of them changes. Only the slice
// of matches is allocated, and the engine reuses it.
func BenchmarkResolve(b *testing.B) {
	var enforcing []*policy.Policy
	for _, name := range []string{"a", "b"} {
		enforcing = append(enforcing, compiled(b, testbuilders.Policy(name).Default("7d").Rules(
			testbuilders.Rule("nightly", "1d").
				Labelled("app", "nightly"),
			testbuilders.Rule("failed", "30d").Outcome(gc.OutcomeFailed), testbuilders.Rule("train", "2h").Labelled("app", "train"),
		),
		))
	}
	f := job("a").Label("app", "train").Label("run", "1").Fact()
	b.ReportAllocs()
	for b.Loop() {
		if _, d := decide(f, lifecycle.OwnerNone, enforcing); d.Reason == policy.ReasonNoPolicy {
			b.Fatal("nobody decides")
		}
	}
}

// TestAfterCreated: objects that cannot finish are deleted some time after their creation, and other objects only when they have finished.
func TestAfterCreated(t *testing.T) {
	stored := testbuilders.Policy("p").Obj()
	stored.Spec.Rules = []gc.CleanupRule{{
		Name: "old", Resources: []string{"configmaps", "runs.example.com"}, After: gc.AfterCreated, TTL: new(gc.TTL("1h")),
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "preview"}},
	}}
	p, err := policy.Compile(stored)
	if err != nil {
		t.Fatal(err)
	}
	selected := labels.Set{"app": "preview"}
	deployment := &lifecycle.Owner{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Name: "web"}
	for name, tc := range map[string]struct {
		fact   lifecycle.Fact
		owner  lifecycle.OwnerState
		action policy.Action
		reason policy.Reason
		at     time.Time
	}{
		"old":         {lifecycle.Fact{Labels: selected, Created: now.Add(-2 * time.Hour)}, 0, remove, policy.ReasonExpired, now.Add(-time.Hour)},
		"young":       {lifecycle.Fact{Labels: selected, Created: now}, 0, wait, policy.ReasonNotDue, now.Add(time.Hour)},
		"unselected":  {lifecycle.Fact{Labels: labels.Set{}, Created: now.Add(-2 * time.Hour)}, 0, ignore, policy.ReasonNoPolicy, time.Time{}},
		"of no time":  {lifecycle.Fact{Labels: selected}, 0, hold, policy.ReasonFinishTimeUnknown, time.Time{}},
		"can finish":  {lifecycle.Fact{Labels: selected, Created: finished, Finishes: true}, 0, hold, policy.ReasonStillRunning, now},
		"in doubt":    {lifecycle.Fact{Labels: selected, Created: finished, Failed: "no such key"}, 0, hold, policy.ReasonExpressionError, time.Time{}},
		"not dated":   {lifecycle.Fact{Labels: selected, Created: finished, Finishes: true, Finished: true, Doubt: "?"}, 0, remove, policy.ReasonExpired, now},
		"first seen":  {lifecycle.Fact{Labels: selected, Created: finished, Finishes: true, Finished: true, FinishedAt: now.Add(time.Hour), FirstSeen: &lifecycle.FirstSeen{}}, 0, remove, policy.ReasonExpired, now},
		"annotated":   {lifecycle.Fact{Labels: selected, Created: finished, TTL: new("3h")}, 0, wait, policy.ReasonNotDue, finished.Add(3 * time.Hour)},
		"being owned": {lifecycle.Fact{Labels: selected, Created: finished, Controller: deployment}, lifecycle.OwnerUnknown, hold, policy.ReasonOwnerActive, now},
		"deleted":     {lifecycle.Fact{Labels: selected, Created: finished, Terminating: true}, 0, await, policy.ReasonTerminating, time.Time{}},
	} {
		tc.fact.Resource = "configmaps"
		if _, d := decide(&tc.fact, tc.owner, []*policy.Policy{p}); d.Action != tc.action || d.Reason != tc.reason || !d.At.Equal(tc.at) {
			t.Errorf("%s: got %+v", name, d)
		}
	}
}

// TestAfterTheOwnerFinished: the TTL of an object that its controller needed counts from when the controller finished, if that is later
// than its trigger.
func TestAfterTheOwnerFinished(t *testing.T) {
	later := finished.Add(10 * time.Minute)
	minute, always := time.Minute, "never"
	of := func(owner time.Time) lifecycle.Ownership {
		return lifecycle.Ownership{State: lifecycle.OwnerFinished, FinishedAt: owner}
	}
	rule := func() *testbuilders.RuleBuilder {
		return testbuilders.Rule("r", "30m").For(gc.ResourceJobs, gc.ResourcePods).Dependents(gc.DependentsAfterOwnerFinished)
	}
	created := testbuilders.Policy("p").Rules(rule()).Obj()
	created.Spec.Rules[0].After = gc.AfterCreated
	created.Spec.Rules[0].Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
	native := pod("a").ControlledBy("batch/v1", "Job", "j").Fact()
	native.NativeTTL = &minute
	kept := pod("a").ControlledBy("batch/v1", "Job", "j").Fact()
	kept.TTL = &always
	for name, c := range map[string]struct {
		fact   *lifecycle.Fact
		owner  lifecycle.Ownership
		policy *gc.CleanupPolicy
		limits policy.Limits
		due    time.Time // zero for never
	}{
		"the owner was first":       {owner: of(finished.Add(-time.Minute)), due: finished.Add(30 * time.Minute)},
		"the owner was last":        {owner: of(later), due: later.Add(30 * time.Minute)},
		"the owner will be last":    {owner: of(now.Add(time.Hour)), due: now.Add(90 * time.Minute)},
		"after: Created":            {owner: of(later), policy: created, due: later.Add(30 * time.Minute)},
		"a native TTL":              {fact: native, owner: of(later), due: later},
		"an annotation":             {fact: kept, owner: of(later)},
		"an independent controller": {due: finished.Add(30 * time.Minute)},
	} {
		if c.fact == nil {
			c.fact = pod("a").Label("app", "x").ControlledBy("batch/v1", "Job", "j").Fact()
		}
		if c.policy == nil {
			c.policy = testbuilders.Policy("p").Rules(rule()).Obj()
		}
		p, err := policy.Compile(c.policy)
		if err != nil {
			t.Fatal(err)
		}
		var m policy.Matches
		m.Ask(c.fact, []*policy.Policy{p}, nil, nil, nil)
		effective := policy.Resolve(policy.Object{Fact: c.fact, Owner: c.owner}, m.Enforced)
		c.limits.Bounds = &policy.NoBounds
		_, d := effective.Decide(c.limits, now)
		if d.Action == keep && c.due.IsZero() {
			continue
		}
		if !d.At.Equal(c.due) {
			t.Errorf("%s: due at %v, want %v: %+v", name, d.At, c.due, d)
		}
	}
}

// TestAfterUnused: objects that were in use are kept for some time after their last use, and objects that may be in use are kept.
func TestAfterUnused(t *testing.T) {
	rule := func(name string, after gc.After, ttl gc.TTL) *policy.Policy {
		stored := testbuilders.Policy(name).Obj()
		stored.Spec.Rules = []gc.CleanupRule{{
			Name: "r", Resources: []string{gc.ResourceSecrets}, After: after, TTL: &ttl,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		}}
		p, err := policy.Compile(stored)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	unused := rule("a", gc.AfterUnused, "1h")
	state := func(s lifecycle.UsageState, ago time.Duration) lifecycle.Usage {
		u := lifecycle.Usage{State: s}
		if ago > 0 {
			u.Since = now.Add(-ago)
		}
		return u
	}
	for name, tc := range map[string]struct {
		usage  lifecycle.Usage
		others []*policy.Policy
		ttl    string
		action policy.Action
		reason policy.Reason
		at     time.Time
	}{
		"long unused":                  {usage: state(lifecycle.Unused, 2*time.Hour), action: remove, reason: policy.ReasonExpired, at: now.Add(-time.Hour)},
		"unused":                       {usage: state(lifecycle.Unused, time.Minute), action: wait, reason: policy.ReasonNotDue, at: now.Add(59 * time.Minute)},
		"in use":                       {usage: state(lifecycle.InUse, 0), action: ignore, reason: policy.ReasonInUse},
		"never known":                  {action: hold, reason: policy.ReasonReferrersUnknown},
		"no longer known":              {usage: state(lifecycle.UsageUnknown, 2*time.Hour), action: hold, reason: policy.ReasonReferrersUnknown, at: now.Add(-time.Hour)},
		"no longer known, and not due": {usage: state(lifecycle.UsageUnknown, time.Minute), action: wait, reason: policy.ReasonNotDue, at: now.Add(59 * time.Minute)},
		"annotated":                    {usage: state(lifecycle.Unused, 2*time.Hour), ttl: "3h", action: wait, reason: policy.ReasonNotDue, at: now.Add(time.Hour)},
		"two rules, the later by age": {
			usage: state(lifecycle.Unused, 2*time.Hour), others: []*policy.Policy{rule("b", gc.AfterCreated, "2d")},
			action: wait, reason: policy.ReasonNotDue, at: now.Add(24 * time.Hour),
		},
		"two rules, in use":     {usage: state(lifecycle.InUse, 0), others: []*policy.Policy{rule("b", gc.AfterCreated, "1h")}, action: ignore, reason: policy.ReasonInUse},
		"two rules, not known":  {others: []*policy.Policy{rule("b", gc.AfterCreated, "1h")}, action: hold, reason: policy.ReasonReferrersUnknown},
		"a rule for the finish": {usage: state(lifecycle.Unused, 2*time.Hour), others: []*policy.Policy{rule("b", gc.AfterFinished, "1h")}, action: ignore, reason: policy.ReasonNotFinished},
	} {
		f := &lifecycle.Fact{Resource: gc.ResourceSecrets, Labels: labels.Set{"app": "web"}, Created: now.Add(-24 * time.Hour), Usage: tc.usage}
		if tc.ttl != "" {
			f.TTL = &tc.ttl
		}
		if _, d := decide(f, 0, append(tc.others, unused)); d.Action != tc.action || d.Reason != tc.reason || !d.At.Equal(tc.at) {
			t.Errorf("%s: got %+v", name, d)
		}
	}
}
