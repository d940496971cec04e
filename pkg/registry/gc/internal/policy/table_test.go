// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

var now = time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC)

func testTable() table[*gc.CleanupPolicy] {
	return newTable(testKind, clocktesting.NewFakePassiveClock(now))
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
			gc.CleanupPolicy{ObjectMeta: named, Spec: gc.CleanupPolicySpec{Mode: gc.ModeEnforce, TTLAfterFinished: ttl("1h")}},
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
		"due and not ready": {
			gc.CleanupPolicy{
				ObjectMeta: metav1.ObjectMeta{Name: "defaults"},
				Spec:       gc.CleanupPolicySpec{Mode: gc.ModeEnforce, TTLAfterFinished: ttl(gc.TTLNever)},
				Status:     gc.CleanupPolicyStatus{NextDeletionTime: in(-time.Second), Conditions: ready("False", "Unauthorized")},
			},
			[]any{"defaults", "Enforce", "never", int64(0), int64(0), int64(0), "now", "False (Unauthorized)", "<unknown>", int64(0), "0", "0"},
		},
		"held": {
			gc.CleanupPolicy{
				ObjectMeta: named,
				Spec:       gc.CleanupPolicySpec{Mode: gc.ModeEnforce, TTLAfterFinished: ttl("1h")},
				Status: gc.CleanupPolicyStatus{
					Candidates: 5000, Due: 5000, Held: 5000, Conditions: ready("False", "Held"),
					Holds: []gc.PolicyHold{{ID: "5f3c", Namespace: "team-a"}, {ID: "7a11", Namespace: "team-b"}},
				},
			},
			[]any{"defaults", "Enforce", "1h", int64(5000), int64(5000), int64(0), "-", "False (Held)", "90m", int64(5000), "2 (team-a:5f3c,team-b:7a11)", "0"},
		},
	} {
		if got := testTable().row(&tc.policy, now).Cells; !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

func TestTable(t *testing.T) {
	c := testTable()
	remaining := int64(2)
	list := &gc.CleanupPolicyList{
		ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "token", RemainingItemCount: &remaining},
		Items:    []gc.CleanupPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}},
	}
	table, err := c.ConvertToTable(context.Background(), list, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(table.ListMeta, list.ListMeta) || len(table.Rows) != 2 {
		t.Errorf("got %+v with %d rows", table.ListMeta, len(table.Rows))
	}
	for i, r := range table.Rows {
		if len(r.Cells) != len(table.ColumnDefinitions) || r.Object.Object != runtime.Object(&list.Items[i]) {
			t.Errorf("row %d: %v for %d columns", i, r.Cells, len(table.ColumnDefinitions))
		}
	}
	single, err := c.ConvertToTable(context.Background(), stored(), &metav1.TableOptions{NoHeaders: true})
	if err != nil || single.ResourceVersion != "7" || len(single.Rows) != 1 || single.ColumnDefinitions != nil {
		t.Errorf("one policy without headers: %+v, %v", single, err)
	}
	for _, other := range []runtime.Object{&metav1.Status{}, &gc.ClusterCleanupPolicy{}, &gc.ClusterCleanupPolicyList{Items: make([]gc.ClusterCleanupPolicy, 1)}} {
		if _, err := c.ConvertToTable(context.Background(), other, nil); err == nil {
			t.Errorf("%T was rendered as a policy", other)
		}
	}
}
