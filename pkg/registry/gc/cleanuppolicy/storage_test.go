// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanuppolicy

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// TestReach: a user who may delete only Pods may not replace a rule that keeps Jobs.
func TestReach(t *testing.T) {
	never, hour, limit := gc.TTL("never"), gc.TTL("1h"), int64(3)
	rule := func(resource string, ttl gc.TTL) gc.CleanupRule {
		return gc.CleanupRule{Resources: []string{resource}, TTL: &ttl}
	}
	keepJobs, ofPods := rule(gc.ResourceJobs, never), rule(gc.ResourcePods, hour)
	both := []string{gc.ResourceJobs, gc.ResourcePods}
	spec := func(rules ...gc.CleanupRule) *gc.CleanupPolicySpec { return &gc.CleanupPolicySpec{Rules: rules} }
	for name, tc := range map[string]struct {
		spec, old *gc.CleanupPolicySpec
		want      []string
	}{
		"a new rule":               {spec: spec(ofPods), want: both[1:]},
		"nothing":                  {spec: spec()},
		"a rule replaced":          {spec: spec(ofPods), old: spec(keepJobs), want: both},
		"a rule dropped":           {spec: spec(), old: spec(keepJobs), want: both[:1]},
		"a rule weakened":          {spec: spec(rule(gc.ResourceJobs, hour)), old: spec(keepJobs), want: both[:1]},
		"a rule before it":         {spec: spec(ofPods, keepJobs), old: spec(keepJobs), want: both},
		"a default dropped":        {spec: spec(ofPods), old: &gc.CleanupPolicySpec{TTLAfterFinished: &never}, want: both},
		"a capacity dropped":       {spec: spec(), old: &gc.CleanupPolicySpec{Capacity: &gc.Capacity{MaxObjects: &limit}}, want: both},
		"a change of what is kept": {spec: spec(rule(gc.ResourcePods, never)), old: spec(ofPods), want: both[1:]},
		"to Preview":               {spec: &gc.CleanupPolicySpec{Mode: gc.ModePreview}, old: spec(keepJobs), want: both[:1]},
	} {
		if got := sets.List(kind.Reached(tc.spec, tc.old)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: reaches %q, want %q", name, got, tc.want)
		}
	}
}
