// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/humantime"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/object"
)

// columns returns the columns of policies, with the columns of the kind after the mode.
func columns[P Policy, S any](kind Kind[P, S]) []object.Column[P] {
	type definition = metav1.TableColumnDefinition
	column := func(d definition, cell func(P, time.Time) any) object.Column[P] {
		return object.Column[P]{TableColumnDefinition: d, Cell: cell}
	}
	defaults, status := kind.Defaults, kind.Status
	return slices.Concat([]object.Column[P]{
		column(definition{Name: "Mode", Type: "string", Description: "Enforce deletes objects. Preview only counts what it would delete."},
			func(p P, _ time.Time) any { return string(defaults(p).Mode) }),
	}, kind.Columns, []object.Column[P]{
		column(definition{Name: "TTL", Type: "string", Description: "How long to keep finished objects that no rule matches."},
			func(p P, _ time.Time) any { return orNone(defaults(p).TTLAfterFinished) }),
		column(definition{Name: "Candidates", Type: "integer", Description: "Objects that the policy decides for."},
			func(p P, _ time.Time) any { return status(p).Candidates }),
		column(definition{Name: "Due", Type: "integer",
			Description: "Candidates that are due but still exist, or whose due time is unknown."},
			func(p P, _ time.Time) any { return status(p).Due }),
		column(definition{Name: "Deleted", Type: "integer", Description: "Objects confirmed gone after a delete by the policy."},
			func(p P, _ time.Time) any { return status(p).Deleted }),
		column(definition{Name: "Next", Type: "string", Description: "When the next candidate becomes due."},
			func(p P, now time.Time) any { return next(status(p).NextDeletionTime, now) }),
		column(definition{Name: "Ready", Type: "string", Description: "Whether the policy works as it should, and if not, why."},
			func(p P, _ time.Time) any { return ready(status(p).Conditions) }),
		column(definition{Name: "Held", Type: "integer", Priority: 1, Description: "Due objects that Winnow cannot delete now."},
			func(p P, _ time.Time) any { return status(p).Held }),
		column(definition{Name: "Holds", Type: "string", Priority: 1,
			Description: "Changes that wait for approval: their number, namespaces and IDs."},
			func(p P, _ time.Time) any { return holds(status(p).Holds) }),
		column(definition{Name: "Rules", Type: "string", Priority: 1, Description: "Number and names of the rules."},
			func(p P, _ time.Time) any { return rules(defaults(p).Rules) }),
	})
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
	return humantime.When(t.Time, now)
}

// ready formats the condition Ready, and if it is True, what suspends, delays or limits the policy.
func ready(conditions []metav1.Condition) string {
	if meta.IsStatusConditionTrue(conditions, gc.ConditionReady) {
		for _, slower := range []string{gc.ConditionSuspended, gc.ConditionThrottled} {
			if meta.IsStatusConditionTrue(conditions, slower) {
				return fmt.Sprintf("%s (%s)", metav1.ConditionTrue, slower)
			}
		}
		if meta.IsStatusConditionFalse(conditions, gc.ConditionEstablished) {
			return fmt.Sprintf("%s (%s)", metav1.ConditionTrue, gc.ReasonNotServed)
		}
	}
	return object.Condition(conditions, gc.ConditionReady)
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
