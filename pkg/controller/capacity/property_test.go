// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/controller/capacity"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

// object is what a member of these tests stands for: it finished second seconds after testbuilders.Now.
type object struct {
	second int
	uid    types.UID
	group  string
	kept   bool
}

type member = capacity.Member[object]

// yard keeps beside the members what they told: over is as the calls of flipped say.
type yard struct {
	members []*member
	over    map[*member]bool
	flips   map[*member]int // since they were last counted
}

func newYard() *yard { return &yard{over: map[*member]bool{}, flips: map[*member]int{}} }

func (y *yard) flipped(m *member) {
	y.over[m] = m.Over()
	y.flips[m]++
}

func (y *yard) make(o object) *member {
	m := newMember(o, testbuilders.Now.Add(time.Duration(o.second)*time.Second), o.uid)
	m.Kept = o.kept
	y.members = append(y.members, m)
	return m
}

// drop forgets a member that has left: nobody has to say that it is no longer over.
func (y *yard) drop(i int) {
	delete(y.over, y.members[i])
	y.members = slices.Delete(y.members, i, i+1)
}

// overOf sorts, and takes what ranks beyond the limit.
func overOf(members []*member, limit int) map[*member]bool {
	sorted := slices.SortedFunc(slices.Values(members), func(a, b *member) int {
		if a.Kept != b.Kept {
			return map[bool]int{true: -1, false: 1}[a.Kept]
		}
		return cmp.Or(cmp.Compare(b.Value.second, a.Value.second), cmp.Compare(a.Value.uid, b.Value.uid))
	})
	over := map[*member]bool{}
	for _, m := range sorted[min(limit, len(sorted)):] {
		over[m] = true
	}
	return over
}

// sharesOf hands out one after the other, to the groups in the order of their names, for as long as they have more.
func sharesOf(groups map[string][]*member, total int) map[string]int {
	shares := map[string]int{}
	for names := slices.Sorted(maps.Keys(groups)); total > 0 && len(names) > 0; {
		names = slices.DeleteFunc(names, func(name string) bool {
			if total > 0 && shares[name] < len(groups[name]) {
				shares[name]++
				total--
			}
			return shares[name] == len(groups[name])
		})
	}
	return shares
}

func (y *yard) byGroup() map[string][]*member {
	groups := map[string][]*member{}
	for _, m := range y.members {
		groups[m.Value.group] = append(groups[m.Value.group], m)
	}
	return groups
}

// check compares with what must be over, and that each change was told once and nothing else was.
func (y *yard) check(t *rapid.T, before, want map[*member]bool) {
	for _, m := range y.members {
		if m.Over() != want[m] || y.over[m] != want[m] {
			t.Fatalf("%+v is over: %v, was told to be: %v, should be: %v", m.Value, m.Over(), y.over[m], want[m])
		}
		told := 0
		if before[m] != want[m] {
			told = 1
		}
		if y.flips[m] != told {
			t.Fatalf("%+v was told %d times to have changed, not %d", m.Value, y.flips[m], told)
		}
		delete(y.flips, m)
	}
	for m := range y.flips {
		t.Fatalf("%+v was told to have changed, but was being removed", m.Value)
	}
}

func drawObject(t *rapid.T, serial int) object {
	return object{
		second: rapid.IntRange(0, 6).Draw(t, "second"),
		uid:    types.UID(fmt.Sprintf("%d-%d", rapid.IntRange(0, 9).Draw(t, "uid"), serial)),
		group:  rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "group"),
		kept:   rapid.IntRange(0, 3).Draw(t, "kept") == 0,
	}
}

func TestPoolAgreesWithSorting(t *testing.T) {
	testbuilders.Checks(t, 2000)
	testbuilders.Steps(t, 60)
	rapid.Check(t, func(t *rapid.T) {
		y, serial := newYard(), 0
		limits := rapid.OneOf(rapid.IntRange(-1, 12), rapid.Just(capacity.Unlimited))
		p := capacity.NewPool(limits.Draw(t, "limit"), y.flipped)
		before := map[*member]bool{}
		step := func(act func(t *rapid.T)) func(*rapid.T) {
			return func(t *rapid.T) {
				act(t)
				want := overOf(y.members, p.Limit())
				y.check(t, before, want)
				before = want
				if p.Len() != len(y.members) {
					t.Fatalf("the pool has %d members, not %d", p.Len(), len(y.members))
				}
			}
		}
		insert := step(func(t *rapid.T) {
			serial++
			p.Insert(y.make(drawObject(t, serial)))
		})
		t.Repeat(map[string]func(*rapid.T){
			"insert":       insert,
			"insert again": insert,
			"remove": step(func(t *rapid.T) {
				if len(y.members) == 0 {
					t.Skip("empty")
				}
				i := rapid.IntRange(0, len(y.members)-1).Draw(t, "which")
				m := y.members[i]
				y.drop(i)
				p.Remove(m)
				p.Remove(m)
				if m.Over() {
					t.Fatalf("%+v is over what it is not in", m.Value)
				}
			}),
			"limit": step(func(t *rapid.T) { p.SetLimit(limits.Draw(t, "limit")) }),
		})
	})
}

func TestCeilingAgreesWithSorting(t *testing.T) {
	testbuilders.Checks(t, 2000)
	testbuilders.Steps(t, 60)
	rapid.Check(t, func(t *rapid.T) {
		y, serial := newYard(), 0
		totals := rapid.OneOf(rapid.IntRange(-1, 30), rapid.Just(capacity.Unlimited))
		c := capacity.NewCeiling(totals.Draw(t, "total"), y.flipped)
		before := map[*member]bool{}
		step := func(act func(t *rapid.T)) func(*rapid.T) {
			return func(t *rapid.T) {
				act(t)
				want := checkCeiling(t, c, y)
				y.check(t, before, want)
				before = want
			}
		}
		insert := step(func(t *rapid.T) {
			serial++
			o := drawObject(t, serial)
			c.Insert(o.group, y.make(o))
		})
		t.Repeat(map[string]func(*rapid.T){
			"insert":       insert,
			"insert again": insert,
			"leave": step(func(t *rapid.T) {
				if len(y.members) == 0 {
					t.Skip("empty")
				}
				i := rapid.IntRange(0, len(y.members)-1).Draw(t, "which")
				m := y.members[i]
				y.drop(i)
				m.Leave()
				m.Leave()
			}),
			"total": step(func(t *rapid.T) { c.SetTotal(totals.Draw(t, "total")) }),
		})
	})
}

// checkCeiling compares sizes, and returns who must be over.
func checkCeiling(t *rapid.T, c *capacity.Ceiling[object], y *yard) map[*member]bool {
	groups, want := y.byGroup(), map[*member]bool{}
	shares := sharesOf(groups, c.Total())
	for name, members := range groups {
		if got := c.GroupLen(name); got != len(members) {
			t.Fatalf("group %s has %d members, not %d", name, got, len(members))
		}
		maps.Copy(want, overOf(members, shares[name]))
	}
	if c.Len() != len(y.members) || c.Over() != len(want) || c.GroupLen("nobody") != 0 {
		t.Fatalf("%d members, %d of them over; want %d and %d", c.Len(), c.Over(), len(y.members), len(want))
	}
	return want
}

// TestSharesDoNotDependOnTheOrder: members that are over stay so until they leave, and no others become so, in whatever order they leave.
func TestSharesDoNotDependOnTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		y := newYard()
		c := capacity.NewCeiling(rapid.IntRange(0, 30).Draw(t, "total"), y.flipped)
		for i := range rapid.IntRange(0, 40).Draw(t, "members") {
			o := drawObject(t, i)
			c.Insert(o.group, y.make(o))
		}
		over := rapid.Permutation(slices.DeleteFunc(slices.Clone(y.members), func(m *member) bool { return !m.Over() })).Draw(t, "over")
		clear(y.flips)
		for _, m := range over {
			m.Leave()
		}
		if len(y.flips) > 0 {
			t.Errorf("when %d of %d leave that are over, %d change", len(over), len(y.members), len(y.flips))
		}
		if c.Len() > c.Total() || c.Over() > 0 {
			t.Errorf("%d are left of %d, %d of them over", c.Len(), c.Total(), c.Over())
		}
	})
}
