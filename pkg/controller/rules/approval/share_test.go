// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// halves is a batch of a namespace that allows half of the candidates of a rule.
func halves(objects int, shares ...Share) *Batch {
	b := of("a", objects, edit).allowing(policy.HoldAbove{Objects: -1, Percent: 50, PercentOf: "g", Total: -1})
	b.Limits.Objects, b.Limits.Total = limit(-1, -1, Limit{}), limit(-1, -1, Limit{})
	b.Shares = shares
	return b
}

func share(objects, candidates int, uids ...types.UID) Share {
	return Share{
		RuleKey: RuleKey{Rule: "r"}, Of: `rule "r"`, Objects: objects, UIDs: slices.Values(uids), Candidates: candidates, Recent: &Window{},
	}
}

// named is the share of another rule.
func (s Share) named(rule string) Share {
	s.Rule = rule
	return s
}

// after adds objects that a change made due this long ago; gone of them are gone.
func (s Share) after(objects, gone int, ago time.Duration) Share {
	var uids []types.UID
	for i := range objects {
		uids = append(uids, types.UID(rune('a'+i)))
	}
	s.Recent.Add(objects, slices.Values(uids), testbuilders.Now.Add(-ago))
	for _, uid := range uids[:gone] {
		s.Recent.Forget(uid)
	}
	return s
}

func TestAssessShares(t *testing.T) {
	assess(t, map[string]assessCase{
		"allowed":                       {batches: []*Batch{halves(10, share(10, 20))}, want: []want{free}},
		"one too many":                  {batches: []*Batch{halves(11, share(11, 20))}, want: []want{alone("p", "a", "edit")}},
		"of few":                        {batches: []*Batch{halves(19, share(19, 19))}, want: []want{free}},
		"of one rule of two":            {batches: []*Batch{halves(22, share(1, 100), share(21, 40).named("s"))}, want: []want{alone("p", "a", "edit")}},
		"another policy goes on":        {batches: []*Batch{halves(11, share(11, 20)), halves(1, share(1, 20).named("s")).by("q")}, want: []want{alone("p", "a", "edit"), free}},
		"together with earlier changes": {batches: []*Batch{halves(1, share(1, 20).after(10, 0, time.Minute))}, want: []want{alone("p", "a", "edit")}},
		"what is gone counts as before": {batches: []*Batch{halves(1, share(1, 11).after(10, 10, time.Minute))}, want: []want{alone("p", "a", "edit")}},
		"and makes no share larger":     {batches: []*Batch{halves(1, share(1, 20).after(9, 9, time.Minute))}, want: []want{free}},
		"an object counts once":         {batches: []*Batch{halves(1, share(1, 20, "a").after(10, 0, time.Minute))}, want: []want{free}},
		"changes long ago do not count": {batches: []*Batch{halves(1, share(1, 20).after(10, 0, WindowLength))}, want: []want{free}},
		"of a former rule, by several policies": {
			batches: []*Batch{halves(10, share(10, 20)), halves(1, share(1, 20)).by("q")},
			want:    []want{alone("p", "a", "edit"), alone("q", "a", "edit")},
		},
		"without a limit, nothing holds": {batches: []*Batch{func() *Batch { b := of("a", 9, edit); b.Shares = []Share{share(9, 20)}; return b }()}, want: []want{free}},
		"approved":                       {batches: []*Batch{halves(11, share(11, 20)).approved(write, HoldID("p", "a", "edit"))}, want: []want{free}},
	})
}

// TestSharesCount: what needed no approval counts together with later changes, and what waits for one does not.
func TestSharesCount(t *testing.T) {
	for objects, counts := range map[int]int{10: 10, 11: 0} {
		b := halves(objects, share(objects, 20))
		Assess([]*Batch{b}, Recent{}, testbuilders.Now)
		if got := b.Shares[0].Recent.Sum(testbuilders.Now); got != counts {
			t.Errorf("of %d objects, %d count", objects, got)
		}
	}
}

// TestUnseenShares: of an unseen change, only what was overdue and not reported counts.
func TestUnseenShares(t *testing.T) {
	unseenBatch := func(overdue, unreported int) *Batch {
		b := halves(20, share(20, 20)).overdue(overdue, unreported)
		b.Changes, b.Shares[0].Overdue = Changes{unseen}, overdue
		return b
	}
	assess(t, map[string]assessCase{
		"reported":  {batches: []*Batch{unseenBatch(20, 10)}, want: []want{free}},
		"due since": {batches: []*Batch{unseenBatch(10, 20)}, want: []want{free}},
		"neither":   {batches: []*Batch{unseenBatch(11, 11)}, want: []want{alone("p", "a", "unseen")}},
	})
}

// TestForgottenShares: what is gone is forgotten by all rules of its policy, and no rule is remembered for longer than it counts.
func TestForgottenShares(t *testing.T) {
	p, q := types.NamespacedName{Name: "p"}, types.NamespacedName{Name: "q"}
	shares := Shares{}
	for _, key := range []RuleKey{{p, "r"}, {p, "s"}, {p, ""}, {q, "r"}, {q, ""}} {
		if key.Rule != "s" {
			shares.Window(key).Add(2, slices.Values([]types.UID{types.UID("of " + key.Policy.Name), "both"}), testbuilders.Now)
		}
	}
	shares.Window(RuleKey{p, "s"}) // Nothing counts.
	shares.Forget("of p")
	for key, w := range shares.All() {
		want := 0
		if key.Policy == p && key.Rule != "s" {
			want = 1
		}
		if got := w.gone(testbuilders.Now); got != want {
			t.Errorf("%v: %d are gone, want %d", key, got, want)
		}
	}
	if shares.ForgetOld(testbuilders.Now); len(shares[p]) != 2 || len(shares[q]) != 2 {
		t.Errorf("got %v", shares)
	}
	if shares.ForgetOld(testbuilders.Now.Add(WindowLength)); len(shares) != 0 {
		t.Errorf("got %v after ten minutes", shares)
	}
}

// TestGoneBeyondMemory: live objects that are not remembered are not gone.
func TestGoneBeyondMemory(t *testing.T) {
	w := &Window{}
	w.Add(3*rememberMost, named(0, 3*rememberMost), testbuilders.Now)
	if got := w.gone(testbuilders.Now); got != 0 {
		t.Errorf("%d are gone", got)
	}
	for uid := range named(0, 5) {
		w.Forget(uid)
	}
	if got := w.gone(testbuilders.Now); got != 5 {
		t.Errorf("%d are gone, want 5", got)
	}
	if got := w.gone(testbuilders.Now.Add(WindowLength)); got != 0 {
		t.Errorf("%d are gone after ten minutes", got)
	}
}
