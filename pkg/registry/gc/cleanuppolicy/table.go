// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanuppolicy

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// tableConvertor renders policies as the columns of "kubectl get".
type tableConvertor struct {
	clock clock.PassiveClock
}

// Columns of priority 1 are shown by "-o wide" alone.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the policy."},
	{Name: "Mode", Type: "string", Description: "Enforce deletes, Preview only counts and shows."},
	{Name: "TTL", Type: "string", Description: "How long finished objects are kept that no rule matches."},
	{Name: "Candidates", Type: "integer", Description: "Finished objects that the policy decides."},
	{Name: "Due", Type: "integer", Description: "Those of the candidates that are past their time."},
	{Name: "Deleted", Type: "integer", Description: "Objects confirmed gone after a delete by the policy."},
	{Name: "Next", Type: "string", Description: "When the next candidate becomes due."},
	{Name: "Ready", Type: "string", Description: "Whether the policy is carried out, and if not, why."},
	{Name: "Age", Type: "string", Description: "Time since the policy was created."},
	{Name: "Rules", Type: "string", Priority: 1, Description: "Number and names of the rules."},
}

// ConvertToTable renders a policy or a list of them.
func (c tableConvertor) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		table.ColumnDefinitions = columns
	}
	now := c.clock.Now()
	switch o := object.(type) {
	case *gc.CleanupPolicy:
		table.ResourceVersion = o.ResourceVersion
		table.Rows = []metav1.TableRow{row(o, now)}
	case *gc.CleanupPolicyList:
		table.ListMeta = o.ListMeta
		for i := range o.Items {
			table.Rows = append(table.Rows, row(&o.Items[i], now))
		}
	default:
		return nil, fmt.Errorf("not a CleanupPolicy or a list of them but %T", object)
	}
	return table, nil
}

func row(p *gc.CleanupPolicy, now time.Time) metav1.TableRow {
	return metav1.TableRow{
		Object: runtime.RawExtension{Object: p},
		Cells: []any{
			p.Name, string(p.Spec.Mode), defaultTTL(p), p.Status.Candidates, p.Status.Due, p.Status.Deleted,
			next(p.Status.NextDeletionTime, now), ready(p.Status.Conditions), age(p.CreationTimestamp, now), rules(p.Spec.Rules),
		},
	}
}

func defaultTTL(p *gc.CleanupPolicy) string {
	if p.Spec.TTLAfterFinished == nil {
		return "<none>"
	}
	return string(*p.Spec.TTLAfterFinished)
}

// next is how long it takes until t: "in 5m", "now" when it has come, "-" when nothing waits.
func next(t *metav1.Time, now time.Time) string {
	switch {
	case t.IsZero():
		return "-"
	case !t.After(now):
		return "now"
	}
	return "in " + duration.HumanDuration(t.Sub(now))
}

// ready is the status of the condition, with its reason when the policy is not carried out.
func ready(conditions []metav1.Condition) string {
	c := meta.FindStatusCondition(conditions, gc.ConditionReady)
	switch {
	case c == nil:
		return string(metav1.ConditionUnknown)
	case c.Status == metav1.ConditionTrue || c.Reason == "":
		return string(c.Status)
	}
	return fmt.Sprintf("%s (%s)", c.Status, c.Reason)
}

func age(created metav1.Time, now time.Time) string {
	if created.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(created.Time))
}

// rules is their number, followed by their names: "2 (keep-failures,nightly)".
func rules(rules []gc.CleanupRule) string {
	if len(rules) == 0 {
		return "0"
	}
	names := make([]string, len(rules))
	for i := range rules {
		names[i] = rules[i].Name
	}
	return fmt.Sprintf("%d (%s)", len(rules), strings.Join(names, ","))
}
