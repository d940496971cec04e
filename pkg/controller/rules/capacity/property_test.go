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

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/capacity"
)

// object is the value of a member in these tests. It finished second seconds after testbuilders.Now.
type object struct {
	second int
	uid    types.UID
	group  string
	kept   bool
}

// CompareUID implements capacity.Ranked.
func (o object) CompareUID(other object) int { return cmp.Compare(o.uid, other.uid) }

type member = capacity.Member[object]

// recorder has the members of a pool or ceiling, and the reports of overChanged.
type recorder struct {
	members []*member
	over    map[*member]bool
	changes map[*member]int // since the last check
}

func newRecorder() *recorder { return &recorder{over: map[*member]bool{}, changes: map[*member]int{}} }

func (r *recorder) overChanged(m *member) {
	r.over[m] = m.Over()
	r.changes[m]++
}

func (r *recorder) make(o object) *member {
	m := newMember(o, testbuilders.Now.Add(time.Duration(o.second)*time.Second))
	m.KeptByAnnotation = o.kept
	r.members = append(r.members, m)
	return m
}

// drop forgets a member that has left. overChanged is not called for such a member.
func (r *recorder) drop(i int) {
	delete(r.over, r.members[i])
	r.members = slices.Delete(r.members, i, i+1)
}

// overOf returns the members that rank beyond the limit. It sorts all of them.
func overOf(members []*member, limit int) map[*member]bool {
	sorted := slices.SortedFunc(slices.Values(members), func(a, b *member) int {
		if a.KeptByAnnotation != b.KeptByAnnotation {
			return map[bool]int{true: -1, false: 1}[a.KeptByAnnotation]
		}
		return cmp.Or(cmp.Compare(b.Value.second, a.Value.second), cmp.Compare(a.Value.uid, b.Value.uid))
	})
	over := map[*member]bool{}
	for _, m := range sorted[min(limit, len(sorted)):] {
		over[m] = true
	}
	return over
}

// sharesOf returns the share of each group. It gives the total to the groups one by one, by name, until none of them needs more.
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

func (r *recorder) byGroup() map[string][]*member {
	groups := map[string][]*member{}
	for _, m := range r.members {
		groups[m.Value.group] = append(groups[m.Value.group], m)
	}
	return groups
}

// check fails unless exactly the members in want are over, and overChanged was called once for each member that changed.
func (r *recorder) check(t *rapid.T, before, want map[*member]bool) {
	for _, m := range r.members {
		if m.Over() != want[m] || r.over[m] != want[m] {
			t.Fatalf("%+v is over: %v, was reported as: %v, should be: %v", m.Value, m.Over(), r.over[m], want[m])
		}
		calls := 0
		if before[m] != want[m] {
			calls = 1
		}
		if r.changes[m] != calls {
			t.Fatalf("%+v was reported %d times to have changed, want %d", m.Value, r.changes[m], calls)
		}
		delete(r.changes, m)
	}
	for m := range r.changes {
		t.Fatalf("%+v was reported to have changed when it was removed", m.Value)
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
		r, serial := newRecorder(), 0
		limits := rapid.OneOf(rapid.IntRange(-1, 12), rapid.Just(capacity.Unlimited))
		limit := limits.Draw(t, "limit")
		p := capacity.NewPool(limit, r.overChanged)
		before := map[*member]bool{}
		step := func(act func(t *rapid.T)) func(*rapid.T) {
			return func(t *rapid.T) {
				act(t)
				want := overOf(r.members, max(limit, 0))
				r.check(t, before, want)
				before = want
				if p.Len() != len(r.members) {
					t.Fatalf("the pool has %d members, not %d", p.Len(), len(r.members))
				}
			}
		}
		insert := step(func(t *rapid.T) {
			serial++
			p.Insert(r.make(drawObject(t, serial)))
		})
		t.Repeat(map[string]func(*rapid.T){
			"insert":       insert,
			"insert again": insert,
			"remove": step(func(t *rapid.T) {
				if len(r.members) == 0 {
					t.Skip("empty")
				}
				i := rapid.IntRange(0, len(r.members)-1).Draw(t, "which")
				m := r.members[i]
				r.drop(i)
				p.Remove(m)
				p.Remove(m)
				if m.Over() {
					t.Fatalf("%+v is over in a pool that does not have it", m.Value)
				}
			}),
			"limit": step(func(t *rapid.T) {
				limit = limits.Draw(t, "limit")
				p.SetLimit(limit)
			}),
		})
	})
}

func TestCeilingAgreesWithSorting(t *testing.T) {
	testbuilders.Checks(t, 2000)
	testbuilders.Steps(t, 60)
	rapid.Check(t, func(t *rapid.T) {
		r, serial := newRecorder(), 0
		totals := rapid.OneOf(rapid.IntRange(-1, 30), rapid.Just(capacity.Unlimited))
		c := capacity.NewCeiling(totals.Draw(t, "total"), r.overChanged)
		before := map[*member]bool{}
		step := func(act func(t *rapid.T)) func(*rapid.T) {
			return func(t *rapid.T) {
				act(t)
				want := checkCeiling(t, c, r)
				r.check(t, before, want)
				before = want
			}
		}
		insert := step(func(t *rapid.T) {
			serial++
			o := drawObject(t, serial)
			c.Insert(o.group, r.make(o))
		})
		t.Repeat(map[string]func(*rapid.T){
			"insert":       insert,
			"insert again": insert,
			"total": step(func(t *rapid.T) {
				total, over := totals.Draw(t, "total"), c.Over()
				toggles := c.Toggles(total)
				if c.SetTotal(total); toggles != len(r.changes) || toggles != max(c.Over()-over, over-c.Over()) {
					t.Fatalf("%d members have changed, not %d", len(r.changes), toggles)
				}
			}),
			"leave": step(func(t *rapid.T) {
				if len(r.members) == 0 {
					t.Skip("empty")
				}
				i := rapid.IntRange(0, len(r.members)-1).Draw(t, "which")
				m := r.members[i]
				r.drop(i)
				m.Leave()
				m.Leave()
			}),
		})
	})
}

// checkCeiling checks the sizes of a ceiling and of its groups, and returns the members that must be over.
func checkCeiling(t *rapid.T, c *capacity.Ceiling[object], r *recorder) map[*member]bool {
	groups, want := r.byGroup(), map[*member]bool{}
	shares := sharesOf(groups, c.Total())
	for name, members := range groups {
		if got := c.GroupLen(name); got != len(members) {
			t.Fatalf("group %s has %d members, not %d", name, got, len(members))
		}
		maps.Copy(want, overOf(members, shares[name]))
	}
	if c.Len() != len(r.members) || c.Over() != len(want) || c.GroupLen("nobody") != 0 {
		t.Fatalf("%d members, %d of them over; want %d and %d", c.Len(), c.Over(), len(r.members), len(want))
	}
	return want
}

// TestSharesDoNotDependOnTheOrder: members that are over stay over until they leave, and no other member becomes over, in whatever order
// they leave.
func TestSharesDoNotDependOnTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRecorder()
		c := capacity.NewCeiling(rapid.IntRange(0, 30).Draw(t, "total"), r.overChanged)
		for i := range rapid.IntRange(0, 40).Draw(t, "members") {
			o := drawObject(t, i)
			c.Insert(o.group, r.make(o))
		}
		over := rapid.Permutation(slices.DeleteFunc(slices.Clone(r.members), func(m *member) bool { return !m.Over() })).Draw(t, "over")
		clear(r.changes)
		for _, m := range over {
			m.Leave()
		}
		if len(r.changes) > 0 {
			t.Errorf("when %d of %d leave that are over, %d change", len(over), len(r.members), len(r.changes))
		}
		if c.Len() > c.Total() || c.Over() > 0 {
			t.Errorf("%d are left of %d, %d of them over", c.Len(), c.Total(), c.Over())
		}
	})
}
