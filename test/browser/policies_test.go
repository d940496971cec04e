// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/pkg/plugin/ui"
)

// policySource is a cluster with policies, whose approvals wait for an answer.
type policySource struct {
	source
	policies []ui.Policy
	finished []local.Finished
	approved chan types.NamespacedName
	answers  chan error
}

func newPolicySource(policies ...ui.Policy) *policySource {
	return &policySource{source: source{text: "x", n: 1}, policies: policies, approved: make(chan types.NamespacedName, 9), answers: make(chan error)}
}

func (s *policySource) Policies(context.Context, string) ([]ui.Policy, []string, error) {
	return append([]ui.Policy{}, s.policies...), nil, nil
}

func (s *policySource) Read(ctx context.Context, ns string, add func(*v1alpha1.CleanupCandidate, bool)) (ui.Reading, error) {
	_, err := s.source.Read(ctx, ns, add)
	return ui.Reading{Finished: s.finished}, err
}

func (s *policySource) Approve(_ context.Context, policy types.NamespacedName, _ []string) error {
	s.approved <- policy
	return <-s.answers
}

// waiting is a policy that waits for approval.
func waiting(namespace, name string, objects int64) ui.Policy {
	return ui.Policy{
		Cluster: namespace == "", Namespace: namespace, Name: name, Mode: "Enforce", YAML: "kind: x",
		Holds: []ui.Hold{{ID: name, Namespace: "a", Objects: objects}},
	}
}

// approveButton is the button of the policy that waits for so many deletions.
func approveButton(objects int) string {
	return fmt.Sprintf("[...document.querySelectorAll('#policy-list button.primary')].find((e) => e.innerText.startsWith('Approve %d deletion'))", objects)
}

// TestApproveTwo: a person may go on to another policy before the answer about the first one is there.
func TestApproveTwo(t *testing.T) {
	s := newPolicySource(waiting("team-a", "a", 3), waiting("team-a", "b", 4))
	p := open(t, serveSource(t, s))
	p.section("policies")
	for _, c := range []struct {
		answer error
		said   string
	}{{nil, "cup/a is approved."}, {errors.New("no"), "cup/a is not approved: no"}} {
		eval[bool](p, "("+approveButton(3)+".click(), true)")
		p.do(chromedp.Click[chromedp.CSS]("#approve-confirm"))
		if got := <-s.approved; got.Name != "a" {
			t.Errorf("approved %v", got)
		}
		p.press(kb.Escape)
		eval[bool](p, "("+approveButton(4)+".click(), true)")
		p.shows("#approve-title", "cup/b")
		s.answers <- c.answer
		p.shows("#done", c.said)
		if !eval[bool](p, "document.getElementById('approve').open && document.getElementById('approve-failure').hidden") {
			t.Error("the dialog of the other policy is closed, or shows a failure")
		}
		p.press(kb.Escape)
	}
	eval[bool](p, "("+approveButton(4)+".click(), true)")
	p.do(chromedp.Click[chromedp.CSS]("#approve-confirm"))
	s.answers <- errors.New("no permission")
	p.shows("#approve-failure", "no permission")
	p.do(chromedp.Click[chromedp.CSS]("#approve-confirm"))
	s.answers <- nil
	p.shows("#done", "cup/b is approved.")
	p.eventually("!document.getElementById('approve').open && document.activeElement.id === 'policies-title'")
}

// TestFocusStays: after the page has read the cluster again, the focus is on the same button of the same policy, whatever their names.
func TestFocusStays(t *testing.T) {
	s := newPolicySource(waiting("a-b", "c", 1), waiting("a", "b-c", 2), waiting("cluster", "c", 3), waiting("", "c", 4), waiting("a", "b-c-yaml", 5))
	p := open(t, serveSource(t, s))
	p.section("policies")
	for _, objects := range []int{1, 2, 3, 4, 5} {
		eval[bool](p, "("+approveButton(objects)+".focus(), true)")
		before := eval[string](p, "document.getElementById('updated').innerText")
		eval[bool](p, "((window.was = document.activeElement), document.getElementById('refresh').click(), true)")
		p.eventually("document.getElementById('updated').innerText.startsWith('Read at') && !window.was.isConnected")
		if !eval[bool](p, "document.activeElement === "+approveButton(objects)) {
			t.Errorf("%s: the focus was on the button for %d deletions, and is on %q", before, objects, p.focused())
		}
	}
	if same := eval[int](p, "(() => { const ids = [...document.querySelectorAll('[id]')].map((e) => e.id); return ids.length - new Set(ids).size; })()"); same > 0 {
		t.Errorf("%d elements have the ID of another one", same)
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
