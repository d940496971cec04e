// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// ceilingNamed returns a cluster policy with a ceiling that keeps no Job of testbuilders.Home.
func ceilingNamed(name string, suspend bool) *gc.ClusterCleanupPolicy {
	p := jobCeiling(1, 0)
	p.Name, p.UID, p.Spec.Suspend = name, testbuilders.UID(name), suspend
	return p
}

// decision is a decision for an object, and who made it: "policy/rule", "ceiling=policy", or nobody.
type decision struct {
	action policy.Action
	reason policy.Reason
	by     string
}

func (w *world) decisionOn(name string) decision {
	rec := w.Records.Get(w.facts[name].UID)
	out := decision{action: rec.Action, reason: memory.Reasons[rec.Reason]}
	switch {
	case rec.Policy != nil && rec.Rule == nil:
		out.by = "ceiling=" + rec.Policy.Name
	case rec.Policy != nil:
		out.by = rec.Policy.Name + "/" + rec.Rule.Name
	}
	return out
}

// underCeilings is one combination of a policy, its state and an annotation, under ceilings.
type underCeilings struct {
	answer     string // of the policy: due, waits, never; empty without a policy
	state      string // of the policy: active, suspended, preview, or held by holdAbove
	annotation string
	ceilings   []*gc.ClusterCleanupPolicy
}

// want is the contract: the policy decides if the object is due by it already, or else the first ceiling that is not suspended, or else the
// policy.
func (c underCeilings) want() decision {
	const by = "p/default"
	running := slices.IndexFunc(c.ceilings, func(p *gc.ClusterCleanupPolicy) bool { return !p.Spec.Suspend })
	matches, malformed := c.answer != "" && c.state != "preview", c.annotation == "malformed"
	due := c.answer == "due" && c.annotation != "never"
	switch {
	case matches && due && malformed:
		return decision{policy.Hold, policy.ReasonInvalidAnnotation, by}
	case matches && due && c.state == "suspended":
		return decision{policy.Hold, policy.ReasonSuspended, by}
	case matches && due && c.state == "held":
		return decision{policy.Hold, policy.ReasonHeld, by}
	case matches && due:
		return decision{policy.Delete, policy.ReasonExpired, by}
	case running >= 0 && !malformed:
		return decision{policy.Delete, policy.ReasonOverCeiling, "ceiling=" + c.ceilings[running].Name}
	case matches && c.answer == "waits" && c.annotation != "never":
		return decision{policy.Wait, policy.ReasonNotDue, by}
	case matches:
		return decision{policy.Keep, policy.ReasonNever, by}
	case len(c.ceilings) > 0:
		return decision{policy.Keep, policy.ReasonUnderCeiling, ""}
	}
	return decision{policy.Ignore, policy.ReasonNoPolicy, ""} // Only a Preview policy matches it.
}

// world returns a world with the Job x, which finished two hours ago. If the policy is held, it is because of two more Jobs.
func (c underCeilings) world(t *testing.T) *world {
	w := newWorld(t)
	w.Config.HoldAbove = 1
	x := testbuilders.Job("x").Complete(testbuilders.Now.Add(-2 * time.Hour))
	switch c.annotation {
	case "never":
		x.TTL("never")
	case "malformed":
		x.TTL("2 hours")
	}
	ttl := map[string]gc.TTL{"due": "1h", "waits": "3h", "never": "never"}[c.answer]
	p := ttlPolicy(ttl, 1)
	switch c.state {
	case "suspended":
		p.Suspended()
	case "preview":
		p.Preview()
	case "held":
		w.policy(ttlPolicy("never", 1))
		for _, name := range []string{"y", "z"} {
			w.upsert(testbuilders.Job(name).Label("app", "other").Complete(testbuilders.Now.Add(-10 * time.Hour)).Fact())
		}
		p = ttlPolicy(ttl, 2).Rules(testbuilders.Rule("others", "5h").Labelled("app", "other"))
	}
	w.upsert(x.Fact())
	if c.answer != "" {
		w.policy(p)
	}
	for _, ceiling := range c.ceilings {
		w.clusterPolicy(ceiling.DeepCopy())
	}
	w.upsert(w.facts["x"])
	w.confirmFresh()
	return w
}

// TestExplainsTheRuleAfterACeiling: a ceiling demands no notice, so it decides until maxTTL ends the notice that the rule demands. The rule
// decides since then, and is explained, although the ceiling decided when the object became due.
func TestExplainsTheRuleAfterACeiling(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h").Notice("2h").WaitFor(isArchived, "1h", gc.WaitTimeoutKeep)))
	limits := jobCeiling(1, 0)
	limits.Spec.Guardrails.MaxTTL = new(gc.TTL("5h"))
	w.clusterPolicy(limits)
	w.evaluate(job(4*time.Hour, "a"))
	if got := w.decisionOn("a"); got.by != "ceiling=all" {
		t.Fatalf("before maxTTL is over: got %+v, want a decision of the ceiling", got)
	}
	w.pass(2 * time.Hour)
	if got := w.decisionOn("a"); got.by != "p/r" {
		t.Fatalf("after maxTTL: got %+v, want a decision of the rule", got)
	}
	rec := w.Records.Get(testbuilders.UID("a"))
	if got, want := w.Explain(rec), rec.Decision(); got.Action != want.Action || !got.At.Equal(want.At) {
		t.Errorf("the explanation is %+v, want %+v", got, want)
	}
}

// TestWhoDecidesUnderCeilings: every combination of answers of the policy, states of the policy, ceilings, and annotations. The explanation
// agrees with the decision, and advises no annotation while a ceiling would delete the object anyway.
func TestWhoDecidesUnderCeilings(t *testing.T) {
	ceilings := map[string][]*gc.ClusterCleanupPolicy{
		"none": nil, "one": {ceilingNamed("b", false)}, "suspended": {ceilingNamed("b", true)},
		"the first suspended": {ceilingNamed("a", true), ceilingNamed("b", false)},
		"the last suspended":  {ceilingNamed("a", false), ceilingNamed("b", true)},
	}
	for name, all := range ceilings {
		for _, answer := range []string{"", "due", "waits", "never"} {
			for _, state := range []string{"active", "suspended", "preview", "held"} {
				for _, annotation := range []string{"", "never", "malformed"} {
					c := underCeilings{answer, state, annotation, all}
					if answer == "" && (state != "active" || len(all) == 0) {
						continue
					}
					t.Run(fmt.Sprintf("ceilings %s, policy %s %s, annotation %s", name, answer, state, annotation), c.test)
				}
			}
		}
	}
}

func (c underCeilings) test(t *testing.T) {
	w, want := c.world(t), c.want()
	if got := w.decisionOn("x"); got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	rec := w.Records.Get(testbuilders.UID("x"))
	if d := w.Explain(rec); d.Action != want.action || d.Reason != want.reason || !d.At.Equal(rec.At.Time()) {
		t.Errorf("the explanation is %+v, want %+v since %s", d, want, rec.At.Time())
	}
	message := w.Engine.Candidate(rec, true).Status.Message
	running := slices.ContainsFunc(c.ceilings, func(p *gc.ClusterCleanupPolicy) bool { return !p.Spec.Suspend })
	if strings.Contains(message, "annotate") && running && c.annotation != "malformed" {
		t.Errorf("the message advises an annotation, which cannot help: %s", message)
	}
	if want.action != policy.Delete {
		w.takes()
		return
	}
	w.takes("x")
	if o := w.orders["x"]; (o.Rule == "") != strings.HasPrefix(want.by, "ceiling=") || o.Reason != want.reason {
		t.Errorf("the order is by policy %s, rule %q, for %s; want %+v", o.Policy, o.Rule, o.Reason, want)
	}
}

// TestACeilingPassesAnObjectToItsPolicy: if a ceiling has not deleted an object yet, its policy decides as soon as the object is due by the
// policy. If the policy is suspended then, the object stays.
func TestACeilingPassesAnObjectToItsPolicy(t *testing.T) {
	foreground := func(generation int64) *testbuilders.PolicyBuilder {
		return testbuilders.Policy("p").Generation(generation).Rules(testbuilders.Rule("r", "1h").Propagation(metav1.DeletePropagationForeground))
	}
	for name, c := range map[string]struct {
		policy *testbuilders.PolicyBuilder
		want   decision
	}{
		"an active policy":   {foreground(1), decision{policy.Delete, policy.ReasonExpired, "p/r"}},
		"a suspended policy": {foreground(1).Suspended(), decision{policy.Hold, policy.ReasonSuspended, "p/r"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.policy)
			w.upsert(job(30*time.Minute, "x"))
			w.clusterPolicy(ceilingNamed("b", false)) // x is due by a change, so holds are applied to it once more.
			w.confirmFresh()
			byCeiling := decision{policy.Delete, policy.ReasonOverCeiling, "ceiling=b"}
			w.pass(29 * time.Minute)
			if got := w.decisionOn("x"); got != byCeiling {
				t.Fatalf("before: %+v", got)
			}
			if next, ok := w.Next(); !ok || !next.Equal(testbuilders.Now.Add(30*time.Minute)) {
				t.Fatalf("the next timer is at %s, %v", next, ok)
			}
			w.pass(time.Minute)
			if got := w.decisionOn("x"); got != c.want {
				t.Fatalf("after: %+v, want %+v", got, c.want)
			}
			if c.want.action != policy.Delete {
				w.takes()
				return
			}
			w.takes("x")
			if o := w.orders["x"]; o.Rule != "r" || o.Propagation != metav1.DeletePropagationForeground || !o.Due.Equal(w.now) {
				t.Errorf("the order is by rule %q with %s, due %s", o.Rule, o.Propagation, o.Due)
			}
		})
	}
}

// TestAnOrderIsDecidedAtItsTime: an order names the policy as soon as the object is due by the policy, even before any timer. There is no
// order if the policy is suspended.
func TestAnOrderIsDecidedAtItsTime(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1).Suspended())
	w.clusterPolicy(ceilingNamed("b", false))
	w.upsert(job(59*time.Minute, "x"))
	w.confirmFresh()
	w.takes("x")
	w.now = w.now.Add(time.Minute)
	w.confirmFresh()
	if o, ok := w.Renew(w.orders["x"], w.now); ok {
		t.Errorf("the order was settled again, and is sent by policy %s, rule %q", o.Policy, o.Rule)
	}
}

// TestWhatPassesToAStoppedPolicyIsAssessed: a ceiling was free to delete these objects, and then they become due by their policy, which is
// suspended. The change that resumes the policy makes them due.
func TestWhatPassesToAStoppedPolicyIsAssessed(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1).Suspended())
	w.clusterPolicy(ceilingNamed("b", false))
	w.upsert(jobs(59*time.Minute, "x", "y", "z")...)
	w.pass(time.Minute)
	w.takes()
	w.Config.HoldAbove = 2
	w.policy(ttlPolicy("1h", 2))
	w.confirmFresh()
	w.takes()
	for _, name := range []string{"x", "y", "z"} {
		w.decided(name, policy.Hold, policy.ReasonHeld)
	}
}

// TestAChangeElsewhereIsNotWhyAPolicyDeletes: a change of another namespace under the same ceiling can make objects due only by the
// ceiling.
func TestAChangeElsewhereIsNotWhyAPolicyDeletes(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	bounds := jobCeiling(1, 0)
	bounds.Spec.Guardrails.MinTTL = new(gc.TTL("1h"))
	w.clusterPolicy(bounds)
	w.upsert(job(59*time.Minute, "x"))
	w.observeNamespace("elsewhere") // Its objects are not listed yet.
	w.pass(time.Minute)
	w.takes("x")
}

// TestAPreviewUnderACeiling: a Preview policy shows an object as soon as it would delete it, although a ceiling would have deleted the
// object earlier.
func TestAPreviewUnderACeiling(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1).Preview())
	w.clusterPolicy(ceilingNamed("b", false))
	w.upsert(job(59*time.Minute, "x"))
	rec := w.Records.Get(testbuilders.UID("x"))
	if len(rec.Previews()) != 0 {
		t.Fatalf("before: %+v", rec.Previews())
	}
	w.pass(time.Minute)
	if got := rec.Previews(); len(got) != 1 || got[0].Decision().Action != policy.Delete || got[0].Decision().Reason != policy.ReasonExpired {
		t.Errorf("after: %+v", got)
	}
	if got := w.decisionOn("x"); got.by != "ceiling=b" {
		t.Errorf("it is decided by %+v", got)
	}
}

// TestACeilingDoesNotReplaceDoubtAboutQuotas: an object is over the limit that its policy takes from a quota that is no longer observed. It
// is not known whether the object is due by the policy, so the ceiling does not delete it either.
func TestACeilingDoesNotReplaceDoubtAboutQuotas(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", "").WithoutTTL().KeepingPercent(50)))
	w.ReplaceQuotas([]*memory.Quota{quota(2)}, w.now)
	w.clusterPolicy(ceilingNamed("b", false))
	w.upsert(job(2*time.Hour, "x"), job(time.Hour, "y"))
	w.Observing(kinds.ResourceQuotas, errors.New("forbidden"), w.now)
	w.confirmFresh()
	w.decided("x", policy.Hold, policy.ReasonUnobserved)
	w.takes("y")
}
