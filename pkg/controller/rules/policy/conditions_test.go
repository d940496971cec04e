// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/expressions"
)

// TestSecretsAreNotRepeated: the error of a match condition may have the data of a Secret, and the status of policies is read by many.
func TestSecretsAreNotRepeated(t *testing.T) {
	const text = "'a'.matches(object.metadata.name)"
	e, err := expressions.New(text, expressions.Condition)
	if err != nil {
		t.Fatal(err)
	}
	results := lifecycle.NewConditions(nil, map[string]*expressions.Expression{text: e}, nil).Evaluate(map[string]any{"metadata": map[string]any{"name": "[hunter2"}})
	for resource, repeated := range map[string]bool{"secrets": false, "configmaps": true} {
		p, err := policy.Compile(&gc.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: testbuilders.Home, Name: "p"}, Spec: gc.CleanupPolicySpec{
			Mode: gc.ModeEnforce, AnnotationTTL: gc.AnnotationExtendOnly, Rules: []gc.CleanupRule{{
				Name: "r", Resources: []string{resource}, After: gc.AfterCreated, TTL: new(gc.TTL("1h")),
				MatchConditions: []gc.MatchCondition{{Name: "c", Expression: text}},
			}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		f := testbuilders.Job("a").Fact()
		f.Resource, f.Conditions = resource, results
		var m policy.Matches
		m.Ask(f, []*policy.Policy{p}, nil, nil, nil)
		effective := policy.Resolve(policy.Object{Fact: f}, m.Enforced)
		_, d := effective.Decide(policy.Limits{Bounds: &policy.NoBounds}, testbuilders.Now)
		if d.Reason != policy.ReasonExpressionError || strings.Contains(d.Detail, "hunter2") != repeated {
			t.Errorf("%s: %+v", resource, d)
		}
	}
}

// TestDataOfSecretsIsNotRead: a stored policy whose conditions read more than the metadata of Secrets cannot be used.
func TestDataOfSecretsIsNotRead(t *testing.T) {
	for text, ok := range map[string]bool{
		"object.metadata.name == 'a' && object.kind == 'Secret'": true, "object.type == 'a'": false, "has(object.data.a)": false, "object == object": false,
	} {
		_, err := policy.Compile(&gc.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: testbuilders.Home, Name: "p"}, Spec: gc.CleanupPolicySpec{
			Mode: gc.ModeEnforce, AnnotationTTL: gc.AnnotationExtendOnly, Rules: []gc.CleanupRule{{
				Name: "r", Resources: []string{"configmaps", gc.ResourceSecrets}, After: gc.AfterCreated, TTL: new(gc.TTL("1h")),
				MatchConditions: []gc.MatchCondition{{Name: "c", Expression: text}},
			}},
		}})
		if (err == nil) != ok {
			t.Errorf("%s: error %v", text, err)
		}
	}
}

// TestMatchConditions: a false condition decides, whatever the others are. Otherwise a condition that failed or was not evaluated holds the
// object, and no later rule applies. ValidatingAdmissionPolicies work in the same way.
func TestMatchConditions(t *testing.T) {
	const yes, no, fails, unknown = "object.a == 1", "object.a == 2", "object.b == 1", "object.c == 1"
	evaluated := map[string]*expressions.Expression{}
	for _, text := range []string{yes, no, fails} {
		e, err := expressions.New(text, expressions.Condition)
		if err != nil {
			t.Fatal(err)
		}
		evaluated[text] = e
	}
	results := lifecycle.NewConditions(nil, evaluated, nil).Evaluate(map[string]any{"a": int64(1)})
	for name, c := range map[string]struct {
		conditions []string
		rule       string
		reason     policy.Reason // of a hold; empty if the object must be deleted
		detail     string
	}{
		"none":                   {nil, "first", "", ""},
		"true":                   {[]string{yes}, "first", "", ""},
		"false":                  {[]string{no}, "second", "", ""},
		"true and false":         {[]string{yes, no}, "second", "", ""},
		"failed":                 {[]string{fails}, "first", policy.ReasonExpressionError, `match condition "c0" of rule "first" of cleanuppolicies.gc.winnow.dev/p: expression 'object.b == 1' resulted in error: no such key: b`},
		"true and failed":        {[]string{yes, fails}, "first", policy.ReasonExpressionError, `match condition "c1"`},
		"failed and false":       {[]string{fails, no}, "second", "", ""},
		"not evaluated":          {[]string{unknown}, "first", policy.ReasonUnobserved, `match condition "c0" of rule "first" of cleanuppolicies.gc.winnow.dev/p has not been evaluated for it yet`},
		"not evaluated, false":   {[]string{unknown, no}, "second", "", ""},
		"not evaluated, failed":  {[]string{unknown, fails}, "first", policy.ReasonExpressionError, `"c1"`},
		"failed, not evaluated":  {[]string{fails, unknown}, "first", policy.ReasonExpressionError, `"c0"`},
		"true, failed and false": {[]string{yes, fails, no}, "second", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			rules := []gc.CleanupRule{{Name: "first", TTL: new(gc.TTL("1h"))}, {Name: "second", TTL: new(gc.TTL("1h"))}}
			for i, text := range c.conditions {
				rules[0].MatchConditions = append(rules[0].MatchConditions, gc.MatchCondition{Name: "c" + string(rune('0'+i)), Expression: text})
			}
			p, err := policy.Compile(&gc.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: testbuilders.Home, Name: "p"}, Spec: gc.CleanupPolicySpec{
				Mode: gc.ModeEnforce, AnnotationTTL: gc.AnnotationExtendOnly, Rules: rules,
			}})
			if err != nil {
				t.Fatal(err)
			}
			f := testbuilders.Job("a").Complete(testbuilders.Now.Add(-2 * time.Hour)).Fact()
			f.Conditions = results
			var m policy.Matches
			m.Ask(f, []*policy.Policy{p}, nil, nil, nil)
			effective := policy.Resolve(policy.Object{Fact: f}, m.Enforced)
			r, d := effective.Decide(policy.Limits{Bounds: &policy.NoBounds}, testbuilders.Now)
			if r.RuleName() != c.rule {
				t.Errorf("rule %q decides, want %q", r.RuleName(), c.rule)
			}
			switch {
			case c.reason == "" && (d.Action != policy.Delete || d.Reason != policy.ReasonExpired):
				t.Errorf("got %+v", d)
			case c.reason != "" && (d.Action != policy.Hold || d.Reason != c.reason || !strings.Contains(d.Detail, c.detail)):
				t.Errorf("got %+v, want %s, %s", d, c.reason, c.detail)
			}
			counting := effective.Counting(&policy.NoBounds, testbuilders.Now)
			if counting.Counts != (c.reason == "") {
				t.Errorf("limits count the object: %t", counting.Counts)
			}
		})
	}
}
