// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

func naming(resources ...string) *gc.CleanupPolicy {
	return &gc.CleanupPolicy{Spec: gc.CleanupPolicySpec{Rules: []gc.CleanupRule{{Name: "jobs"}, {Name: "others", Resources: resources}}}}
}

// created is naming for a rule that counts from the creation.
func created(resources ...string) *gc.CleanupPolicy {
	p := naming(resources...)
	p.Spec.Rules[1].After = gc.AfterCreated
	return p
}

// kept is naming for a rule with a TTL, an hour if it is nil.
func kept(ttl *gc.TTL, resources ...string) *gc.CleanupPolicy {
	p := naming(resources...)
	if ttl == nil {
		ttl = new(gc.TTL("1h"))
	}
	p.Spec.Rules[1].TTL = ttl
	return p
}

// TestNamed: a policy cannot begin to name what Winnow cannot delete, and is warned of what the cluster does not serve.
func TestNamed(t *testing.T) {
	n := namesResources{
		served: func(resource string) gc.ServedResource {
			return map[string]gc.ServedResource{
				"racks.example.com":   {Refusal: "is cluster-scoped"},
				"widget.example.com":  {Missing: true, Similar: "widgets.example.com"},
				"runs.example.com":    {Missing: true},
				"endless.example.com": {Endless: true},
				"disks.example.com":   {TakesAlong: "their claims; to keep these, do that"},
			}[resource]
		},
		kind: "CleanupPolicy",
		in:   func(p Policy) []NamedResource { return NamedByRules(&p.(*gc.CleanupPolicy).Spec) },
	}
	for name, tc := range map[string]struct {
		p        *gc.CleanupPolicy
		old      runtime.Object
		refused  string
		warnings []string
	}{
		"nothing":    {p: naming()},
		"served":     {p: naming("widgets.example.com")},
		"everything": {p: naming(gc.ResourceAll)},
		"refused":    {p: naming("pods", "racks.example.com"), refused: `spec.rules[1].resources[1]: Invalid value: "racks.example.com": is cluster-scoped`},
		"begins":     {p: naming("racks.example.com"), old: naming("pods"), refused: "spec.rules[1].resources[0]"},
		"was so":     {p: naming("racks.example.com"), old: naming("pods", "racks.example.com")},
		"not served": {p: naming("runs.example.com"), warnings: []string{"spec.rules[1].resources[0]: the cluster does not serve runs.example.com; this applies as soon as it does"}},
		"never finishes": {p: naming("endless.example.com"), warnings: []string{
			"spec.rules[1].resources[0]: endless.example.com have no lifecycle, so Winnow does not know when they have finished and deletes none; " +
				"write a ResourceLifecycle, or set after: Created or after: Matched",
		}},
		"takes data along": {p: kept(nil, "disks.example.com"), warnings: []string{
			"spec.rules[1].resources[0]: deleting objects of disks.example.com also deletes their claims; to keep these, do that",
		}},
		"would take data along": {p: kept(new(gc.TTLNever), "disks.example.com")},
		"takes no data along":   {p: kept(new(gc.TTL("1h")), "widgets.example.com")},
		"need not finish":       {p: created("endless.example.com")},
		"a typo": {p: naming("widget.example.com"), warnings: []string{
			`spec.rules[1].resources[0]: the cluster does not serve widget.example.com; this applies as soon as it does. Did you mean "widgets.example.com"?`,
		}},
	} {
		err := n.check(context.Background(), tc.p, tc.old)
		if tc.refused == "" && err != nil || tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused)) {
			t.Errorf("%s: got %v, want %q", name, err, tc.refused)
		}
		if got := n.warnings(tc.p); !slices.Equal(got, tc.warnings) {
			t.Errorf("%s: warnings %q, want %q", name, got, tc.warnings)
		}
	}
}
