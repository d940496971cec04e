// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/object"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/testpolicy"
)

var now = time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC)

// testKind adds no columns. Each kind tests where it differs.
var testKind = Kind[*gc.CleanupPolicy, gc.CleanupPolicySpec]{
	Kind: object.Kind[*gc.CleanupPolicy, gc.CleanupPolicySpec, gc.CleanupPolicyStatus]{
		Status: func(p *gc.CleanupPolicy) *gc.CleanupPolicyStatus { return &p.Status },
	},
	Defaults: func(p *gc.CleanupPolicy) *gc.CleanupPolicySpec { return &p.Spec },
}

func in(d time.Duration) *metav1.Time {
	t := metav1.NewTime(now.Add(d))
	return &t
}

func TestRow(t *testing.T) {
	ready := func(status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: "Other", Status: "False"}, {Type: gc.ConditionReady, Status: status, Reason: reason}}
	}
	named := metav1.ObjectMeta{Name: "defaults", CreationTimestamp: *in(-90 * time.Minute)}
	for name, tc := range map[string]struct {
		policy gc.CleanupPolicy
		want   []any
	}{
		"new": {
			gc.CleanupPolicy{ObjectMeta: named, Spec: gc.CleanupPolicySpec{Mode: gc.ModeEnforce, TTLAfterFinished: testpolicy.TTL("1h")}},
			[]any{"defaults", "Enforce", "1h", int64(0), int64(0), int64(0), "-", "Unknown", "90m", int64(0), "0", "0"},
		},
		"at work": {
			gc.CleanupPolicy{
				ObjectMeta: named,
				Spec: gc.CleanupPolicySpec{
					Mode: gc.ModePreview, Rules: []gc.CleanupRule{{Name: "keep-failures"}, {Name: "nightly"}},
				},
				Status: gc.CleanupPolicyStatus{
					Candidates: 132, Due: 4, Held: 1, Deleted: 9841, NextDeletionTime: in(5 * time.Minute), Conditions: ready("True", "CarriedOut"),
				},
			},
			[]any{"defaults", "Preview", "<none>", int64(132), int64(4), int64(9841), "in 5m", "True", "90m", int64(1), "0", "2 (keep-failures,nightly)"},
		},
		"not served": {
			gc.CleanupPolicy{
				ObjectMeta: named, Spec: gc.CleanupPolicySpec{Mode: gc.ModeEnforce},
				Status: gc.CleanupPolicyStatus{
					Conditions: append(ready("True", "Enforcing"), metav1.Condition{Type: gc.ConditionEstablished, Status: "False", Reason: "NotServed"}),
				},
			},
			[]any{"defaults", "Enforce", "<none>", int64(0), int64(0), int64(0), "-", "True (NotServed)", "90m", int64(0), "0", "0"},
		},
		"due and not ready": {
			gc.CleanupPolicy{
				ObjectMeta: metav1.ObjectMeta{Name: "defaults"},
				Spec:       gc.CleanupPolicySpec{Mode: gc.ModeEnforce, TTLAfterFinished: testpolicy.TTL(gc.TTLNever)},
				Status:     gc.CleanupPolicyStatus{NextDeletionTime: in(-time.Second), Conditions: ready("False", "Unauthorized")},
			},
			[]any{"defaults", "Enforce", "never", int64(0), int64(0), int64(0), "now", "False (Unauthorized)", "<unknown>", int64(0), "0", "0"},
		},
		"held": {
			gc.CleanupPolicy{
				ObjectMeta: named,
				Spec:       gc.CleanupPolicySpec{Mode: gc.ModeEnforce, TTLAfterFinished: testpolicy.TTL("1h")},
				Status: gc.CleanupPolicyStatus{
					Candidates: 5000, Due: 5000, Held: 5000, Conditions: ready("False", "Held"),
					Holds: []gc.PolicyHold{{ID: "5f3c", Namespace: "team-a"}, {ID: "7a11", Namespace: "team-b"}},
				},
			},
			[]any{"defaults", "Enforce", "1h", int64(5000), int64(5000), int64(0), "-", "False (Held)", "90m", int64(5000), "2 (team-a:5f3c,team-b:7a11)", "0"},
		},
	} {
		columns := object.NewTable(testKind.complete().Columns, clocktesting.NewFakePassiveClock(now))
		table, err := columns.ConvertToTable(context.Background(), &tc.policy, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := table.Rows[0].Cells; !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}
