// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

const archived = "object.metadata.?annotations[?'example.com/archived'].orValue('') == 'true'"

// waiting makes a rule wait until objects are archived, for a week.
func waiting(change ...func(*gc.WaitFor)) func(*gc.CleanupRule) {
	return func(r *gc.CleanupRule) {
		r.WaitFor = &gc.WaitFor{Expression: archived, AtMost: ttl("7d")}
		for _, f := range change {
			f(r.WaitFor)
		}
	}
}

func atMost(d gc.TTL) func(*gc.WaitFor) { return func(w *gc.WaitFor) { w.AtMost = ttl(d) } }

func expression(text string) func(*gc.WaitFor) { return func(w *gc.WaitFor) { w.Expression = text } }

func TestWaitFor(t *testing.T) {
	secrets := unused("configmaps", "secrets")
	for name, tc := range map[string]struct {
		rule   gc.CleanupRule
		field  string // in waitFor; empty if the rule is valid
		reason field.ErrorType
		remedy string
	}{
		"a week":                  {rule: rule("a", waiting())},
		"ten years":               {rule: rule("a", waiting(atMost("3650d")))},
		"a second":                {rule: rule("a", waiting(atMost("1s")))},
		"delete after that":       {rule: rule("a", waiting(func(w *gc.WaitFor) { w.OnTimeout = gc.WaitTimeoutDelete }))},
		"of Secrets":              {rule: rule("a", secrets, waiting())},
		"for a field of a Job":    {rule: rule("a", waiting(expression("object.status.succeeded > 0")))},
		"no time":                 {rule("a", waiting(func(w *gc.WaitFor) { w.AtMost = nil })), "atMost", field.ErrorTypeRequired, `"7d"`},
		"an empty time":           {rule("a", waiting(atMost(""))), "atMost", field.ErrorTypeInvalid, `use for example "12h" or "7d"`},
		"zero":                    {rule("a", waiting(atMost("0s"))), "atMost", field.ErrorTypeInvalid, "remove waitFor"},
		"never":                   {rule("a", waiting(atMost("never"))), "atMost", field.ErrorTypeInvalid, "onTimeout: Keep"},
		"for ever":                {rule("a", waiting(atMost("Forever"))), "atMost", field.ErrorTypeInvalid, "onTimeout: Keep"},
		"a unit":                  {rule("a", waiting(atMost("7 days"))), "atMost", field.ErrorTypeInvalid, `did you mean "7d"?`},
		"more than ten years":     {rule("a", waiting(atMost("3651d"))), "atMost", field.ErrorTypeInvalid, "ten years"},
		"no expression":           {rule("a", waiting(expression(" "))), "expression", field.ErrorTypeRequired, waitExample},
		"a broken expression":     {rule("a", waiting(expression("object.metadata["))), "expression", field.ErrorTypeInvalid, "Syntax error"},
		"a text":                  {rule("a", waiting(expression("'true'"))), "expression", field.ErrorTypeInvalid, "must evaluate to bool"},
		"a long expression":       {rule("a", waiting(expression("true || "+strings.Repeat("true || ", 600)+"true"))), "expression", field.ErrorTypeTooLong, ""},
		"the data of Secrets":     {rule("a", secrets, waiting(expression("has(object.data.archived)"))), "expression", field.ErrorTypeInvalid, "wait for an annotation"},
		"everything of Secrets":   {rule("a", secrets, waiting(expression("object == object"))), "expression", field.ErrorTypeInvalid, "only object.metadata"},
		"the time is not visible": {rule("a", waiting(expression("now() > object.status.completionTime"))), "expression", field.ErrorTypeInvalid, "undeclared reference"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := ValidateCleanupPolicy(policy(tc.rule))
			if tc.field == "" {
				if len(errs) > 0 {
					t.Errorf("got %v", errs)
				}
				return
			}
			if len(errs) != 1 || errs[0].Field != "spec.rules[0].waitFor."+tc.field || errs[0].Type != tc.reason ||
				!strings.Contains(errs[0].Detail, tc.remedy) {
				t.Errorf("got %v, want %s of waitFor.%s with %q", errs, tc.reason, tc.field, tc.remedy)
			}
		})
	}
}

// TestWaitForCounts: each waitFor counts as a match condition.
func TestWaitForCounts(t *testing.T) {
	rules := manyConditions(4)
	if errs := ValidateCleanupPolicy(policy(rules...)); len(errs) > 0 {
		t.Fatalf("64 conditions: %v", errs)
	}
	waiting()(&rules[0])
	if errs := ValidateCleanupPolicy(policy(rules...)); len(errs) != 1 || errs[0].Type != field.ErrorTypeTooMany ||
		!strings.Contains(errs[0].Detail, "each waitFor counts as one") {
		t.Errorf("got %v", errs)
	}
}

func TestWaitForWarnings(t *testing.T) {
	deletes := func(w *gc.WaitFor) { w.OnTimeout = gc.WaitTimeoutDelete }
	without := func(r *gc.CleanupRule) { r.TTL = nil }
	never := func(r *gc.CleanupRule) { r.TTL = ttl(gc.TTLNever) }
	few := limited(gc.Capacity{MaxObjects: number(3)})
	for name, tc := range map[string]struct {
		rule gc.CleanupRule
		want string // part; empty if there is no warning
	}{
		"a ttl":                             {rule("a", waiting()), ""},
		"never":                             {rule("a", never, waiting()), "spec.rules[0].waitFor: has no effect"},
		"only a deadline":                   {rule("a", without, func(r *gc.CleanupRule) { r.ActiveDeadline = ttl("6h") }, waiting()), "spec.rules[0].waitFor: has no effect"},
		"capacity":                          {rule("a", without, few, waiting()), ""},
		"capacity, and never":               {rule("a", never, few, waiting()), ""},
		"capacity, deleting":                {rule("a", without, few, waiting(deletes)), "spec.rules[0].waitFor.onTimeout: Delete has no effect"},
		"capacity and a ttl, deleting":      {rule("a", few, waiting(deletes)), ""},
		"capacity and a ttl of never, then": {rule("a", never, few, waiting(deletes)), "set ttl"},
	} {
		var want []string
		if tc.want != "" {
			want = append(want, tc.want)
		}
		if got := Warnings(policy(tc.rule)); !slices.EqualFunc(got, want, strings.Contains) {
			t.Errorf("%s: got %q, want %q", name, got, fmt.Sprint(want))
		}
	}
}
