// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

func TestStatus(t *testing.T) {
	s := gc.CleanupPolicyStatus{
		Candidates: 3,
		Conditions: []metav1.Condition{{
			Type: "Ready", Status: metav1.ConditionTrue, Reason: "CarriedOut", LastTransitionTime: metav1.Now(),
		}},
		Holds:      []gc.PolicyHold{{ID: "a", Namespace: "team-a", Objects: 5000}, {ID: "b", Namespace: "team-a"}},
		Ceilings:   []gc.CeilingStatus{{Resource: "jobs.batch", Objects: 7, MaxObjects: 5, Over: 2}, {Resource: "pods"}},
		Namespaces: []gc.NamespaceStatus{{Namespace: "team-a", Candidates: 3, Due: 2, Held: 1}, {Namespace: "team-b"}},
	}
	if errs := ValidateStatus(&s); len(errs) > 0 {
		t.Error(errs)
	}
	s.Due, s.Waiting, s.UnlistedHolds, s.UnlistedNamespaces = -1, -1, -1, -1
	s.Conditions[0].Status = "true"
	s.Holds = append(s.Holds, gc.PolicyHold{ID: "a"}, gc.PolicyHold{Objects: -1})
	s.Ceilings = append(s.Ceilings, gc.CeilingStatus{Resource: "pods", Over: -1}, gc.CeilingStatus{Objects: -1, MaxObjects: -1})
	s.Namespaces = append(s.Namespaces, gc.NamespaceStatus{Namespace: "team-a", Due: -1}, gc.NamespaceStatus{Candidates: -1, Held: -1})
	var fields []string
	for _, err := range ValidateStatus(&s) {
		fields = append(fields, err.Field)
	}
	want := []string{
		"status.conditions[0].status", "status.due", "status.waiting", "status.unlistedHolds", "status.unlistedNamespaces",
		"status.holds[2].id", "status.holds[3].id", "status.holds[3].objects",
		"status.ceilings[2].resource", "status.ceilings[2].over",
		"status.ceilings[3].resource", "status.ceilings[3].objects", "status.ceilings[3].maxObjects",
		"status.namespaces[2].namespace", "status.namespaces[2].due",
		"status.namespaces[3].namespace", "status.namespaces[3].candidates", "status.namespaces[3].held",
	}
	if !slices.Equal(fields, want) {
		t.Errorf("got errors on %v, want %v", fields, want)
	}
}
