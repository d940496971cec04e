// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/capacity"
)

// named is a member that ranks by its name.
type named string

// CompareUID implements capacity.Ranked.
func (n named) CompareUID(o named) int { return cmp.Compare(n, o) }

func ignore(*capacity.Member[named]) {}

func newMember[T capacity.Ranked[T]](value T, since time.Time) *capacity.Member[T] {
	m := capacity.MakeMember(value, since)
	return &m
}

func TestPoolRanks(t *testing.T) {
	type finished struct {
		name string
		ago  time.Duration
	}
	for name, c := range map[string]struct {
		limit   int
		members []finished
		over    string // by name
	}{
		"empty":                        {3, nil, ""},
		"fewer than the limit":         {3, []finished{{"a", 1}, {"b", 2}}, ""},
		"as many as the limit":         {2, []finished{{"a", 1}, {"b", 2}}, ""},
		"the oldest goes":              {2, []finished{{"a", 1}, {"b", 3}, {"c", 2}}, "b"},
		"inserted in another order":    {2, []finished{{"b", 3}, {"a", 1}, {"c", 2}}, "b"},
		"the last one is over":         {1, []finished{{"a", 1}, {"b", 2}}, "b"},
		"one a microsecond later":      {1, []finished{{"b", 1}, {"a", 2}}, "a"},
		"at the same time, by UID":     {1, []finished{{"b", 1}, {"a", 1}, {"c", 1}}, "b c"},
		"nothing is kept by a limit 0": {0, []finished{{"a", 1}, {"b", 2}}, "a b"},
		"a negative limit is 0":        {-1, []finished{{"a", 1}}, "a"},
		"no limit":                     {capacity.Unlimited, []finished{{"a", 1}, {"b", 2}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			over := map[string]bool{}
			p := capacity.NewPool(c.limit, func(m *capacity.Member[named]) { over[string(m.Value)] = m.Over() })
			for _, f := range c.members {
				p.Insert(newMember(named(f.name), testbuilders.Now.Add(-f.ago*time.Microsecond)))
			}
			maps.DeleteFunc(over, func(_ string, is bool) bool { return !is })
			if got := strings.Join(slices.Sorted(maps.Keys(over)), " "); got != c.over || p.Len() != len(c.members) {
				t.Errorf("over are %q of %d, want %q of %d", got, p.Len(), c.over, len(c.members))
			}
		})
	}
}

// TestRanks: a member knows its place, its peers and the limit.
func TestRanks(t *testing.T) {
	p := capacity.NewPool(2, ignore)
	members := map[string]*capacity.Member[named]{}
	for name, ago := range map[string]time.Duration{"newest": 1, "older-a": 2, "older-b": 2, "oldest": 3, "kept": 4} {
		m := newMember(named(name), testbuilders.Now.Add(-ago*time.Second))
		m.KeptByAnnotation = name == "kept"
		members[name] = m
		p.Insert(m)
	}
	check := func(limit int, limited bool) {
		t.Helper()
		for i, name := range []string{"kept", "newest", "older-a", "older-b", "oldest"} {
			m := members[name]
			gotLimit, gotLimited := m.Limit()
			if m.Rank() != i+1 || m.Peers() != 5 || gotLimited != limited || limited && gotLimit != limit || m.Over() != (limited && i >= limit) {
				t.Errorf("%s: rank %d of %d, limit %d (%v), over %v; want rank %d of 5, limit %d (%v)",
					name, m.Rank(), m.Peers(), gotLimit, gotLimited, m.Over(), i+1, limit, limited)
			}
		}
	}
	check(2, true)
	p.SetLimit(0)
	check(0, true)
	p.SetLimit(capacity.Unlimited)
	check(0, false)
	p.Remove(members["newest"])
	if m := members["oldest"]; m.Rank() != 4 || m.Peers() != 4 {
		t.Errorf("after one has left: rank %d of %d", m.Rank(), m.Peers())
	}
}

// TestRanksInCeilings: rank and limit belong to the group.
func TestRanksInCeilings(t *testing.T) {
	c := capacity.NewCeiling(3, ignore)
	var first, last *capacity.Member[named]
	for i := range 4 {
		m := newMember(named(fmt.Sprint(i)), testbuilders.Now.Add(-time.Duration(i)*time.Second))
		c.Insert("a", m)
		if last = m; i == 0 {
			first = m
		}
	}
	c.Insert("b", newMember(named("b"), testbuilders.Now))
	limit, limited := last.Limit()
	if first.Rank() != 1 || last.Rank() != 4 || last.Peers() != 4 || limit != 2 || !limited || first.Over() || !last.Over() {
		t.Errorf("ranks %d and %d of %d, limit %d (%v)", first.Rank(), last.Rank(), last.Peers(), limit, limited)
	}
}

func TestKeptMembersRankFirst(t *testing.T) {
	c := capacity.NewCeiling(2, ignore)
	newest := newMember(named("newest"), testbuilders.Now)
	old, older := newMember(named("old"), testbuilders.Now.Add(-time.Minute)), newMember(named("older"), testbuilders.Now.Add(-time.Hour))
	older.KeptByAnnotation = true
	for _, m := range []*capacity.Member[named]{old, older, newest} {
		c.Insert("a", m)
	}
	if !old.Over() || older.Over() || newest.Over() {
		t.Errorf("over: old %v, older, which is kept, %v, newest %v", old.Over(), older.Over(), newest.Over())
	}
	c = capacity.NewCeiling(1, ignore)
	for _, m := range []*capacity.Member[named]{old, older, newest} {
		c.Insert("a", m)
	}
	if older.Over() || !newest.Over() {
		t.Errorf("over: older, which is kept, %v, newest %v", older.Over(), newest.Over())
	}
}

func TestMembersMove(t *testing.T) {
	p, c := capacity.NewPool(0, ignore), capacity.NewCeiling(1, ignore)
	m := newMember(named("m"), testbuilders.Now)
	where := func(wantPool, wantCeiling int, wantOver bool) {
		t.Helper()
		if p.Len() != wantPool || c.Len() != wantCeiling || m.Over() != wantOver {
			t.Errorf("%d in the pool, %d under the ceiling, over: %v; want %d, %d, %v",
				p.Len(), c.Len(), m.Over(), wantPool, wantCeiling, wantOver)
		}
	}
	m.Leave()
	where(0, 0, false)
	p.Insert(m)
	where(1, 0, true)
	c.Insert("a", m)
	where(0, 1, false)
	p.Remove(m) // It is not in this pool.
	where(0, 1, false)
	c.Insert("b", m)
	where(0, 1, false)
	if c.GroupLen("a") != 0 || c.GroupLen("b") != 1 {
		t.Errorf("%d in a and %d in b, want 0 and 1", c.GroupLen("a"), c.GroupLen("b"))
	}
	m.Leave()
	m.Leave()
	where(0, 0, false)
	p.Insert(m)
	other := capacity.NewPool(1, ignore)
	other.Insert(m)
	where(0, 0, false)
	if other.Len() != 1 {
		t.Errorf("%d in the other pool, want 1", other.Len())
	}
}

// TestCeilingShares changes the sizes of groups one after the other, and checks how many members of each are kept.
func TestCeilingShares(t *testing.T) {
	type step struct {
		total int
		sizes []int // of groups 0, 1, 2, ...
		kept  []int
	}
	for name, steps := range map[string][]step{
		"small groups keep everything, and the remainder is for the first by name": {
			{600, []int{10, 200, 3000}, []int{10, 200, 390}},
			{600, []int{10, 200, 3000, 500}, []int{10, 197, 197, 196}},
			{600, []int{10, 200, 3000}, []int{10, 200, 390}},
			{600, []int{10, 200, 390}, []int{10, 200, 390}},
			{600, []int{10, 201, 390}, []int{10, 201, 389}},
		},
		"other totals": {
			{3210, []int{10, 200, 3000}, []int{10, 200, 3000}},
			{3209, []int{10, 200, 3000}, []int{10, 200, 2999}},
			{600, []int{10, 200, 3000}, []int{10, 200, 390}},
			{29, []int{10, 200, 3000}, []int{10, 10, 9}},
			{2, []int{10, 200, 3000}, []int{1, 1, 0}},
			{0, []int{10, 200, 3000}, []int{0, 0, 0}},
			{capacity.Unlimited, []int{10, 200, 3000}, []int{10, 200, 3000}},
			{31, []int{10, 200, 3000}, []int{10, 11, 10}},
			{32, []int{10, 200, 3000}, []int{10, 11, 11}},
		},
		"a total of zero": {
			{0, nil, nil},
			{0, []int{1}, []int{0}},
			{0, []int{0}, []int{0}},
		},
		"equal groups": {
			{10, []int{5, 5}, []int{5, 5}},
			{10, []int{5, 6}, []int{5, 5}},
			{10, []int{6, 6}, []int{5, 5}},
			{11, []int{6, 6}, []int{6, 5}},
			{12, []int{6, 6}, []int{6, 6}},
			{12, []int{6, 6, 6}, []int{4, 4, 4}},
		},
		"what one group does not need is for the others": {
			{5, []int{0, 4, 4}, []int{0, 3, 2}},
			{5, []int{4, 4, 4}, []int{2, 2, 1}},
			{5, []int{1, 4, 4}, []int{1, 2, 2}},
			{6, []int{1, 4, 4}, []int{1, 3, 2}},
			{6, []int{1, 2, 4}, []int{1, 2, 3}},
		},
		"a group is removed and added again": {
			{4, []int{4, 4}, []int{2, 2}},
			{4, []int{4, 0}, []int{4, 0}},
			{4, []int{4, 1}, []int{3, 1}},
			{4, []int{0, 1}, []int{0, 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var groups [4][]*capacity.Member[named]
			c := capacity.NewCeiling(0, ignore)
			for i, s := range steps {
				if s.total != c.Total() {
					c = capacity.NewCeiling(s.total, ignore)
					for g, members := range groups {
						for _, m := range members {
							c.Insert(strconv.Itoa(g), m)
						}
					}
				}
				for g := range groups {
					size := 0
					if g < len(s.sizes) {
						size = s.sizes[g]
					}
					groups[g] = resize(c, g, groups[g], size)
				}
				var kept []int
				for g := range s.sizes {
					kept = append(kept, count(groups[g]))
				}
				if c.Total() != s.total || !slices.Equal(kept, s.kept) {
					t.Errorf("step %d: %d under %d keep %d, want %d", i, s.sizes, c.Total(), kept, s.kept)
				}
			}
		})
	}
}

// resize removes the newest members of a group, or adds newer ones.
func resize(c *capacity.Ceiling[named], group int, members []*capacity.Member[named], size int) []*capacity.Member[named] {
	for len(members) > size {
		members[len(members)-1].Leave()
		members = members[:len(members)-1]
	}
	for i := len(members); i < size; i++ {
		m := newMember(named(strconv.Itoa(i)), testbuilders.Now.Add(time.Duration(i)*time.Microsecond))
		c.Insert(strconv.Itoa(group), m)
		members = append(members, m)
	}
	return members
}

func count(members []*capacity.Member[named]) (kept int) {
	for _, m := range members {
		if !m.Over() {
			kept++
		}
	}
	return kept
}

type pointer struct{ *object }

// CompareUID implements capacity.Ranked.
func (p pointer) CompareUID(o pointer) int { return p.object.CompareUID(*o.object) }

// TestMembersAreSmall: there may be a million members.
func TestMembersAreSmall(t *testing.T) {
	if size := unsafe.Sizeof(capacity.Member[pointer]{}); size > 32 {
		t.Errorf("a member takes %d bytes, more than 32", size)
	}
}

const benchMembers = 100_000

// randomMembers returns the members of a benchmark, which finished in random order.
func randomMembers() []*capacity.Member[named] {
	random := rand.New(rand.NewPCG(1, 2))
	members := make([]*capacity.Member[named], benchMembers)
	for i := range members {
		members[i] = newMember(named(strconv.Itoa(i)), testbuilders.Now.Add(time.Duration(random.IntN(math.MaxInt32))*time.Microsecond))
	}
	return members
}

// BenchmarkPool removes a member and inserts it again. Half of the members of the pool are over.
func BenchmarkPool(b *testing.B) {
	p, members := capacity.NewPool(benchMembers/2, ignore), randomMembers()
	for _, m := range members {
		p.Insert(m)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i = (i + 1) % benchMembers {
		p.Remove(members[i])
		p.Insert(members[i])
	}
}

// BenchmarkCeiling removes a member and inserts it again, under a ceiling for half of a thousand groups of 1 to 199 members. It takes
// longer than BenchmarkPool because other members change when the level does.
func BenchmarkCeiling(b *testing.B) {
	changes := 0
	c, members := capacity.NewCeiling(benchMembers/2, func(*capacity.Member[named]) { changes++ }), randomMembers()
	groups := make([]string, 0, benchMembers)
	for i := 0; len(groups) < benchMembers; i++ {
		groups = append(groups, slices.Repeat([]string{strconv.Itoa(i)}, min(1+i%199, benchMembers-len(groups)))...)
	}
	for i, m := range members {
		c.Insert(groups[i], m)
	}
	changes = 0
	b.ReportAllocs()
	for i := 0; b.Loop(); i = (i + 1) % benchMembers {
		members[i].Leave()
		c.Insert(groups[i], members[i])
	}
	b.ReportMetric(float64(changes)/float64(b.N), "changes/op")
}
