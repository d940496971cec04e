// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strings"
	"testing"

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
	c := NewConditions(group(t, fails, yes), group(t, no, yes, "object.other == 2"))
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
	if r := (*Conditions)(nil).Evaluate(nil); r.Conditions != nil || NewConditions(nil, nil) != nil {
		t.Error("there are results without conditions")
	}
}

// TestFailuresAreShort: they may repeat values of the object.
func TestFailuresAreShort(t *testing.T) {
	const text = "timestamp(object.at) == timestamp(0)"
	r := NewConditions(nil, group(t, text)).Evaluate(map[string]any{"at": strings.Repeat("x", 10_000)})
	if _, failure, _ := r.Result(text); failure == "" || len(failure) > maxFailureLength+3 {
		t.Errorf("the failure has %d bytes", len(failure))
	}
}

// TestGroupsHaveTheirOwnBudget: what a namespace evaluates leaves enough for cluster policies, and the other way round.
func TestGroupsHaveTheirOwnBudget(t *testing.T) {
	const expensive, cheap, other = "object.text.contains(object.text)", "object.text != ''", "'' != object.text"
	long := map[string]any{"text": strings.Repeat("x", 10_000)}
	for name, c := range map[string]*Conditions{
		"own":     NewConditions(group(t, cheap), group(t, expensive, other)),
		"cluster": NewConditions(group(t, expensive, other), group(t, cheap)),
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

func TestCovers(t *testing.T) {
	const a, b = "object.a == 1", "object.b == 1"
	none := (*Conditions)(nil)
	own, cluster, both := NewConditions(nil, group(t, a)), NewConditions(group(t, a), nil), NewConditions(group(t, a), group(t, b))
	for _, c := range []struct {
		c, of *Conditions
		want  bool
	}{
		{none, none, true}, {own, none, true}, {none, own, false}, {own, own, true}, {own, NewConditions(nil, group(t, a)), true},
		{cluster, own, true}, {own, cluster, false}, {both, own, true}, {both, cluster, true}, {own, both, false},
		{NewConditions(group(t, b), group(t, a)), both, false}, {none.With(own), own, true}, {own.With(both), both, true},
	} {
		if got := c.c.Covers(c.of); got != c.want {
			t.Errorf("%+v covers %+v: %t", c.c, c.of, got)
		}
	}
	if own.Digest == cluster.Digest || own.Digest != NewConditions(nil, group(t, a)).Digest {
		t.Error("the digest does not identify the conditions")
	}
}
