// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// RuleKey identifies a rule by names, so that another policy with the same names has the same rules. Without Rule, it stands for all rules
// of the policy together, and without Policy, for all policies of the namespace.
type RuleKey struct {
	Policy types.NamespacedName
	Rule   string
}

// Share counts the objects of a batch for which a rule decides, or decided before the change.
type Share struct {
	RuleKey
	// Of says in messages of what it is a share.
	Of string
	// Objects is the number of objects, Overdue how many of these were due while the previous controller still ran.
	Objects, Overdue int
	UIDs             iter.Seq[types.UID]
	// Candidates is the number of all candidates for which the rule decides, or decided, in the namespace.
	Candidates int
	// Recent counts the objects of the rule that earlier changes of the namespace made due.
	Recent *Window
}

// Shares counts what recent changes in a namespace made due, by rules.
type Shares map[types.NamespacedName]map[string]*Window

// Window returns the window of a rule, which is added if it is not there.
func (s Shares) Window(of RuleKey) *Window {
	if s[of.Policy] == nil {
		s[of.Policy] = map[string]*Window{}
	}
	if s[of.Policy][of.Rule] == nil {
		s[of.Policy][of.Rule] = &Window{}
	}
	return s[of.Policy][of.Rule]
}

// All returns all windows.
func (s Shares) All() iter.Seq2[RuleKey, *Window] {
	return func(yield func(RuleKey, *Window) bool) {
		for policy, rules := range s {
			for rule, w := range rules {
				if !yield(RuleKey{policy, rule}, w) {
					return
				}
			}
		}
	}
}

// Forget forgets an object that is gone. What a rule has, all rules of the policy together have too.
func (s Shares) Forget(uid types.UID) {
	for _, rules := range s {
		if all := rules[""]; all != nil && all.mayRemember(uid) {
			for _, w := range rules {
				w.Forget(uid)
			}
		}
	}
}

// ForgetOld forgets the rules by which nothing counts any more.
func (s Shares) ForgetOld(now time.Time) {
	for policy, rules := range s {
		if maps.DeleteFunc(rules, func(_ string, w *Window) bool { return w.Sum(now) == 0 }); len(rules) == 0 {
			delete(s, policy)
		}
	}
}

// Clone returns a copy that shares nothing with s.
func (s Shares) Clone() Shares {
	out := Shares{}
	for of, w := range s.All() {
		*out.Window(of) = w.Clone()
	}
	return out
}

// excess is what a batch exceeds, and how messages say how much that allows.
type excess struct {
	*Limit
	allows string
}

// shareKey is a rule in a namespace.
type shareKey struct {
	namespace string
	RuleKey
}

// sumShares finds the batches with a rule of which changes made too large a share due, together with the other batches. Objects that recent
// changes made due count among those that the rule decides for even when they are gone, so that many small changes exceed what one large
// change exceeds.
func sumShares(all []*assessed, now time.Time) {
	n := map[shareKey]int{} // beyond the objects that count already
	for _, b := range all {
		for i := range b.Shares {
			if s := &b.Shares[i]; !b.shown.Unseen {
				n[shareKey{b.Namespace, s.RuleKey}] += s.Recent.With(s.Objects, s.UIDs, now) - s.Recent.Sum(now)
			}
		}
	}
	for _, b := range all {
		for i := range b.Shares {
			s := &b.Shares[i]
			objects, of := n[shareKey{b.Namespace, s.RuleKey}]+s.Recent.Sum(now), s.Candidates+s.Recent.gone(now)
			if b.shown.Unseen {
				objects = min(s.Overdue, b.Unreported)
			}
			if l := &b.Limits.Percent; b.overShare == nil && l.exceededBy(objects, of) {
				b.overShare = &excess{l, fmt.Sprintf("%d %% of the candidates of %s", l.max, s.Of)}
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
