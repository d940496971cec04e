// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/expressions"
)

// archived is true once an annotation is there, and stored fails until then.
const (
	archived = "object.metadata.?annotations[?'example.com/archived'].orValue('') == 'true'"
	stored   = "object.metadata.annotations['example.com/archived'] == 'true'"
)

// evaluated returns the results of expressions for an object with these annotations.
func evaluated(t *testing.T, annotations map[string]any, texts ...string) lifecycle.Results {
	t.Helper()
	all := map[string]*expressions.Expression{}
	for _, text := range texts {
		e, err := expressions.New(text, expressions.Condition)
		if err != nil {
			t.Fatal(err)
		}
		all[text] = e
	}
	metadata := map[string]any{"name": "a"}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	return lifecycle.NewConditions(nil, all, nil).Evaluate(map[string]any{"metadata": metadata})
}

// waiting is a Job that finished an hour ago, with results of expressions.
func waiting(results lifecycle.Results) *lifecycle.Fact {
	f := job("a").Fact()
	f.Conditions = results
	return f
}

// waitAt decides at a time for a Job that finished an hour ago.
func waitAt(t *testing.T, at time.Time, results lifecycle.Results, all ...*testbuilders.PolicyBuilder) policy.Decision {
	t.Helper()
	f := waiting(results)
	var enforcing []*policy.Policy
	for _, b := range all {
		enforcing = append(enforcing, compiled(t, b))
	}
	var m policy.Matches
	m.Ask(f, enforcing, nil, nil, nil)
	effective := policy.Resolve(policy.Object{Fact: f}, m.Enforced)
	_, d := effective.Decide(policy.Limits{Bounds: &policy.NoBounds}, at)
	return d
}

// waits is a policy with the TTL 30m whose objects wait.
func waits(name, expression string, atMost gc.TTL, onTimeout gc.WaitTimeoutPolicy) *testbuilders.PolicyBuilder {
	return testbuilders.Policy(name).Rules(testbuilders.Rule("r", "30m").WaitFor(expression, atMost, onTimeout))
}

// TestWaits: the Job of the table finished an hour ago, and is due since half an hour.
func TestWaits(t *testing.T) {
	marked, unmarked := evaluated(t, map[string]any{"example.com/archived": "true"}, archived, stored), evaluated(t, nil, archived, stored)
	due := finished.Add(30 * time.Minute)
	for name, c := range map[string]struct {
		results  lifecycle.Results
		policies []*testbuilders.PolicyBuilder
		after    time.Duration // since the Job was due
		action   policy.Action
		at       time.Duration // since the Job was due
		until    time.Duration // when the decision changes, since the Job was due; zero if it does not
		detail   string
	}{
		"archived":           {marked, policies(waits("p", archived, "7d", "")), 0, remove, 0, 0, ""},
		"archived, in time":  {marked, policies(waits("p", stored, "1h", gc.WaitTimeoutDelete)), 0, remove, 0, 0, ""},
		"archived, too late": {marked, policies(waits("p", stored, "1h", gc.WaitTimeoutDelete)), 9 * time.Hour, remove, 0, 0, ""},
		"not archived": {unmarked, policies(waits("p", archived, "7d", "")), 0, hold, 0, 7 * 24 * time.Hour,
			`waitFor of rule "r" of CleanupPolicy "p" is not true: ` + archived + `; the wait ends at 2026-03-08T11:30:00Z, and it stays held even then (onTimeout: Keep)`},
		"just before the end": {unmarked, policies(waits("p", archived, "7d", "")), 7*24*time.Hour - 1, hold, 0, 7 * 24 * time.Hour, "the wait ends at"},
		"the wait is over": {unmarked, policies(waits("p", archived, "7d", gc.WaitTimeoutKeep)), 7 * 24 * time.Hour, hold, 7 * 24 * time.Hour, 0,
			"the wait is over since 2026-03-08T11:30:00Z, so it stays held (onTimeout: Keep)"},
		"then delete":              {unmarked, policies(waits("p", archived, "1h", gc.WaitTimeoutDelete)), time.Hour, remove, time.Hour, 0, ""},
		"delete, just before then": {unmarked, policies(waits("p", archived, "1h", gc.WaitTimeoutDelete)), time.Hour - 1, hold, 0, time.Hour, "until 2026-03-01T12:30:00Z at most, and is deleted then"},
		"the expression fails":     {unmarked, policies(waits("p", stored, "1h", "")), 0, hold, 0, time.Hour, "is not true (no such key: annotations): "},
		"it fails without end":     {unmarked, policies(waits("p", stored, "1h", gc.WaitTimeoutDelete)), time.Hour, remove, time.Hour, 0, ""},
		"not evaluated":            {lifecycle.Results{}, policies(waits("p", archived, "1h", gc.WaitTimeoutDelete)), 0, hold, 0, time.Hour, "it has not been evaluated for this object yet"},
		"not evaluated, too long":  {marked.Waiting(), policies(waits("p", archived, "1h", "")), 0, hold, 0, time.Hour, "not evaluated yet"},
		"another policy does not wait": {unmarked, policies(waits("p", archived, "1h", ""), testbuilders.Policy("q").Default("30m")), 0, hold, 0, time.Hour,
			`CleanupPolicy "p"`},
		"the later timeout": {unmarked, policies(waits("p", archived, "1h", gc.WaitTimeoutDelete), waits("q", stored, "3h", gc.WaitTimeoutDelete)), 2 * time.Hour,
			hold, 0, 3 * time.Hour, `CleanupPolicy "q"`},
		"kept rather than deleted": {unmarked, policies(waits("p", archived, "1h", gc.WaitTimeoutKeep), waits("q", archived, "3h", gc.WaitTimeoutDelete)), 4 * time.Hour,
			hold, time.Hour, 0, `CleanupPolicy "p"`},
		"the first of equal waits": {unmarked, policies(waits("q", archived, "1h", ""), waits("p", archived, "1h", "")), 0, hold, 0, time.Hour, `CleanupPolicy "p"`},
	} {
		t.Run(name, func(t *testing.T) {
			d := waitAt(t, due.Add(c.after), c.results, c.policies...)
			want, until := due.Add(c.at), time.Time{}
			if c.until != 0 {
				until = due.Add(c.until)
			}
			if d.Action != remove || d.Reason != policy.ReasonExpired || !d.At.Equal(want) || !d.Wait.ChangesAt().Equal(until) {
				t.Errorf("got %+v, want it due at %s, until %s", d, want, until)
			}
			var reason policy.Reason
			if c.action == hold {
				if reason = policy.ReasonWaitingForArchive; until.IsZero() {
					reason = policy.ReasonNotArchived
				}
			}
			if d.Wait.Reason != reason || d.Ready() == d.Waits() {
				t.Errorf("got %+v, want reason %q", d.Wait, reason)
			}
			if c.action != hold {
				return
			}
			if detail := d.Wait.Detail(waiting(c.results)); !strings.Contains(detail, c.detail) {
				t.Errorf("got %s\nwant %s", detail, c.detail)
			}
			if held := d.Held(policy.ReasonSuspended, ""); !held.Waits() || !held.Wait.ChangesAt().Equal(until) {
				t.Errorf("held: got %+v, want it to change at %s", held, until)
			}
		})
	}
}

// TestWaitBeginsWhenTimeMakesDue: atMost counts from the answer after annotations and guardrails, and not from when a limit by count makes
// the object due. The limit counts it.
func TestWaitBeginsWhenTimeMakesDue(t *testing.T) {
	bounds := func(g gc.Guardrails) *policy.Bounds {
		p, err := policy.CompileCluster(guarded(g))
		if err != nil {
			t.Fatal(err)
		}
		return new(policy.BoundsOf([]*policy.Policy{p}))
	}
	for name, c := range map[string]struct {
		job    *testbuilders.JobBuilder
		bounds *policy.Bounds
		end    time.Duration // of the wait, after the finish
	}{
		"the TTL is 30m":       {job("a"), &policy.NoBounds, 90 * time.Minute},
		"an annotation":        {job("a").TTL("45m"), &policy.NoBounds, 105 * time.Minute},
		"a TTL of the Job":     {job("a").NativeTTL(60), &policy.NoBounds, 61 * time.Minute},
		"guardrails.minTTL":    {job("a"), bounds(gc.Guardrails{MinTTL: new(gc.TTL("2h"))}), 3 * time.Hour},
		"guardrails.maxTTL":    {job("a"), bounds(gc.Guardrails{MaxTTL: new(gc.TTL("10m"))}), 70 * time.Minute},
		"an annotation beyond": {job("a").TTL("1d"), bounds(gc.Guardrails{MaxTTL: new(gc.TTL("1h"))}), 2 * time.Hour},
	} {
		f := c.job.Fact()
		f.Conditions = evaluated(t, nil, archived)
		p := compiled(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", "30m").Keeping(0).WaitFor(archived, "1h", gc.WaitTimeoutDelete)))
		effective := policy.Resolve(policy.Object{Fact: f}, []policy.Match{{Policy: p, Rule: matched(t, p, f), Counted: true, Over: true}})
		limits := policy.Limits{Bounds: c.bounds}
		if _, d := effective.Decide(limits, finished.Add(c.end-1)); d.Wait.Reason != policy.ReasonWaitingForArchive {
			t.Errorf("%s: just before %s, %+v", name, c.end, d)
		}
		if _, d := effective.Decide(limits, finished.Add(c.end)); !d.Ready() || !d.At.Equal(finished.Add(c.end)) {
			t.Errorf("%s: at %s, %+v", name, c.end, d)
		}
		if !effective.Counting(c.bounds, finished.Add(48*time.Hour)).Counts {
			t.Errorf("%s: limits do not count what waits", name)
		}
	}
}

// matched returns the rule of a policy that matches an object.
func matched(t *testing.T, p *policy.Policy, f *lifecycle.Fact) *policy.Rule {
	t.Helper()
	var m policy.Matches
	m.Ask(f, []*policy.Policy{p}, nil, nil, nil)
	if len(m.Enforced) != 1 {
		t.Fatalf("%d matches", len(m.Enforced))
	}
	return m.Enforced[0].Rule
}

// TestWaitWhenDue: what waits for its TTL says that it will be held, and what for.
func TestWaitWhenDue(t *testing.T) {
	f := job("a").Fact()
	f.Conditions = evaluated(t, nil, archived)
	var m policy.Matches
	m.Ask(f, []*policy.Policy{compiled(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", "2h").WaitFor(archived, "7d", gc.WaitTimeoutDelete)))}, nil, nil, nil)
	effective := policy.Resolve(policy.Object{Fact: f}, m.Enforced)
	wait := effective.Wait(policy.Limits{Bounds: &policy.NoBounds})
	if detail := wait.Detail(f); wait.Reason != policy.ReasonWaitingForArchive || !strings.Contains(detail, "until 2026-03-08T13:00:00Z at most, and is deleted then") {
		t.Errorf("got %s: %s", wait.Reason, detail)
	}
}

// TestWaitsOfSecrets: the error of an expression may have the data of a Secret, and only metadata may be read.
func TestWaitsOfSecrets(t *testing.T) {
	const text = "'a'.matches(object.metadata.name)"
	e, err := expressions.New(text, expressions.Condition)
	if err != nil {
		t.Fatal(err)
	}
	f := testbuilders.Job("a").Fact()
	f.Resource = gc.ResourceSecrets
	f.Conditions = lifecycle.NewConditions(nil, map[string]*expressions.Expression{text: e}, nil).Evaluate(
		map[string]any{"metadata": map[string]any{"name": "[hunter2"}})
	rule := gc.CleanupRule{
		Name: "r", Resources: []string{gc.ResourceSecrets}, After: gc.AfterCreated, TTL: new(gc.TTL("0s")),
		Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpDoesNotExist}}},
		WaitFor:  &gc.WaitFor{Expression: text, AtMost: new(gc.TTL("7d"))},
	}
	spec := gc.CleanupPolicySpec{Mode: gc.ModeEnforce, AnnotationTTL: gc.AnnotationExtendOnly, Rules: []gc.CleanupRule{rule}}
	stored := &gc.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: testbuilders.Home, Name: "p"}, Spec: spec}
	p, err := policy.Compile(stored)
	if err != nil {
		t.Fatal(err)
	}
	effective := policy.Resolve(policy.Object{Fact: f}, []policy.Match{{Policy: p, Rule: matched(t, p, f)}})
	_, d := effective.Decide(policy.Limits{Bounds: &policy.NoBounds}, testbuilders.Now)
	detail := d.Wait.Detail(f)
	if d.Wait.Reason != policy.ReasonWaitingForArchive || strings.Contains(detail, "hunter2") || !strings.Contains(detail, "it is not shown") {
		t.Errorf("got %+v: %s", d, detail)
	}
	stored.Spec.Rules[0].WaitFor.Expression = "has(object.data.a)"
	if _, err := policy.Compile(stored); err == nil {
		t.Error("the data of Secrets may be read")
	}
}

// TestWaitsThatCannotBeRead: a stored policy whose wait another version wrote does not work without it.
func TestWaitsThatCannotBeRead(t *testing.T) {
	for name, change := range map[string]func(*gc.WaitFor){
		"no time":              func(w *gc.WaitFor) { w.AtMost = nil },
		"zero":                 func(w *gc.WaitFor) { w.AtMost = new(gc.TTL("0s")) },
		"never":                func(w *gc.WaitFor) { w.AtMost = new(gc.TTLNever) },
		"another word":         func(w *gc.WaitFor) { w.OnTimeout = "Archive" },
		"another expression":   func(w *gc.WaitFor) { w.Expression = "object.isArchived()" },
		"no expression at all": func(w *gc.WaitFor) { w.Expression = "" },
	} {
		p := waits("p", archived, "7d", gc.WaitTimeoutDelete).Obj()
		change(p.Spec.Rules[0].WaitFor)
		if _, err := policy.Compile(p); err == nil || !strings.Contains(err.Error(), "waitFor.") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestLongExpressionsAreCut: messages are for people, and an expression may have 4,096 characters on many lines. The error comes first.
func TestLongExpressionsAreCut(t *testing.T) {
	for name, c := range map[string]struct{ expression, want string }{
		"long":          {"object.metadata.name == '" + strings.Repeat("x", 1000) + "'", "xxx..."},
		"lines":         {"object.metadata.name\n  ==\n'b'", "is not true: object.metadata.name == 'b'; the wait"},
		"in a rune":     {"object.metadata.name == '" + strings.Repeat("é", 500) + "'", "é...; the wait"},
		"with an error": {"object.metadata.missing == '" + strings.Repeat("é", 30) + "'", "is not true (no such key: missing): object.metadata.missing"},
		"without room":  {"object.metadata.missing == '" + strings.Repeat("é", 1000) + "'", "is not true (it failed): object.metadata.missing"},
	} {
		f := waiting(evaluated(t, nil, c.expression))
		d := waitAt(t, now, f.Conditions, waits("p", c.expression, "7d", ""))
		detail := d.Wait.Detail(f)
		if len(detail) > 600 || !strings.Contains(detail, c.want) || !utf8.ValidString(detail) || strings.Contains(detail, "\n") {
			t.Errorf("%s: got %d bytes: %s", name, len(detail), detail)
		}
	}
}
