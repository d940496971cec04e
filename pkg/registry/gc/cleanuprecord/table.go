// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanuprecord

import (
	"cmp"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/humantime"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/object"
)

type record = *gc.CleanupRecord

func newTable(clock clock.PassiveClock) rest.TableConvertor {
	column := func(name, description string, priority int32, cell func(record, time.Time) any) object.Column[record] {
		return object.Column[record]{
			TableColumnDefinition: metav1.TableColumnDefinition{Name: name, Type: "string", Description: description, Priority: priority},
			Cell:                  cell,
		}
	}
	return object.NewPlainTable([]object.Column[record]{
		column("Object", "Resource and name of the object.", 0, func(r record, _ time.Time) any {
			return r.Status.Object.Resource + "/" + r.Status.Object.Name
		}),
		column("Deleted", "When Winnow deleted the object.", 0, func(r record, now time.Time) any {
			return humantime.Ago(r.Status.DeletionTime.Time, now)
		}),
		column("Policy", "The policy that decided.", 0, func(r record, _ time.Time) any {
			return gc.PolicyName(r.Status.Policy.Kind, r.Status.Policy.Name)
		}),
		column("Rule", "The rule of the policy that matched the object.", 0, func(r record, _ time.Time) any {
			return cmp.Or(r.Status.Policy.Rule, "-")
		}),
		column("Reason", "Why, as one word.", 0, func(r record, _ time.Time) any { return r.Status.Reason }),
		column("Late", "Time from when the object was due.", 0, func(r record, _ time.Time) any { return gc.FormatLateness(r.Status.Lateness) }),
		column("Owner", "The controller of the object.", 1, func(r record, _ time.Time) any {
			if o := r.Status.Owner; o != nil {
				return o.Kind + "/" + o.Name
			}
			return "-"
		}),
		column("After", "What the TTL was counted from.", 1, func(r record, _ time.Time) any { return cmp.Or(string(r.Status.After), "-") }),
		column("Account", "The ServiceAccount as which Winnow deleted the object.", 1, func(r record, _ time.Time) any {
			return cmp.Or(r.Status.ServiceAccountName, "-")
		}),
		column("Generation", "The generation of the policy.", 1, func(r record, _ time.Time) any {
			return strconv.FormatInt(r.Status.Policy.Generation, 10)
		}),
		column("UID", "UID of the object, which is the name of the record.", 1, func(r record, _ time.Time) any { return r.Name }),
	}, clock)
}
