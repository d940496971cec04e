// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// lookups counts how often a label is read, which each of the rules does once.
type lookups struct {
	labels.Set
	n int
}

func (l *lookups) Has(key string) bool { l.n++; return l.Set.Has(key) }

func (l *lookups) Get(key string) string { l.n++; return l.Set.Get(key) }

func (l *lookups) Lookup(key string) (string, bool) { l.n++; return l.Set.Lookup(key) }

// TestPreviewsMatchBesideOthers: a decision as if a Preview were enforced too asks no policy twice.
func TestPreviewsMatchBesideOthers(t *testing.T) {
	one := func(name string, ttl gc.TTL) *testbuilders.PolicyBuilder {
		return testbuilders.Policy(name).Rules(testbuilders.Rule("r", ttl).Labelled("app", "x"))
	}
	ofCluster := func(name string, ttl gc.TTL) *policy.Policy {
		of := cluster(func(s *gc.ClusterCleanupPolicySpec) { s.Rules = one(name, ttl).Obj().Spec.Rules })
		of.Name = name
		p, err := policy.CompileCluster(of)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	own := func(all ...*testbuilders.PolicyBuilder) []*policy.Policy {
		var out []*policy.Policy
		for _, b := range all {
			out = append(out, compiled(t, b))
		}
		return out
	}
	for name, c := range map[string]struct {
		own, previews, cluster, clusterPreviews []*policy.Policy
		annotation                              string
		want                                    []string // who would decide, and when, for each Preview
	}{
		"a later answer wins":                    {own: own(one("b", "1h")), previews: own(one("c", "2h")), want: []string{"c 2h0m0s"}},
		"an earlier one does not":                {own: own(one("b", "3h")), previews: own(one("c", "2h")), want: []string{"b 3h0m0s"}},
		"of two alike the first by name":         {own: own(one("b", "1h")), previews: own(one("a", "1h"), one("c", "1h")), want: []string{"a 1h0m0s", "b 1h0m0s"}},
		"it silences cluster policies":           {cluster: []*policy.Policy{ofCluster("b", "3h")}, previews: own(one("c", "2h")), want: []string{"c 2h0m0s"}},
		"a cluster policy among others":          {cluster: []*policy.Policy{ofCluster("b", "1h")}, clusterPreviews: []*policy.Policy{ofCluster("c", "2h")}, want: []string{"c 2h0m0s"}},
		"a cluster policy is silenced":           {own: own(one("b", "1h")), clusterPreviews: []*policy.Policy{ofCluster("c", "2h")}},
		"alone":                                  {previews: own(one("c", "2h")), want: []string{"c 2h0m0s"}},
		"no rule matches":                        {own: own(one("b", "1h")), previews: own(testbuilders.Policy("c").Rules(testbuilders.Rule("r", "2h").Labelled("app", "y")))},
		"annotations are ignored if it says so":  {own: own(one("b", "1h")), previews: own(one("c", "2h").Annotations(gc.AnnotationIgnore)), annotation: "9h", want: []string{"c 2h0m0s"}},
		"annotations are read if only others do": {own: own(one("b", "1h")), previews: own(one("c", "2h")), annotation: "9h", want: []string{"c 9h0m0s"}},
		"a silenced cluster policy ignores none": {cluster: []*policy.Policy{ofCluster("b", "3h")}, previews: own(one("c", "2h")), annotation: "9h", want: []string{"c 9h0m0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := job("j").Label("app", "x")
			if c.annotation != "" {
				b.TTL(c.annotation)
			}
			f := b.Fact()
			counted := &lookups{Set: labels.Set{"app": "x"}}
			f.Labels = counted
			var m policy.Matches
			m.Ask(f, c.own, c.previews, c.cluster, c.clusterPreviews)
			effective := policy.Resolve(policy.Object{Fact: f}, m.Enforced)
			var got []string
			for _, v := range m.Previews {
				with := effective.With(v)
				r, d := with.Decide(policy.Limits{Bounds: &policy.NoBounds}, now)
				got = append(got, fmt.Sprint(r.Policy.Name, " ", d.At.Sub(f.FinishedAt)))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("decided %q, want %q", got, c.want)
			}
			asked := len(c.own) + len(c.previews)
			if len(c.own) == 0 {
				asked += len(c.cluster) + len(c.clusterPreviews)
			}
			if counted.n != asked {
				t.Errorf("%d policies of a rule each looked at labels %d times", asked, counted.n)
			}
		})
	}
}
