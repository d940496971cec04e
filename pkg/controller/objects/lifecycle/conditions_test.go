// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/expressions"
)

func group(t *testing.T, texts ...string) map[string]*expressions.Expression {
	t.Helper()
	out := map[string]*expressions.Expression{}
	for _, text := range texts {
		e, err := expressions.New(text, expressions.Condition)
		if err != nil {
			t.Fatal(err)
		}
		out[text] = e
	}
	return out
}

func TestConditions(t *testing.T) {
	const yes, no, fails = "object.name == 'a'", "object.name == 'b'", "object.size == 1"
	c := NewConditions(group(t, fails, yes), group(t, no, yes, "object.other == 2"), nil)
	r := c.Evaluate(map[string]any{"name": "a"})
	for text, want := range map[string]struct {
		matches bool
		failure string
		known   bool
	}{
		yes: {true, "", true}, no: {false, "", true}, fails: {false, "no such key: size", true},
		"object.other == 2": {false, "no such key: other", true}, "object.name == 'c'": {false, "", false},
	} {
		matches, failure, known := r.Result(text)
		if matches != want.matches || known != want.known || !strings.HasSuffix(failure, want.failure) || (failure == "") != (want.failure == "") {
			t.Errorf("%s: %t, %q, known: %t", text, matches, failure, known)
		}
	}
	if matches, failure, known := (&Results{}).Result(yes); matches || failure != "" || known {
		t.Error("there is a result that was not evaluated")
	}
	if r := (*Conditions)(nil).Evaluate(nil); r.Conditions != nil || NewConditions(nil, nil, nil) != nil {
		t.Error("there are results without conditions")
	}
}

// TestFailuresAreShort: they may repeat values of the object.
func TestFailuresAreShort(t *testing.T) {
	const text = "timestamp(object.at) == timestamp(0)"
	r := NewConditions(nil, group(t, text), nil).Evaluate(map[string]any{"at": strings.Repeat("x", 10_000)})
	if _, failure, _ := r.Result(text); failure == "" || len(failure) > maxFailureLength+3 {
		t.Errorf("the failure has %d bytes", len(failure))
	}
}

// TestGroupsHaveTheirOwnBudget: what a namespace evaluates leaves enough for cluster policies, and the other way round.
func TestGroupsHaveTheirOwnBudget(t *testing.T) {
	const expensive, cheap, other = "object.text.contains(object.text)", "object.text != ''", "'' != object.text"
	long := map[string]any{"text": strings.Repeat("x", 10_000)}
	for name, c := range map[string]*Conditions{
		"own":     NewConditions(group(t, cheap), group(t, expensive, other), nil),
		"cluster": NewConditions(group(t, expensive, other), group(t, cheap), nil),
	} {
		r := c.Evaluate(long)
		if matches, failure, _ := r.Result(cheap); !matches {
			t.Errorf("%s: %s", name, failure)
		}
		if _, failure, _ := r.Result(expensive); !strings.Contains(failure, "out of budget") {
			t.Errorf("%s: failure %q", name, failure)
		}
	}
}

// TestManyConditions: so many are evaluated, and the errors of the first few that fail are stored. All others fail too.
func TestManyConditions(t *testing.T) {
	own := map[string]*expressions.Expression{}
	text := func(i int) string { return fmt.Sprintf("object.f%03d == 1", i) }
	for i := range MaxConditions + 1 {
		maps.Copy(own, group(t, text(i)))
	}
	r := NewConditions(group(t, "object.a == 1"), own, nil).Evaluate(map[string]any{"a": int64(1)})
	size := len(r.Values)
	for _, failure := range r.Failures {
		size += len(failure)
	}
	if size > 2000 {
		t.Errorf("the results have %d bytes", size)
	}
	for text, want := range map[string]string{
		"object.a == 1": "", text(0): "no such key: f000", text(maxFailures - 1): "no such key: f003", text(maxFailures): "others for the same object",
		text(MaxConditions - 1): "others for the same object", text(MaxConditions): "more than 256 match conditions",
	} {
		matches, failure, known := r.Result(text)
		if !known || matches != (want == "") || !strings.Contains(failure, want) {
			t.Errorf("%s: %t, %q, known: %t; want %q", text, matches, failure, known, want)
		}
	}
}

// TestFieldsThatAreNotDecoded: an expression that reads such a field would see it as absent, so it fails.
func TestFieldsThatAreNotDecoded(t *testing.T) {
	const newer, older = "!has(object.newer)", "!has(object.older)"
	decodes := func(path []string) bool { return path[0] != "newer" }
	none := (*Conditions)(nil)
	for name, c := range map[string]*Conditions{
		"new": NewConditions(nil, group(t, newer, older), decodes), "both": none.With(NewConditions(nil, group(t, newer, older), decodes)),
	} {
		r := c.Evaluate(map[string]any{})
		if matches, failure, known := r.Result(newer); matches || !known || !strings.Contains(failure, "upgrade Winnow") {
			t.Errorf("%s: %t, %q, known: %t", name, matches, failure, known)
		}
		if matches, failure, _ := r.Result(older); !matches {
			t.Errorf("%s: %s is not true: %s", name, older, failure)
		}
	}
}

// TestConditionsOnOurDeadline: a condition sees an object as it would be without the deadline that Winnow has set, so setting it changes
// nothing. It sees a deadline that somebody else has set or changed.
func TestConditionsOnOurDeadline(t *testing.T) {
	const without = "!has(object.spec.activeDeadlineSeconds) && !has(object.metadata.annotations)"
	c := NewConditions(nil, group(t, without), nil)
	for name, tc := range map[string]struct {
		annotation string
		seconds    any
		want       bool
	}{
		"ours": {"21600", int64(21600), true}, "changed": {"21600", int64(60), false}, "removed": {"21600", nil, false}, "none": {"", nil, true},
		"theirs": {"", int64(60), false},
	} {
		content := map[string]any{
			"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{}, "spec": map[string]any{"parallelism": int64(1)},
		}
		if tc.annotation != "" {
			content["metadata"].(map[string]any)["annotations"] = map[string]any{gc.AnnotationActiveDeadline: tc.annotation}
		}
		if tc.seconds != nil {
			content["spec"].(map[string]any)["activeDeadlineSeconds"] = tc.seconds
		}
		before := runtime.DeepCopyJSON(content)
		r := c.Evaluate(content)
		if matches, failure, _ := r.Result(without); matches != tc.want {
			t.Errorf("%s: %t, %s", name, matches, failure)
		}
		if !reflect.DeepEqual(content, before) {
			t.Errorf("%s: the object has changed to %v", name, content)
		}
		if content["kind"] = "Run"; name == "ours" {
			r := c.Evaluate(content)
			if matches, _, _ := r.Result(without); matches {
				t.Error("what is no Job loses its deadline")
			}
		}
	}
}

func TestCovers(t *testing.T) {
	const a, b = "object.a == 1", "object.b == 1"
	none := (*Conditions)(nil)
	own, cluster, both := NewConditions(nil, group(t, a), nil), NewConditions(group(t, a), nil, nil), NewConditions(group(t, a), group(t, b), nil)
	for _, c := range []struct {
		c, of *Conditions
		want  bool
	}{
		{none, none, true}, {own, none, true}, {none, own, false}, {own, own, true}, {own, NewConditions(nil, group(t, a), nil), true},
		{cluster, own, true}, {own, cluster, false}, {both, own, true}, {both, cluster, true}, {own, both, false},
		{NewConditions(group(t, b), group(t, a), nil), both, false}, {none.With(own), own, true}, {own.With(both), both, true},
	} {
		if got := c.c.Covers(c.of); got != c.want {
			t.Errorf("%+v covers %+v: %t", c.c, c.of, got)
		}
	}
	if own.Digest == cluster.Digest || own.Digest != NewConditions(nil, group(t, a), nil).Digest {
		t.Error("the digest does not identify the conditions")
	}
}
