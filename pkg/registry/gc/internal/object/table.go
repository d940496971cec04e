// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
)

// table renders objects as the columns of "kubectl get".
type table[O Object] struct {
	definitions []metav1.TableColumnDefinition
	cells       []func(o O, now time.Time) any
	clock       clock.PassiveClock
}

// NewTable returns what renders objects as the columns of "kubectl get": their name, these columns, and their age, which follows those that
// are always shown.
func NewTable[O Object](columns []Column[O], clock clock.PassiveClock) rest.TableConvertor {
	all := []Column[O]{{
		metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: "Name of the object."},
		func(o O, _ time.Time) any { return o.GetName() },
	}}
	always := func(c Column[O]) bool { return c.Priority == 0 }
	for _, c := range columns {
		if always(c) {
			all = append(all, c)
		}
	}
	all = append(all, Column[O]{
		metav1.TableColumnDefinition{Name: "Age", Type: "string", Description: "Time since the object was created."},
		func(o O, now time.Time) any { return age(o.GetCreationTimestamp(), now) },
	})
	return NewPlainTable(append(all, slices.DeleteFunc(slices.Clone(columns), always)...), clock)
}

// NewPlainTable returns what renders objects as these columns.
func NewPlainTable[O Object](columns []Column[O], clock clock.PassiveClock) rest.TableConvertor {
	t := table[O]{clock: clock}
	for _, c := range columns {
		t.definitions, t.cells = append(t.definitions, c.TableColumnDefinition), append(t.cells, c.Cell)
	}
	return t
}

// ConvertToTable renders an object or a list of them.
func (t table[O]) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	rendered := &metav1.Table{}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		rendered.ColumnDefinitions = t.definitions
	}
	now := t.clock.Now()
	if one, ok := object.(O); ok {
		rendered.ResourceVersion = one.GetResourceVersion()
		rendered.Rows = []metav1.TableRow{t.row(one, now)}
		return rendered, nil
	}
	var wanted O
	list, err := meta.ListAccessor(object)
	if err != nil {
		return nil, fmt.Errorf("neither %T nor a list of them but %T: %w", wanted, object, err)
	}
	rendered.ResourceVersion = list.GetResourceVersion()
	rendered.Continue, rendered.RemainingItemCount = list.GetContinue(), list.GetRemainingItemCount()
	return rendered, meta.EachListItem(object, func(item runtime.Object) error {
		one, ok := item.(O)
		if !ok {
			return fmt.Errorf("not a list of %T but %T", wanted, object)
		}
		rendered.Rows = append(rendered.Rows, t.row(one, now))
		return nil
	})
}

func (t table[O]) row(o O, now time.Time) metav1.TableRow {
	row := metav1.TableRow{Object: runtime.RawExtension{Object: o}}
	for _, cell := range t.cells {
		row.Cells = append(row.Cells, cell(o, now))
	}
	return row
}

func age(created metav1.Time, now time.Time) string {
	if created.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(created.Time))
}

// Condition formats the status of a condition, with its reason if it is not True.
func Condition(conditions []metav1.Condition, conditionType string) string {
	c := meta.FindStatusCondition(conditions, conditionType)
	switch {
	case c == nil:
		return string(metav1.ConditionUnknown)
	case c.Status != metav1.ConditionTrue && c.Reason != "":
		return fmt.Sprintf("%s (%s)", c.Status, c.Reason)
	}
	return string(c.Status)
}
