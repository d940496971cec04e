// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// MaxDeadlineNamespaces is for how many namespaces Deadlines has the next deadline: those where it is first.
const MaxDeadlineNamespaces = 100

// DeadlineBounds are the bounds of Deadlines.Within, with names. Whatever remains is within the last one.
var DeadlineBounds = []struct {
	Name  string
	Bound time.Duration
}{
	{"0s", 0},
	{"5m", 5 * time.Minute},
	{"15m", 15 * time.Minute},
	{"1h", time.Hour},
	{"4h", 4 * time.Hour},
	{"12h", 12 * time.Hour},
	{"1d", 24 * time.Hour},
	{"3d", 72 * time.Hour},
	{"7d", 168 * time.Hour},
	{"any", math.MaxInt64},
}

// Deadlines are about the objects that run under a deadline that Winnow has set.
type Deadlines struct {
	// Within counts the objects of each resource by the time that remains: how many have at most as long as each of DeadlineBounds, rounded up
	// to a minute.
	Within map[string][]int
	// Next is the time that remains until the first deadline of a namespace; negative if it is over, and Kubernetes has not ended the object.
	Next []NextDeadline
}

// NextDeadline is the first deadline of a namespace.
type NextDeadline struct {
	Namespace string
	Remaining time.Duration
}

// deadlines returns what remains of deadlines. It looks at each namespace, and at each minute in which a deadline ends, but at no object.
func (v *View) deadlines(now time.Time) Deadlines {
	out := Deadlines{Within: map[string][]int{}}
	for resource, byMinute := range v.DeadlineEnds {
		counts := make([]int, len(DeadlineBounds))
		for minute, n := range byMinute {
			remaining := time.Unix(60*minute, 0).Sub(now)
			for i, within := range slices.Backward(DeadlineBounds) {
				if remaining > within.Bound {
					break
				}
				counts[i] += n
			}
		}
		out.Within[resource] = counts
	}
	for _, ns := range v.Namespaces {
		if at, ok := ns.Ends.Next(); ok {
			out.Next = append(out.Next, NextDeadline{ns.Name, at.Sub(now)})
		}
	}
	slices.SortFunc(out.Next, func(a, b NextDeadline) int {
		return cmp.Or(cmp.Compare(a.Remaining, b.Remaining), cmp.Compare(a.Namespace, b.Namespace))
	})
	out.Next = out.Next[:min(len(out.Next), MaxDeadlineNamespaces)]
	return out
}
