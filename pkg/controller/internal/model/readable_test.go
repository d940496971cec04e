// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc/validation"
)

// TestReadablePoliciesAreValid sees to it that cases and drawn worlds have no other policies than an API server lets in, but
// for those that are meant to be unreadable.
func TestReadablePoliciesAreValid(t *testing.T) {
	cases, err := Cases()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		for _, fault := range faults(c.World) {
			t.Errorf("%s: %s", c.Name, fault)
		}
	}
	worlds(t, func(t *rapid.T, w *World) {
		for _, fault := range faults(w) {
			t.Error(fault)
		}
	})
}

func faults(w *World) []string {
	var out []string
	check := func(p policy, errs field.ErrorList) {
		if readable(p) && len(errs) > 0 {
			out = append(out, fmt.Sprintf("%s is readable, but %v", p.ref, errs.ToAggregate()))
		}
	}
	for _, p := range w.Policies {
		check(policy{ref: PolicyRef{p.Namespace, p.Name}, spec: &p.Spec}, validation.ValidateCleanupPolicy(p))
	}
	for _, p := range w.ClusterPolicies {
		check(policy{ref: PolicyRef{Name: p.Name}, spec: p.Spec.Defaults(), cluster: &p.Spec}, validation.ValidateClusterCleanupPolicy(p))
	}
	return out
}
