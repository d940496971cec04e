// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"iter"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// RuleKey identifies a rule of a policy.
type RuleKey struct {
	Policy types.UID
	Rule   string
}

// Share counts the objects of a batch for which one rule decides.
type Share struct {
	Rule string
	// Objects is the number of objects, Overdue how many of these were due while the previous controller still ran.
	Objects, Overdue int
	UIDs             iter.Seq[types.UID]
	// Candidates is the number of all candidates for which the rule decides in the namespace.
	Candidates int
	// Recent counts the objects of the rule that earlier changes of the namespace made due.
	Recent *Window
}

// excess is what a batch exceeds, and how messages say how much that allows.
type excess struct {
	*Limit
	allows string
}

// sumShares finds the batches with a rule of which changes made too large a share due. Objects that recent changes made due count among
// those that the rule decides for even when they are gone, so that many small changes exceed what one large change exceeds.
func sumShares(all []*assessed, now time.Time) {
	for _, b := range all {
		for i := range b.Shares {
			s := &b.Shares[i]
			objects, of := s.Recent.With(s.Objects, s.UIDs, now), s.Candidates+s.Recent.gone(now)
			if b.shown.Unseen {
				objects = min(s.Overdue, b.Unreported)
			}
			if l := &b.Limits.Percent; b.overShare == nil && l.exceededBy(objects, of) {
				b.overShare = &excess{l, fmt.Sprintf("%d %% of what rule %q decides for", l.max, s.Rule)}
			}
		}
	}
}

// exceededBy reports whether so many of the candidates of a rule are a larger share than the limit allows.
func (l *Limit) exceededBy(objects, candidates int) bool {
	return l.Limits() && candidates >= gc.PercentFrom && objects*100 > l.max*candidates
}

// Limits reports whether the limit limits anything.
func (l *Limit) Limits() bool { return l.max != math.MaxInt }
