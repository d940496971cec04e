// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanupcandidate

import (
	"cmp"
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/object"
)

type candidate = *gc.CleanupCandidate

func newTable(clock clock.PassiveClock) rest.TableConvertor {
	column := func(name, description string, priority int32, cell func(candidate, time.Time) any) object.Column[candidate] {
		return object.Column[candidate]{
			TableColumnDefinition: metav1.TableColumnDefinition{Name: name, Type: "string", Description: description, Priority: priority},
			Cell:                  cell,
		}
	}
	return byDueTime{object.NewPlainTable([]object.Column[candidate]{
		column("Object", "Resource and name of the object.", 0, func(c candidate, _ time.Time) any {
			return c.Status.Object.Resource + "/" + c.Status.Object.Name
		}),
		column("State", "What happens to the object.", 0, func(c candidate, _ time.Time) any { return string(c.Status.State) }),
		column("TTL", "How long the object is kept by time.", 0, func(c candidate, _ time.Time) any {
			return cmp.Or(string(c.Status.TTL), "-")
		}),
		column("Policy", "The policy that decides.", 0, policyCell),
		column("Rule", "The rule of the policy that matches the object.", 0, func(c candidate, _ time.Time) any {
			if c.Status.DecidedBy == nil {
				return "-"
			}
			return cmp.Or(c.Status.DecidedBy.Rule, "-")
		}),
		column("Due", "When the object becomes due.", 0, func(c candidate, now time.Time) any {
			return gc.ShownDue(string(c.Status.State), dueTime(c), now)
		}),
		column("Reason", "Why, as one word, or if that is the state, in a few.", 0, func(c candidate, _ time.Time) any {
			return gc.ShownReason(string(c.Status.State), c.Status.Reason, c.Status.Finalizers)
		}),
		column("UID", "UID of the object, which is the name of the candidate.", 1, func(c candidate, _ time.Time) any { return c.Name }),
		column("Message", "Why, as a sentence.", 1, func(c candidate, _ time.Time) any { return c.Status.Message }),
	}, clock)}
}

// byDueTime sorts the rows of a page by namespace, and then by due time. Those without one come last. Pages follow the UIDs, which stay the
// same while somebody pages, so all rows are sorted if they fit into one page. kubectl asks for 500 at once.
type byDueTime struct{ rest.TableConvertor }

// ConvertToTable implements rest.TableConvertor.
func (t byDueTime) ConvertToTable(ctx context.Context, of, options runtime.Object) (*metav1.Table, error) {
	rendered, err := t.TableConvertor.ConvertToTable(ctx, of, options)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(rendered.Rows, func(a, b metav1.TableRow) int {
		return compareDue(a.Object.Object.(candidate), b.Object.Object.(candidate))
	})
	return rendered, nil
}

func compareDue(a, b candidate) int {
	dueA, dueB := dueTime(a), dueTime(b)
	if order := cmp.Compare(a.Namespace, b.Namespace); order != 0 || dueA.IsZero() == dueB.IsZero() {
		return cmp.Or(order, dueA.Compare(dueB), cmp.Compare(a.Status.Object.Name, b.Status.Object.Name))
	}
	if dueA.IsZero() {
		return 1
	}
	return -1
}

// policyCell names the policy as kubectl takes it.
func policyCell(c candidate, _ time.Time) any {
	p := c.Status.DecidedBy
	if p == nil {
		return "-"
	}
	name := gc.PolicyName(p.Kind, p.Name)
	if p.Mode == gc.ModePreview {
		name += " (Preview)"
	}
	return name
}

// dueTime returns when the object of a candidate becomes due; zero if that is not known.
func dueTime(c candidate) time.Time {
	if c.Status.DueTime == nil {
		return time.Time{}
	}
	return c.Status.DueTime.Time
}
