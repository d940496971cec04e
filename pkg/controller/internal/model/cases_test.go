// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
)

// TestCases holds the model to what was written by hand.
func TestCases(t *testing.T) {
	cases, err := model.Cases()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, c := range cases {
		if names[c.Name] {
			t.Errorf("there are two cases %q", c.Name)
		}
		names[c.Name] = true
		t.Run(c.Name, func(t *testing.T) { check(t, c) })
	}
}

func check(t *testing.T, c model.Case) {
	if diff := cmp.Diff(c.Answers, c.World.Answers()); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	previews := c.World.Previews()
	maps.DeleteFunc(previews, func(_ model.PolicyRef, answers map[types.UID]model.Answer) bool { return len(answers) == 0 })
	if diff := cmp.Diff(c.Previews, previews); diff != "" {
		t.Errorf("previews (-want +got):\n%s", diff)
	}
	propagations := c.World.Propagations()
	for uid, want := range c.Propagations {
		if propagations[uid] != want {
			t.Errorf("%s: propagation %q, want %q", uid, propagations[uid], want)
		}
	}
	if c.Before != nil {
		if diff := cmp.Diff(c.NewlyDue, countOf(model.NewlyDue(c.Before, c.World))); diff != "" {
			t.Errorf("newly due (-want +got):\n%s", diff)
		}
	}
	for namespace, want := range c.Order {
		if got := c.World.DeletionOrder(namespace); !slices.Equal(got, want) {
			t.Errorf("namespace %s: deleted in the order %q, want %q", namespace, got, want)
		}
	}
}

// countOf counts the objects of each policy in each namespace.
func countOf(all map[model.PolicyInNamespace][]types.UID) map[model.PolicyInNamespace]int {
	out := map[model.PolicyInNamespace]int{}
	for key, uids := range all {
		out[key] = len(uids)
	}
	return out
}
