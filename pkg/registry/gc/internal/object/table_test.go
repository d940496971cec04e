// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/testpolicy"
)

func TestTable(t *testing.T) {
	c := NewTable(testKind.Columns, clocktesting.NewFakePassiveClock(time.Now()))
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
	single, err := c.ConvertToTable(context.Background(), testpolicy.Stored(), &metav1.TableOptions{NoHeaders: true})
	if err != nil || single.ResourceVersion != "7" || len(single.Rows) != 1 || single.ColumnDefinitions != nil {
		t.Errorf("one policy without headers: %+v, %v", single, err)
	}
	for _, other := range []runtime.Object{&metav1.Status{}, &gc.ClusterCleanupPolicy{}, &gc.ClusterCleanupPolicyList{Items: make([]gc.ClusterCleanupPolicy, 1)}} {
		if _, err := c.ConvertToTable(context.Background(), other, nil); err == nil {
			t.Errorf("%T was rendered as a policy", other)
		}
	}
}

// TestColumns: the name comes first, and the age before what only "-o wide" shows.
func TestColumns(t *testing.T) {
	column := func(name string, priority int32) Column[*gc.CleanupPolicy] {
		return Column[*gc.CleanupPolicy]{
			metav1.TableColumnDefinition{Name: name, Type: "string", Priority: priority},
			func(*gc.CleanupPolicy, time.Time) any { return name },
		}
	}
	created := time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC)
	c := NewTable([]Column[*gc.CleanupPolicy]{column("Wide", 1), column("Mode", 0)}, clocktesting.NewFakePassiveClock(created.Add(90*time.Minute)))
	for want, at := range map[string]metav1.Time{"90m": metav1.NewTime(created), "<unknown>": {}} {
		table, err := c.ConvertToTable(context.Background(), &gc.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: "a", CreationTimestamp: at}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := table.Rows[0].Cells, []any{"a", "Mode", want, "Wide"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}
