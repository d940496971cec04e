// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// Column is a column of "kubectl get". Columns of priority 1 are shown only with "-o wide".
type Column[P Policy] struct {
	metav1.TableColumnDefinition
	Cell func(p P, now time.Time) any
}

// table renders policies as the columns of "kubectl get".
type table[P Policy] struct {
	definitions []metav1.TableColumnDefinition
	cells       []func(p P, now time.Time) any
	clock       clock.PassiveClock
}

func newTable[P Policy, S any](kind Kind[P, S], clock clock.PassiveClock) table[P] {
	t := table[P]{clock: clock}
	for _, column := range columns(kind) {
		t.definitions = append(t.definitions, column.TableColumnDefinition)
		t.cells = append(t.cells, column.Cell)
	}
	return t
}

func columns[P Policy, S any](kind Kind[P, S]) []Column[P] {
	type definition = metav1.TableColumnDefinition
	defaults, status := kind.Defaults, kind.Status
	return slices.Concat([]Column[P]{
		{definition{Name: "Name", Type: "string", Format: "name", Description: "Name of the policy."},
			func(p P, _ time.Time) any { return p.GetName() }},
		{definition{Name: "Mode", Type: "string", Description: "Enforce deletes objects. Preview only counts what it would delete."},
			func(p P, _ time.Time) any { return string(defaults(p).Mode) }},
	}, kind.Columns, []Column[P]{
		{definition{Name: "TTL", Type: "string", Description: "How long to keep finished objects that no rule matches."},
			func(p P, _ time.Time) any { return orNone(defaults(p).TTLAfterFinished) }},
		{definition{Name: "Candidates", Type: "integer", Description: "Finished objects that the policy decides for."},
			func(p P, _ time.Time) any { return status(p).Candidates }},
		{definition{Name: "Due", Type: "integer", Description: "Candidates that are past their time and not yet gone."},
			func(p P, _ time.Time) any { return status(p).Due }},
		{definition{Name: "Deleted", Type: "integer", Description: "Objects confirmed gone after a delete by the policy."},
			func(p P, _ time.Time) any { return status(p).Deleted }},
		{definition{Name: "Next", Type: "string", Description: "When the next candidate becomes due."},
			func(p P, now time.Time) any { return next(status(p).NextDeletionTime, now) }},
		{definition{Name: "Ready", Type: "string", Description: "Whether the policy works as it should, and if not, why."},
			func(p P, _ time.Time) any { return ready(status(p).Conditions) }},
		{definition{Name: "Age", Type: "string", Description: "Time since the policy was created."},
			func(p P, now time.Time) any { return age(p.GetCreationTimestamp(), now) }},
		{definition{Name: "Held", Type: "integer", Priority: 1, Description: "Due objects that Winnow cannot delete now."},
			func(p P, _ time.Time) any { return status(p).Held }},
		{
			definition{
				Name:        "Holds",
				Type:        "string",
				Priority:    1,
				Description: "Changes that wait for approval: their number, namespaces and IDs.",
			},
			func(p P, _ time.Time) any { return holds(status(p).Holds) },
		},
		{definition{Name: "Rules", Type: "string", Priority: 1, Description: "Number and names of the rules."},
			func(p P, _ time.Time) any { return rules(defaults(p).Rules) }},
	})
}

// ConvertToTable renders a policy or a list of them.
func (t table[P]) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	rendered := &metav1.Table{}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		rendered.ColumnDefinitions = t.definitions
	}
	now := t.clock.Now()
	if policy, ok := object.(P); ok {
		rendered.ResourceVersion = policy.GetResourceVersion()
		rendered.Rows = []metav1.TableRow{t.row(policy, now)}
		return rendered, nil
	}
	list, err := meta.ListAccessor(object)
	if err != nil {
		return nil, fmt.Errorf("neither a policy nor a list of them but %T: %w", object, err)
	}
	rendered.ResourceVersion = list.GetResourceVersion()
	rendered.Continue, rendered.RemainingItemCount = list.GetContinue(), list.GetRemainingItemCount()
	return rendered, meta.EachListItem(object, func(item runtime.Object) error {
		policy, ok := item.(P)
		if !ok {
			return fmt.Errorf("not a list of policies but %T", object)
		}
		rendered.Rows = append(rendered.Rows, t.row(policy, now))
		return nil
	})
}

func (t table[P]) row(policy P, now time.Time) metav1.TableRow {
	row := metav1.TableRow{Object: runtime.RawExtension{Object: policy}}
	for _, cell := range t.cells {
		row.Cells = append(row.Cells, cell(policy, now))
	}
	return row
}

func orNone(ttl *gc.TTL) string {
	if ttl == nil {
		return "<none>"
	}
	return string(*ttl)
}

// next formats the time until t: "in 5m", "now" if t is past, "-" if it is not set.
func next(t *metav1.Time, now time.Time) string {
	switch {
	case t.IsZero():
		return "-"
	case !t.After(now):
		return "now"
	}
	return "in " + duration.HumanDuration(t.Sub(now))
}

// ready formats the status of the condition, with its reason if it is False, and otherwise with what suspends or delays the policy.
func ready(conditions []metav1.Condition) string {
	c := meta.FindStatusCondition(conditions, gc.ConditionReady)
	switch {
	case c == nil:
		return string(metav1.ConditionUnknown)
	case c.Status != metav1.ConditionTrue && c.Reason != "":
		return fmt.Sprintf("%s (%s)", c.Status, c.Reason)
	}
	for _, slower := range []string{gc.ConditionSuspended, gc.ConditionThrottled} {
		if meta.IsStatusConditionTrue(conditions, slower) {
			return fmt.Sprintf("%s (%s)", c.Status, slower)
		}
	}
	return string(c.Status)
}

func age(created metav1.Time, now time.Time) string {
	if created.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(created.Time))
}

// holds formats the number of holds, followed by the namespace and ID of each: "1 (team-a:5f3c)".
func holds(holds []gc.PolicyHold) string {
	return counted(holds, func(h *gc.PolicyHold) string { return h.Namespace + ":" + h.ID })
}

// rules formats the number of rules, followed by their names: "2 (keep-failures,nightly)".
func rules(rules []gc.CleanupRule) string {
	return counted(rules, func(r *gc.CleanupRule) string { return r.Name })
}

func counted[T any](items []T, name func(*T) string) string {
	if len(items) == 0 {
		return "0"
	}
	names := make([]string, len(items))
	for i := range items {
		names[i] = name(&items[i])
	}
	return fmt.Sprintf("%d (%s)", len(items), strings.Join(names, ","))
}
