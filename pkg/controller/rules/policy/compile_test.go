// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

func TestCompile(t *testing.T) {
	p, err := policy.Compile(testbuilders.Policy("p").Generation(7).Preview().Obj())
	if err != nil {
		t.Fatal(err)
	}
	if p.String() != "team-a/p" || p.UID != "uid-p" || p.Generation != 7 || !p.Preview || !p.DoesNothing() {
		t.Errorf("got %+v", p)
	}
}

func matchedRule() *testbuilders.RuleBuilder {
	return testbuilders.Rule("r", "1h").For("pods").Labelled("app", "x").AfterMatched()
}

func TestCompileErrors(t *testing.T) {
	badSelector := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}
	rule := func(r *testbuilders.RuleBuilder) *testbuilders.PolicyBuilder {
		return testbuilders.Policy("p").Rules(testbuilders.Rule("good", "1h"), r)
	}
	for name, c := range map[string]struct {
		policy *testbuilders.PolicyBuilder
		want   string
	}{
		"a mode of another version":           {testbuilders.Policy("p").Mode("Simulate"), `spec.mode: "Simulate" is not one of ["Enforce" "Preview"]`},
		"an annotationTTL of another version": {testbuilders.Policy("p").Annotations("ShortenOnly"), `spec.annotationTTL: "ShortenOnly" is not one of`},
		"no defaults":                         {testbuilders.Policy("p").Annotations(""), `spec.annotationTTL: "" is not one of`},
		"a default TTL":                       {testbuilders.Policy("p").Default("1y"), "spec.ttlAfterFinished: has the unknown unit"},
		"a TTL":                               {rule(testbuilders.Rule("r", "-1h")), "spec.rules[1]: ttl: must not be negative"},
		"no TTL":                              {rule(testbuilders.Rule("r", "").WithoutTTL()), "spec.rules[1]: ttl, capacity and activeDeadline are missing"},
		"a selector":                          {rule(testbuilders.Rule("r", "1h").Selector(badSelector)), "spec.rules[1]: selector: "},
		"a resource":                          {rule(testbuilders.Rule("r", "1h").For("jobs.batch", "secret")), `spec.rules[1]: resources: "secret" needs an API group`},
		"a name twice":                        {rule(testbuilders.Rule("good", "1h")), `spec.rules[1].name: "good" is taken`},
		"a name of ours":                      {rule(testbuilders.Rule("default", "1h")), `spec.rules[1].name: "default" is taken`},
		"an outcome":                          {rule(testbuilders.Rule("r", "1h").Outcome("Cancelled")), `spec.rules[1]: outcome: "Cancelled" is not one of`},
		"a resource that is never deleted":    {rule(testbuilders.Rule("r", "1h").For("nodes")), `spec.rules[1]: resources: "nodes" is never deleted`},
		"all resources":                       {rule(testbuilders.Rule("r", "1h").For("*")), `spec.rules[1].resources: "*" is not allowed in a policy of a namespace`},
		"all resources and others":            {rule(testbuilders.Rule("r", "1h").For("*", "pods")), `spec.rules[1]: resources: "*" wildcards are not allowed`},
		"unfinished":                          {rule(matchedRule().Unfinished("Maybe")), `spec.rules[1]: unfinished: "Maybe" is not one of`},
		"unfinished after the finish":         {rule(testbuilders.Rule("r", "1h").Unfinished("Delete")), "spec.rules[1]: unfinished: needs after: Created or Matched"},
		"after: Matched for Events":           {rule(matchedRule().For("events")), `spec.rules[1]: resources: "events" can be counted only from their creation`},
		"after: Matched for everything":       {rule(testbuilders.Rule("r", "1h").For("pods").AfterMatched()), "spec.rules[1]: after: Matched needs resources"},
		"dependents":                          {rule(testbuilders.Rule("r", "1h").Dependents("Always")), `spec.rules[1]: dependents: "Always" is not one of`},
		"a propagation":                       {rule(testbuilders.Rule("r", "1h").Propagation("Orphan")), `spec.rules[1]: propagationPolicy: "Orphan" is not one of`},
		"what was not understood whole":       {testbuilders.Policy("p").Annotated(gc.AnnotationUnreadable, `unknown field "spec.x"`), `unknown field "spec.x"`},
		"a word of great length is cut":       {testbuilders.Policy("p").Mode(gc.PolicyMode(strings.Repeat("x", 1000))), `spec.mode: "` + strings.Repeat("x", 64) + `" is`},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := policy.Compile(c.policy.Obj())
			if p != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v; want an error with %q", p, err, c.want)
			}
		})
	}
}

// finishing are the resources that have a lifecycle.
func finishing() []string { return []string{gc.ResourceJobs, gc.ResourcePods, "runs.example.com"} }

func TestResources(t *testing.T) {
	for name, c := range map[string]struct {
		policy *testbuilders.PolicyBuilder
		want   []string
	}{
		"an empty policy":                   {testbuilders.Policy("p"), nil},
		"defaults are for Jobs and Pods":    {testbuilders.Policy("p").Default("1h"), []string{"jobs.batch", "pods"}},
		"so is a rule that names nothing":   {testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h")), []string{"jobs.batch", "pods"}},
		"a rule for a custom resource":      {testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h").For("runs.example.com")), []string{"runs.example.com"}},
		"a rule for one":                    {testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h").For("pods")), []string{"pods"}},
		"rules for both, each once, sorted": {testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h").For("pods", "pods"), testbuilders.Rule("s", "1h").For("jobs.batch", "pods")), []string{"jobs.batch", "pods"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := compiled(t, c.policy)
			if got := p.Resources(finishing); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got, want := p.DoesNothing(), len(c.want) == 0; got != want {
				t.Errorf("DoesNothing is %v", got)
			}
		})
	}
}

func compiled(t interface {
	Helper()
	Fatal(...any)
}, b *testbuilders.PolicyBuilder) *policy.Policy {
	t.Helper()
	p, err := policy.Compile(b.Obj())
	if err != nil {
		t.Fatal(err)
	}
	return p
}
