// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
)

// TestNamedCases compares the answers of the engine with each named case of the documentation.
func TestNamedCases(t *testing.T) {
	cases, err := model.Cases()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			e := &simulation{World: c.World}
			e.storeDrawn()
			e.leader = e.startWith(memory.Config{HoldAbove: -1, HoldAboveTotal: -1})
			for _, f := range c.World.Objects {
				got := model.Answer{Action: model.Ignore}
				if rec := e.leader.Records.Get(f.UID); rec != nil {
					got = answerOf(rec.Resolution, rec.Decision())
				}
				want := c.Answers[f.UID]
				if want.At.IsZero() {
					got.At = time.Time{}
				}
				if got.Action != want.Action || got.Action != model.Ignore && got != want {
					t.Errorf("%s: got %+v, want %+v", f.Name, got, want)
				}
			}
			e.casePreviews(t, c)
			e.caseOrders(t, c)
			e.caseMakesDue(t, c)
		})
	}
}

// casePreviews compares what Preview policies would do.
func (e *simulation) casePreviews(t *testing.T, c model.Case) {
	got := map[model.PolicyRef]map[types.UID]model.Answer{}
	for rec := range e.leader.Records.All() {
		for _, p := range rec.Previews() {
			ref := model.PolicyRef{Namespace: p.Policy.Namespace, Name: p.Policy.Name}
			if got[ref] == nil {
				got[ref] = map[types.UID]model.Answer{}
			}
			got[ref][rec.UID()] = model.Answer{Action: actionNames[p.Decision().Action], Reason: string(p.Decision().Reason)}
		}
	}
	want := map[model.PolicyRef]map[types.UID]model.Answer{}
	for ref, answers := range c.Previews {
		want[ref] = map[types.UID]model.Answer{}
		for uid, a := range answers {
			want[ref][uid] = model.Answer{Action: a.Action, Reason: a.Reason}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("previews (-want +got):\n%s", diff)
	}
}

// caseOrders compares the order of the deletions, and their propagation.
func (e *simulation) caseOrders(t *testing.T, c model.Case) {
	e.follower = e.leader
	e.read()
	order, propagations := map[string][]types.UID{}, map[types.UID]metav1.DeletionPropagation{}
	for o, ok := e.leader.Take(e.Now); ok; o, ok = e.leader.Take(e.Now) {
		order[o.Fact.Namespace] = append(order[o.Fact.Namespace], o.Fact.UID)
		propagations[o.Fact.UID] = o.Propagation
	}
	for namespace, want := range c.Order {
		if got := order[namespace]; !slices.Equal(got, want) {
			t.Errorf("namespace %s: deletes %q, want %q", namespace, got, want)
		}
	}
	for uid, want := range c.Propagations {
		if got := propagations[uid]; got != want {
			t.Errorf("%s: propagation %q, want %q", uid, got, want)
		}
	}
}

// caseMakesDue compares which objects the change of a case makes due. The limit is 0, so all of these objects are held.
func (e *simulation) caseMakesDue(t *testing.T, c model.Case) {
	if c.Before == nil {
		return
	}
	before := &simulation{World: c.Before}
	before.storeDrawn()
	after := &simulation{World: c.World, leader: before.startWith(memory.Config{HoldAbove: -1, HoldAboveTotal: -1}), version: before.version}
	after.follower, after.leader.Config.HoldAbove = after.leader, 0
	for name := range after.Namespaces {
		after.setNamespace(after.leader, name, after.next())
	}
	for _, p := range after.Policies {
		p.Generation, p.ResourceVersion = 2, after.next()
	}
	after.leader.ReplacePolicies(after.Policies, after.next(), after.Now)
	for _, p := range after.ClusterPolicies {
		p.Generation, p.ResourceVersion = 2, after.next()
	}
	after.leader.ReplaceClusterPolicies(after.ClusterPolicies, after.next(), after.Now)
	for _, q := range after.Quotas {
		after.leader.SetQuota(memory.QuotaOf(q), after.Now)
	}
	after.cover()
	got := map[model.PolicyInNamespace]int{}
	for rec := range after.leader.Records.All() {
		if rec.Hold() != nil {
			ref := model.PolicyRef{Namespace: rec.Policy.Namespace, Name: rec.Policy.Name}
			got[model.PolicyInNamespace{Policy: ref, Namespace: rec.Namespace}]++
		}
	}
	if diff := cmp.Diff(c.NewlyDue, got); diff != "" {
		t.Errorf("makes due (-want +got):\n%s", diff)
	}
}
