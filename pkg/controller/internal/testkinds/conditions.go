// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package testkinds

import (
	"testing"

	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/expressions"
)

// NoConditions is for readings without match conditions.
func NoConditions(string) map[string]*lifecycle.Conditions { return nil }

// InTeamA returns match conditions that the objects of namespace team-a have, and no others.
func InTeamA(t *testing.T, conditions ...string) func(string) map[string]*lifecycle.Conditions {
	t.Helper()
	all := map[string]*lifecycle.Conditions{"team-a": Conditions(t, conditions...)}
	return func(string) map[string]*lifecycle.Conditions { return all }
}

// Conditions returns compiled match conditions, each by its text.
func Conditions(t *testing.T, conditions ...string) *lifecycle.Conditions {
	t.Helper()
	own := map[string]*expressions.Expression{}
	for _, text := range conditions {
		e, err := expressions.New(text, expressions.Condition)
		if err != nil {
			t.Fatal(err)
		}
		own[text] = e
	}
	return lifecycle.NewConditions(nil, own, nil)
}

// ExpectResults fails unless the object of team-a, and it alone, has these results.
func ExpectResults(t *testing.T, k *facts.Compact, want map[string]bool) {
	t.Helper()
	for text, is := range want {
		matches, failure, known := k.Conditions.Result(text)
		switch {
		case k.Namespace != "team-a":
			if known {
				t.Errorf("%s was evaluated for %s/%s", text, k.Namespace, k.Name())
			}
		case !known || failure != "" || matches != is:
			t.Errorf("%s for %s/%s: %t, %q, known: %t", text, k.Namespace, k.Name(), matches, failure, known)
		}
	}
}
