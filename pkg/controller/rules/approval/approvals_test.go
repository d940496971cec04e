// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
)

// TestApprove: an approval counts from the first state of the policy that contains it without a break.
func TestApprove(t *testing.T) {
	type state struct {
		write uint64
		ids   []string
	}
	id := HoldID("p", "a", "c")
	second := HoldID("p", "a", id)
	for name, c := range map[string]struct {
		states   []state
		change   uint64
		want     string
		approved bool
	}{
		"nothing":                  {nil, 3, id, false},
		"another ID":               {[]state{{3, []string{"x"}}}, 3, id, false},
		"with the change":          {[]state{{3, []string{id}}}, 3, id, true},
		"after the change":         {[]state{{4, []string{"x", id}}}, 3, id, true},
		"before the change":        {[]state{{2, []string{id}}}, 3, second, false},
		"before and after":         {[]state{{2, []string{id}}, {4, []string{id}}}, 3, second, false},
		"withdrawn":                {[]state{{4, []string{id}}, {5, nil}}, 3, id, false},
		"withdrawn and approved":   {[]state{{2, []string{id}}, {3, nil}, {4, []string{id}}}, 3, id, true},
		"the next ID too":          {[]state{{2, []string{id}}, {4, []string{id, second}}}, 3, second, true},
		"the next ID, also before": {[]state{{2, []string{id, second}}}, 3, HoldID("p", "a", second), false},
	} {
		t.Run(name, func(t *testing.T) {
			a := Approvals{}
			for _, s := range c.states {
				a.Approve(s.ids, s.write)
			}
			if got, approved := a.holdID("p", "a", "a", Change{ID: "c", Write: c.change}); got != c.want || approved != c.approved {
				t.Errorf("hold %s, approved: %t; want %s, %t", got, approved, c.want, c.approved)
			}
		})
	}
}

func TestApproves(t *testing.T) {
	a := Approvals{}
	if a.AnyApproved() || a.Approves("x") {
		t.Error("nothing is approved yet")
	}
	a.Approve([]string{"x", "y"}, 1)
	if !a.AnyApproved() || !a.Approves("x") || !a.Approves("y") || a.Approves("z") {
		t.Errorf("approved are %v, want x and y", a.approved)
	}
	if a.Approve([]string{"y"}, 2); !a.AnyApproved() || a.Approves("x") {
		t.Errorf("approved are %v, want y", a.approved)
	}
	if a.Approve(nil, 3); a.AnyApproved() || a.Approves("y") {
		t.Errorf("approved are %v, want none", a.approved)
	}
}

// TestUse: the approval of a hold that has ended in a namespace covers no other change there, and no longer than it is approved.
func TestUse(t *testing.T) {
	id := HoldID("p", "a", "c")
	second := HoldID("p", "a", id)
	a := Approvals{}
	a.Approve([]string{id}, 4)
	a.Use("b", id)
	if got, approved := a.holdID("p", "a", "a", Change{ID: "c", Write: 3}); got != id || !approved {
		t.Errorf("hold %s, approved: %t, after one of another namespace has ended", got, approved)
	}
	a.Use("a", id)
	if got, approved := a.holdID("p", "a", "a", Change{ID: "c", Write: 3}); got != second || approved {
		t.Errorf("hold %s, approved: %t, after it has ended", got, approved)
	}
	a.Approve(nil, 5)
	a.Approve([]string{id}, 6)
	if got, approved := a.holdID("p", "a", "a", Change{ID: "c", Write: 3}); got != id || !approved {
		t.Errorf("hold %s, approved: %t, after it was approved again", got, approved)
	}
}

// TestCloneOfApprovals: changes of a copy do not affect the original, or the other way round.
func TestCloneOfApprovals(t *testing.T) {
	a := Approvals{}
	a.Approve([]string{"x", "z"}, 1)
	a.Use("a", "x")
	b := a.Clone()
	b.Use("a", "y")
	a.Use("a", "z")
	b.Approve([]string{"x", "y"}, 2)
	if !a.Approves("x") || a.Approves("y") || !a.used.Equal(sets.New(usedID{"a", "x"}, usedID{"a", "z"})) {
		t.Errorf("the original changed: %+v", a)
	}
	if !b.Approves("y") || !b.used.Equal(sets.New(usedID{"a", "x"}, usedID{"a", "y"})) {
		t.Errorf("the copy is %+v", b)
	}
	if c := a.Clone(); !c.Approves("x") {
		t.Error("the copy lacks an approval")
	}
}
