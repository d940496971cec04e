// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanupcopy

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/humantime"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/object"
)

type copied = *gc.CleanupCopy

func newTable(clock clock.PassiveClock) rest.TableConvertor {
	column := func(name, kind, description string, priority int32, cell func(copied, time.Time) any) object.Column[copied] {
		return object.Column[copied]{
			TableColumnDefinition: metav1.TableColumnDefinition{Name: name, Type: kind, Description: description, Priority: priority},
			Cell:                  cell,
		}
	}
	return object.NewPlainTable([]object.Column[copied]{
		column("Object", "string", "Resource and name of the object.", 0, func(c copied, _ time.Time) any {
			return c.Status.Object.Resource + "/" + c.Status.Object.Name
		}),
		column("Copied", "string", "When Winnow stored the copy, before it deleted the object.", 0, func(c copied, now time.Time) any {
			return humantime.Ago(c.Status.CopyTime.Time, now)
		}),
		column("Expires", "string", "When Winnow removes the copy.", 0, func(c copied, now time.Time) any {
			return humantime.When(c.Status.ExpirationTime.Time, now)
		}),
		column("Bytes", "integer", "How much room the copy takes.", 0, func(c copied, _ time.Time) any { return c.Status.Bytes }),
		column("UID", "string", "UID of the object, which is the name of the copy.", 1, func(c copied, _ time.Time) any {
			return string(c.Status.Object.UID)
		}),
	}, clock)
}
