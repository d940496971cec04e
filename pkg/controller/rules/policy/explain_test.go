// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/expressions"
)

// explained is a question about one object. Names of cluster policies begin with "c-".
type explained struct {
	fact     *lifecycle.Fact
	policies []*testbuilders.PolicyBuilder
	cluster  []*gc.ClusterCleanupPolicy
	over     []string // names of policies whose limit the object is over
}

// explain asks as the engine does, and returns one line for each policy.
func (e explained) explain(t *testing.T) []string {
	t.Helper()
	var asked policy.Asked
	for _, b := range e.policies {
		if p := compiled(t, b); p.Preview {
			asked.Previews = append(asked.Previews, p)
		} else {
			asked.Own = append(asked.Own, p)
		}
	}
	for _, c := range e.cluster {
		p, err := policy.CompileCluster(c)
		if err != nil {
			t.Fatal(err)
		}
		if p.Preview {
			asked.ClusterPreviews = append(asked.ClusterPreviews, p)
		} else {
			asked.Cluster = append(asked.Cluster, p)
		}
	}
	var m policy.Matches
	m.Ask(e.fact, asked.Own, asked.Previews, asked.Cluster, asked.ClusterPreviews)
	for _, matches := range [][]policy.Match{m.Enforced, m.Previews} {
		for i := range matches {
			matches[i].Over = slices.Contains(e.over, matches[i].Policy.Name)
		}
	}
	effective := policy.Resolve(policy.Object{Fact: e.fact}, m.Enforced)
	var out []string
	for _, c := range effective.Explain(&m, asked) {
		out = append(out, line(e.fact, c))
	}
	return out
}

// line is short: policy/rule result, until when after the finish, what the rule keeps, and why each rule matches or not.
func line(f *lifecycle.Fact, c gc.ConsideredPolicy) string {
	out := fmt.Sprintf("%s/%s %s", c.Name, c.Rule, c.Result)
	if (c.Kind == gc.KindClusterCleanupPolicy) != strings.HasPrefix(c.Name, "c-") || (c.Mode == gc.ModePreview) != strings.Contains(c.Name, "preview") {
		out = fmt.Sprintf("%s (kind %s, mode %s)", out, c.Kind, c.Mode)
	}
	if c.KeepsUntil != "" {
		out += " until " + afterFinish(f, c.KeepsUntil)
	}
	if c.Message != "" {
		out += ": " + c.Message
	}
	for _, r := range c.Rules {
		if r.Matches {
			out += " | " + r.Name + " matches"
		} else {
			out += " | not " + r.Name
		}
		if r.Message != "" {
			out += ": " + r.Message
		}
	}
	return out
}

// afterFinish returns how long after the finish an answer is.
func afterFinish(f *lifecycle.Fact, until string) string {
	at, err := time.Parse(time.RFC3339, until)
	if err != nil {
		return until
	}
	return at.Sub(f.FinishedAt).String()
}

func clusterPolicy(name string, change func(*gc.ClusterCleanupPolicySpec)) *gc.ClusterCleanupPolicy {
	p := cluster(change)
	p.Name = name
	return p
}

func TestExplain(t *testing.T) {
	keeps := func(ttl string) string { return "keeps objects for " + ttl + " after their finish" }
	clusterTTL := func(ttl gc.TTL) func(*gc.ClusterCleanupPolicySpec) {
		return func(s *gc.ClusterCleanupPolicySpec) { s.TTLAfterFinished = &ttl }
	}
	for name, c := range map[string]struct {
		explained
		want []string
	}{
		"no policy": {explained: explained{fact: job("j").Fact()}},
		"the latest decides, and the others keep less": {
			explained{fact: job("j").Fact(), policies: policies(testbuilders.Policy("b").Default("2h"), testbuilders.Policy("a").Default("30m"))},
			[]string{
				"a/default KeepsLess until 30m0s: " + keeps("30m") + " | default matches",
				"b/default Decides until 2h0m0s: " + keeps("2h") + " | default matches",
			},
		},
		"of equal answers the first by name decides": {
			explained{fact: job("j").Fact(), policies: policies(testbuilders.Policy("b").Default("1h"), testbuilders.Policy("a").Default("1h"))},
			[]string{
				"a/default Decides until 1h0m0s: " + keeps("1h") + " | default matches",
				"b/default KeepsLess until 1h0m0s: " + keeps("1h") + " | default matches",
			},
		},
		"each rule up to the first that matches says why": {
			explained{fact: job("j").Label("app", "train").Fact(), policies: policies(testbuilders.Policy("p").Default("1h").Rules(
				testbuilders.Rule("pods", "0s").For("pods"),
				testbuilders.Rule("failed", "0s").Outcome(gc.OutcomeFailed),
				testbuilders.Rule("serve", "0s").Labelled("app", "serve"),
				testbuilders.Rule("train", "never").Labelled("app", "train"),
				testbuilders.Rule("later", "0s"),
			))},
			[]string{"p/train Decides until never: keeps objects without a limit" +
				" | not pods: it applies to pods" +
				" | not failed: it applies to the outcome Failed, and the outcome is Succeeded" +
				` | not serve: the labels do not match its selector "app=serve"` +
				" | train matches"},
		},
		"neither a rule nor the defaults match": {
			explained{fact: testbuilders.Job("j").Complete(finished).Fact(), policies: policies(
				testbuilders.Policy("p").Rules(testbuilders.Rule("r", "0s").For("pods", "configmaps")))},
			[]string{"p/ NoMatch | not r: it applies to pods, configmaps"},
		},
		"a running object is matched, and until when is not known": {
			explained{fact: testbuilders.Job("j").Fact(), policies: policies(
				testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h").Outcome(gc.OutcomeFailed)))},
			[]string{"p/r Decides: " + keeps("1h") + " | r matches"},
		},
		"a limit by count": {
			explained{
				fact: job("j").Fact(), over: []string{"p"},
				policies: policies(testbuilders.Policy("p").Rules(testbuilders.Rule("r", "2h").Keeping(3)),
					testbuilders.Policy("q").Rules(testbuilders.Rule("r", "").WithoutTTL().KeepingPercent(50))),
			},
			[]string{
				"p/r KeepsLess until 0s: " + keeps("2h") + ", and keeps the newest: 3 | r matches",
				"q/r Decides until never: keeps the newest: 50 % of the quota | r matches",
			},
		},
		"a Preview policy does not count": {
			explained{fact: job("j").Fact(), policies: policies(testbuilders.Policy("preview").Default("never").Preview(), testbuilders.Policy("p").Default("1h"))},
			[]string{
				"p/default Decides until 1h0m0s: " + keeps("1h") + " | default matches",
				"preview/default Preview until never: keeps objects without a limit | default matches",
			},
		},
		"a policy of the namespace replaces cluster policies": {
			explained{
				fact: job("j").Fact(), policies: policies(testbuilders.Policy("p").Default("1h")),
				cluster: []*gc.ClusterCleanupPolicy{
					clusterPolicy("c-defaults", clusterTTL("never")),
					clusterPolicy("c-preview", func(s *gc.ClusterCleanupPolicySpec) { s.Mode = gc.ModePreview; clusterTTL("2h")(s) }),
					clusterPolicy("c-bounds", func(*gc.ClusterCleanupPolicySpec) {}),
				},
			},
			[]string{
				"p/default Decides until 1h0m0s: " + keeps("1h") + " | default matches",
				"c-bounds/ NoMatch",
				"c-defaults/default Replaced: keeps objects without a limit | default matches",
				"c-preview/default Replaced: " + keeps("2h") + " | default matches",
			},
		},
		"a Preview policy of the namespace replaces nothing": {
			explained{
				fact: job("j").Fact(), policies: policies(testbuilders.Policy("preview").Default("1h").Preview()),
				cluster: []*gc.ClusterCleanupPolicy{
					clusterPolicy("c-defaults", clusterTTL("30m")),
					clusterPolicy("c-preview", func(s *gc.ClusterCleanupPolicySpec) { s.Mode = gc.ModePreview; clusterTTL("2h")(s) }),
				},
			},
			[]string{
				"preview/default Preview until 1h0m0s: " + keeps("1h") + " | default matches",
				"c-defaults/default Decides until 30m0s: " + keeps("30m") + " | default matches",
				"c-preview/default Preview until 2h0m0s: " + keeps("2h") + " | default matches",
			},
		},
		"a rule for all resources is for those with a lifecycle": {
			explained{
				fact: &lifecycle.Fact{Resource: "configmaps", Name: "a", Created: finished, Labels: testbuilders.Job("j").Fact().Labels},
				cluster: []*gc.ClusterCleanupPolicy{clusterPolicy("c-all", func(s *gc.ClusterCleanupPolicySpec) {
					s.Rules = []gc.CleanupRule{{Name: "r", Resources: []string{"*"}, TTL: new(gc.TTL("1h"))}}
				})},
			},
			[]string{"c-all/ NoMatch | not r: it applies to resources that have a lifecycle"},
		},
		"a rule may count from the creation": {
			explained{
				fact: testbuilders.Job("j").Created(finished.Add(-time.Hour)).Complete(finished).Fact(),
				cluster: []*gc.ClusterCleanupPolicy{clusterPolicy("c-old", func(s *gc.ClusterCleanupPolicySpec) {
					s.Rules = []gc.CleanupRule{{Name: "r", Resources: []string{"jobs.batch"}, After: gc.AfterCreated, TTL: new(gc.TTL("3h")),
						Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
							{Key: "keep", Operator: metav1.LabelSelectorOpDoesNotExist},
						}}}}
				})},
			},
			[]string{"c-old/r Decides until 2h0m0s: keeps objects for 3h after their creation | r matches"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.explain(t)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestExplainConditions: the first match condition that is false is named. If it is not known whether a rule matches, no later rule is
// tried, as in a decision.
func TestExplainConditions(t *testing.T) {
	const yes, no, fails, unknown = "object.a == 1", "object.a == 2", "object.b == 1", "object.c == 1"
	evaluated := map[string]*expressions.Expression{}
	for _, text := range []string{yes, no, fails} {
		e, err := expressions.New(text, expressions.Condition)
		if err != nil {
			t.Fatal(err)
		}
		evaluated[text] = e
	}
	fact := job("j").Fact()
	fact.Conditions = lifecycle.NewConditions(nil, evaluated, nil).Evaluate(map[string]any{"a": int64(1)})
	rule := func(name string, conditions ...string) *testbuilders.RuleBuilder {
		r := testbuilders.Rule(name, "1h")
		for _, c := range conditions {
			r.If(c)
		}
		return r
	}
	for name, c := range map[string]struct {
		rules []*testbuilders.RuleBuilder
		want  string
	}{
		"true":          {[]*testbuilders.RuleBuilder{rule("r", yes)}, "r Decides [r true ]"},
		"false":         {[]*testbuilders.RuleBuilder{rule("r", yes, no), rule("s")}, `s Decides [r false match condition "c1" is false] [s true ]`},
		"failed":        {[]*testbuilders.RuleBuilder{rule("r", fails), rule("s")}, `r Decides [r false match condition "c0" of rule "r" of cleanuppolicies.gc.winnow.dev/p: expression 'object.b == 1' resulted in error: no such key: b]`},
		"not evaluated": {[]*testbuilders.RuleBuilder{rule("r", unknown), rule("s")}, `r Decides [r false match condition "c0" of rule "r" of cleanuppolicies.gc.winnow.dev/p has not been evaluated for it yet]`},
		"false wins":    {[]*testbuilders.RuleBuilder{rule("r", fails, unknown, no)}, `NoMatch [r false match condition "c2" is false]`},
	} {
		t.Run(name, func(t *testing.T) {
			p := compiled(t, testbuilders.Policy("p").Rules(c.rules...))
			var m policy.Matches
			m.Ask(fact, []*policy.Policy{p}, nil, nil, nil)
			effective := policy.Resolve(policy.Object{Fact: fact}, m.Enforced)
			got := effective.Explain(&m, policy.Asked{Own: []*policy.Policy{p}})[0]
			text := strings.TrimSpace(got.Rule + " " + string(got.Result))
			for _, r := range got.Rules {
				text += fmt.Sprintf(" [%s %v %s]", r.Name, r.Matches, r.Message)
			}
			if text != c.want {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
		})
	}
}

// TestAdjustments: each step that changes the answer of the policies is listed, and no other. The last step ends with the decision.
func TestAdjustments(t *testing.T) {
	ceiling, err := policy.CompileCluster(clusterPolicy("c-ceiling", func(*gc.ClusterCleanupPolicySpec) {}))
	if err != nil {
		t.Fatal(err)
	}
	const ttl, keepUntil = "annotation gc.winnow.dev/ttl", "annotation gc.winnow.dev/keep-until"
	twoHours := finished.Add(2 * time.Hour).UTC().Format(time.RFC3339)
	guard := func(g gc.Guardrails) policy.Bounds { return limited(t, g) }
	for name, c := range map[string]struct {
		fact   *lifecycle.Fact
		mode   gc.AnnotationTTLMode
		ttl    gc.TTL // of the policy; 1h if empty
		bounds *policy.Bounds
		over   bool
		want   []string
	}{
		"nothing":                         {fact: job("j").Fact()},
		"a native TTL":                    {fact: job("j").NativeTTL(60).Fact(), want: []string{"TTL of the object: 1h0m0s to 1m0s"}},
		"a native TTL with the same time": {fact: job("j").NativeTTL(3600).Fact()},
		"an annotation":                   {fact: job("j").TTL("never").Fact(), want: []string{ttl + ": 1h0m0s to never"}},
		"an annotation may not shorten":   {fact: job("j").TTL("1m").Fact()},
		"unless it may":                   {fact: job("j").TTL("1m").Fact(), mode: gc.AnnotationAny, want: []string{ttl + ": 1h0m0s to 1m0s"}},
		"an annotation that is ignored":   {fact: job("j").TTL("2h").Fact(), mode: gc.AnnotationIgnore},
		"keep-until":                      {fact: job("j").KeepUntil(twoHours).Fact(), want: []string{keepUntil + ": 1h0m0s to 2h0m0s"}},
		"the later of both annotations":   {fact: job("j").KeepUntil(twoHours).TTL("90m").Fact(), want: []string{keepUntil + ": 1h0m0s to 2h0m0s"}},
		"maxTTL": {fact: job("j").Fact(), bounds: new(guard(gc.Guardrails{MaxTTL: new(gc.TTL("10m"))})),
			want: []string{"guardrails.maxTTL of limits: 1h0m0s to 10m0s"}},
		"allowNever": {fact: job("j").Fact(), ttl: "never", bounds: new(guard(gc.Guardrails{MaxTTL: new(gc.TTL("10m")), AllowNever: new(false)})),
			want: []string{"guardrails.maxTTL of limits: never to 10m0s"}},
		"minTTL": {fact: job("j").Fact(), ttl: "0s", bounds: new(guard(gc.Guardrails{MinTTL: new(gc.TTL("10m"))})),
			want: []string{"guardrails.minTTL of limits: 0s to 10m0s"}},
		"a ceiling": {fact: job("j").Fact(), ttl: "2h", over: true, want: []string{"guardrails.ceilings of c-ceiling: 2h0m0s to 0s"}},
		"a ceiling changes nothing for what is due anyway": {fact: job("j").Fact(), ttl: "1h", over: true},
		"all of them": {
			fact: job("j").NativeTTL(60).TTL("2h").Fact(), over: true,
			bounds: new(guard(gc.Guardrails{MinTTL: new(gc.TTL("5m")), MaxTTL: new(gc.TTL("90m"))})),
			want: []string{
				"TTL of the object: 1h0m0s to 1m0s", ttl + ": 1m0s to 2h0m0s", "guardrails.maxTTL of limits: 2h0m0s to 1h30m0s",
				"guardrails.ceilings of c-ceiling: 1h30m0s to 5m0s",
			},
		},
		"not finished yet": {fact: testbuilders.Job("j").TTL("2h").Fact(), want: []string{ttl + ":  to "}},
	} {
		t.Run(name, func(t *testing.T) {
			b := testbuilders.Policy("p").Default("1h")
			if c.ttl != "" {
				b.Default(c.ttl)
			}
			if c.mode != "" {
				b.Annotations(c.mode)
			}
			limits := policy.Limits{Bounds: &policy.NoBounds}
			if c.bounds != nil {
				limits.Bounds = c.bounds
			}
			if c.over {
				limits.Over, limits.Counted = ceiling, true
			}
			var m policy.Matches
			m.Ask(c.fact, []*policy.Policy{compiled(t, b)}, nil, nil, nil)
			effective := policy.Resolve(policy.Object{Fact: c.fact}, m.Enforced)
			var got []string
			last := ""
			for _, a := range effective.Adjustments(limits, now) {
				source := a.Source
				if a.Policy != "" {
					source += " of " + a.Policy
				}
				got = append(got, fmt.Sprintf("%s: %s to %s", source, afterFinish(c.fact, a.From), afterFinish(c.fact, a.To)))
				last = a.To
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			_, d := effective.Decide(limits, now)
			if decided := d.At.UTC().Format(time.RFC3339); !d.At.IsZero() && last != "" && last != decided {
				t.Errorf("the last adjustment is until %s, and the decision is for %s", last, decided)
			}
		})
	}
}

func TestEffectiveTTL(t *testing.T) {
	bounds := limited(t, gc.Guardrails{MinTTL: new(gc.TTL("5m")), MaxTTL: new(gc.TTL("1d"))})
	for name, c := range map[string]struct {
		fact *lifecycle.Fact
		rule *testbuilders.RuleBuilder
		over bool
		want gc.TTL
	}{
		"as written":                   {job("j").Fact(), testbuilders.Rule("r", "90m"), false, "1h30m"},
		"never":                        {job("j").Fact(), testbuilders.Rule("r", "never"), false, "never"},
		"no limit by time":             {job("j").Fact(), testbuilders.Rule("r", "").WithoutTTL().Keeping(1), false, "never"},
		"whatever limits by count say": {job("j").Fact(), testbuilders.Rule("r", "2h").Keeping(1), true, "2h"},
		"the object's own":             {job("j").NativeTTL(600).Fact(), testbuilders.Rule("r", "2h"), false, "10m"},
		"an annotation":                {job("j").TTL("3h").Fact(), testbuilders.Rule("r", "2h"), false, "3h"},
		"cut to maxTTL":                {job("j").Fact(), testbuilders.Rule("r", "7d"), false, "1d"},
		"raised to minTTL":             {job("j").Fact(), testbuilders.Rule("r", "0s"), false, "5m"},
		"not finished":                 {testbuilders.Job("j").Fact(), testbuilders.Rule("r", "2h"), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var m policy.Matches
			m.Ask(c.fact, []*policy.Policy{compiled(t, testbuilders.Policy("p").Rules(c.rule))}, nil, nil, nil)
			m.Enforced[0].Over = c.over
			effective := policy.Resolve(policy.Object{Fact: c.fact}, m.Enforced)
			if got := effective.EffectiveTTL(m.Enforced, &bounds); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if m.Enforced[0].Over != c.over {
				t.Error("the match has changed")
			}
		})
	}
	effective := policy.Resolve(policy.Object{Fact: job("j").Fact()}, nil)
	if got := effective.EffectiveTTL(nil, &bounds); got != "" {
		t.Errorf("without policies: %q", got)
	}
}

// TestExtension: no explanation advises an annotation that cannot help.
func TestExtension(t *testing.T) {
	bounds := func(minTTL, maxTTL gc.TTL, allowNever bool) *policy.Bounds {
		out := limited(t, gc.Guardrails{MinTTL: &minTTL, MaxTTL: &maxTTL, AllowNever: &allowNever})
		return &out
	}
	ceiling, err := policy.CompileCluster(cluster(func(*gc.ClusterCleanupPolicySpec) {}))
	if err != nil {
		t.Fatal(err)
	}
	const annotate = "To keep it longer, use kubectl winnow keep or the annotation gc.winnow.dev/keep-until"
	for name, c := range map[string]struct {
		fact   *lifecycle.Fact
		mode   gc.AnnotationTTLMode
		bounds *policy.Bounds
		over   *policy.Policy
		want   string
	}{
		"an annotation": {job("j").Fact(), gc.AnnotationExtendOnly, &policy.NoBounds, nil, annotate},
		"up to a guardrail": {job("j").Fact(), gc.AnnotationAny, bounds("0s", "30d", false), nil,
			annotate + "; guardrails.maxTTL of limits limits that to 30d"},
		"up to a guardrail that allows never": {job("j").Fact(), gc.AnnotationAny, bounds("0s", "30d", true), nil,
			annotate + "; guardrails.maxTTL of limits limits that to 30d, unless it is kept forever"},
		"not beyond a guardrail": {job("j").Fact(), gc.AnnotationAny, bounds("0s", "90m", false), nil,
			"No annotation keeps it longer: guardrails.maxTTL of limits limits that to 1h30m"},
		"not beyond two guardrails": {job("j").Fact(), gc.AnnotationAny, bounds("3h", "150m", false), nil,
			"No annotation keeps it longer: guardrails.maxTTL of limits limits that to 2h30m"},
		"beyond a guardrail, with never": {job("j").Fact(), gc.AnnotationAny, bounds("0s", "90m", true), nil,
			annotate + "; guardrails.maxTTL of limits limits that to 1h30m, unless it is kept forever"},
		"ignored": {job("j").Fact(), gc.AnnotationIgnore, bounds("0s", "30d", false), nil,
			"Its policies ignore annotations: only a policy can keep it longer"},
		"a TTL of the object": {job("j").NativeTTL(7200).Fact(), gc.AnnotationAny, &policy.NoBounds, nil,
			"Its own spec sets its TTL: change that to keep it longer"},
		"a ceiling": {job("j").NativeTTL(7200).Fact(), gc.AnnotationAny, bounds("90m", "30d", true), ceiling,
			`No annotation protects it from the ceiling of ClusterCleanupPolicy "c": only a larger ceiling keeps it longer`},
		"a ceiling that takes it when its policy does": {job("j").Fact(), gc.AnnotationAny, bounds("2h", "30d", true), ceiling,
			`No annotation protects it from the ceiling of ClusterCleanupPolicy "c": only a larger ceiling keeps it longer`},
	} {
		var m policy.Matches
		m.Ask(c.fact, []*policy.Policy{compiled(t, testbuilders.Policy("p").Default("2h").Annotations(c.mode))}, nil, nil, nil)
		effective := policy.Resolve(policy.Object{Fact: c.fact}, m.Enforced)
		limits := policy.Limits{Bounds: c.bounds, Counted: c.over != nil, Over: c.over}
		if _, d := effective.Decide(limits, now); d.Action != wait {
			t.Fatalf("%s: %+v, and only what waits has an extension", name, d)
		}
		if got := effective.Extension(limits); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestWhenDue: the explanation of a waiting candidate says why it will be held.
func TestWhenDue(t *testing.T) {
	var m policy.Matches
	fact := job("j").TTL("soon").Fact()
	m.Ask(fact, []*policy.Policy{compiled(t, testbuilders.Policy("p").Default("2h"))}, nil, nil, nil)
	effective := policy.Resolve(policy.Object{Fact: fact}, m.Enforced)
	if reason, detail := effective.WhenDue(); reason != policy.ReasonInvalidAnnotation || !strings.Contains(detail, `"soon"`) {
		t.Errorf("got %s: %s", reason, detail)
	}
}

// TestSentences: every reason has a different sentence.
func TestSentences(t *testing.T) {
	seen := map[string]policy.Reason{}
	for _, reason := range policy.Reasons {
		sentence := policy.Decision{Reason: reason}.Sentence()
		if sentence == "" || strings.HasSuffix(sentence, ".") {
			t.Errorf("%s: %q is no sentence without its full stop", reason, sentence)
		}
		if other, ok := seen[sentence]; ok {
			t.Errorf("%s and %s have the same sentence %q", reason, other, sentence)
		}
		seen[sentence] = reason
	}
	if got, want := (policy.Decision{Reason: policy.ReasonHeld, Detail: "x"}).Sentence(), ": x"; !strings.HasSuffix(got, want) {
		t.Errorf("%q has no detail", got)
	}
}

// TestName covers the fields of a policy that the tables above do not cover.
func TestName(t *testing.T) {
	p := compiled(t, testbuilders.Policy("p").Default("1h"))
	want := gc.CandidatePolicy{Kind: "CleanupPolicy", Name: "p", Mode: gc.ModeEnforce}
	if got := policy.Name(p, nil); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
