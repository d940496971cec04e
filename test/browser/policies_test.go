// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/pkg/plugin/ui"
)

// policySource is a cluster with policies.
type policySource struct {
	source
	policies []ui.Policy
	finished []local.Finished
}

func newPolicySource(policies ...ui.Policy) *policySource {
	return &policySource{source: source{text: "x", n: 1}, policies: policies}
}

func (s *policySource) Policies(context.Context, string) ([]ui.Policy, []string, error) {
	return append([]ui.Policy{}, s.policies...), nil, nil
}

func (s *policySource) Read(ctx context.Context, ns string, add func(*v1alpha1.CleanupCandidate, bool)) (ui.Reading, error) {
	_, err := s.source.Read(ctx, ns, add)
	return ui.Reading{Finished: s.finished}, err
}

// waiting is a policy that waits for approval.
func waiting(namespace, name string, objects int64) ui.Policy {
	return ui.Policy{
		Cluster: namespace == "", Namespace: namespace, Name: name, Mode: "Enforce", YAML: "kind: x",
		Holds: []ui.Hold{{ID: name, Namespace: "a", Objects: objects}},
	}
}

// TestManyPolicies: the page stays fluid with ten thousand policies and namespaces.
func TestManyPolicies(t *testing.T) {
	const n = 10_000
	s := newPolicySource()
	text := strings.Repeat("spec: x\n", 40)
	for i := range n {
		ns := fmt.Sprintf("team-%05d", i)
		s.policies = append(s.policies, ui.Policy{Namespace: ns, Name: "defaults", Mode: "Enforce", YAML: text})
		s.finished = append(s.finished, local.Finished{Namespace: ns, Resource: "jobs.batch", Objects: int64(i)})
	}
	s.policies[n-1] = waiting("team-z", "last", 3)
	p := open(t, serveSource(t, s))
	p.shows("#notes", "There are 10000 policies. Only 200 of them are shown")
	p.shows("#finished", "team-09999")
	p.shows("#count-policies", "1 waiting")
	p.section("policies")
	p.shows("#policies-said", "10,000 policies")
	p.shows("#policy-list article:first-child", "cup/last")
	if elements := eval[int](p, "document.querySelectorAll('*').length"); elements > 40_000 {
		t.Errorf("there are %d elements", elements)
	}
}
