// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

const write = 5 // the number of the policy state that made each change

var (
	edit   = Change{ID: "edit", Text: "an edit", Policy: "p", Write: write}
	relax  = Change{ID: "relax", Text: "a label", Write: write}
	wide   = Change{ID: "wide", Text: "a change of c", Policy: "c", Wide: true, Write: write}
	wider  = Change{ID: "wider", Text: "a change of d", Policy: "d", Wide: true, Write: write}
	unseen = Change{ID: "unseen", Text: "a restart", Unseen: true}
)

// of returns a batch of objects that the policy p would delete. The namespace allows 10 objects, and all namespaces together allow 15.
func of(namespace string, objects int, changes ...Change) *Batch {
	return &Batch{
		Namespace: namespace, Policy: "p", Approvals: &Approvals{}, Changes: changes, Objects: objects, Recent: &Window{},
		Limits: LimitsOf(policy.NoHoldAbove, Defaults{Objects: 10, Total: 15}),
	}
}

func (b *Batch) by(p types.UID) *Batch {
	b.Policy = p
	return b
}

func (b *Batch) byCluster(p types.UID) *Batch {
	b.Cluster = true
	return b.by(p)
}

func (b *Batch) allowing(set policy.HoldAbove) *Batch {
	b.Limits = LimitsOf(set, Defaults{Objects: 10, Total: 15})
	return b
}

func (b *Batch) after(objects int, ago time.Duration) *Batch {
	b.Recent.Add(objects, nil, testbuilders.Now.Add(-ago))
	return b
}

func (b *Batch) approved(write uint64, ids ...string) *Batch {
	b.Approvals.Approve(ids, write)
	return b
}

func (b *Batch) overdue(objects, unreported int) *Batch {
	b.Overdue, b.Unreported = objects, unreported
	return b
}

func (b *Batch) states(all ...string) *Batch {
	b.States = slices.Values(all)
	return b
}

// want is a hold that a batch must wait under; the zero value means that it need not wait.
type want struct {
	id    string
	total bool
}

var free = want{}

// alone is the hold of a policy in one namespace, together the hold of a cluster policy in all namespaces.
func alone(p types.UID, namespace, change string) want {
	return want{id: HoldID(p, namespace, change)}
}

func together(p types.UID, change string) want {
	return want{id: HoldID(p, "", change), total: true}
}

type assessCase struct {
	batches []*Batch
	recent  map[types.UID]time.Duration // how long ago 6 objects became due because of a cluster policy
	want    []want
}

func assess(t *testing.T, cases map[string]assessCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			recent := Recent{}
			for uid, ago := range c.recent {
				recent[uid] = &Window{Counts: []Count{{At: testbuilders.Now.Add(-ago), Objects: 6}}}
			}
			got := Assess(c.batches, recent, testbuilders.Now)
			if len(got) != len(c.want) {
				t.Fatalf("%d verdicts, want %d", len(got), len(c.want))
			}
			for i, v := range got {
				b, is := c.batches[i], free
				if v != nil {
					is = want{v.ID, v.Total}
					if v.Owner != b.Policy || !v.Since.Equal(testbuilders.Now) || v.Why == "" {
						t.Errorf("batch %d of %s in %s: %+v", i, b.Policy, b.Namespace, v)
					}
				}
				if is != c.want[i] {
					t.Errorf("batch %d of %s in %s waits under %+v, want %+v", i, b.Policy, b.Namespace, is, c.want[i])
				}
			}
		})
	}
}

// TestAssessNamespace: a namespace allows 10 objects, whichever policies delete them.
func TestAssessNamespace(t *testing.T) {
	assess(t, map[string]assessCase{
		"nothing":      {},
		"allowed":      {batches: []*Batch{of("a", 10, edit)}, want: []want{free}},
		"one too many": {batches: []*Batch{of("a", 11, edit)}, want: []want{alone("p", "a", "edit")}},
		"two policies together": {
			batches: []*Batch{of("a", 6, relax).by("p"), of("a", 5, relax).by("q")},
			want:    []want{alone("p", "a", "relax"), alone("q", "a", "relax")},
		},
		"two policies, allowed": {
			batches: []*Batch{of("a", 6, relax).by("p"), of("a", 4, relax).by("q")}, want: []want{free, free},
		},
		"namespaces count separately": {
			batches: []*Batch{of("a", 10, edit), of("b", 10, edit).by("q"), of("c", 11, edit).by("r")},
			want:    []want{free, free, alone("r", "c", "edit")},
		},
		"several changes are held under the last one": {
			batches: []*Batch{of("a", 11, edit, relax)}, want: []want{alone("p", "a", "relax")},
		},
		"recent changes count":   {batches: []*Batch{of("a", 5, edit).after(6, 10*time.Minute-1)}, want: []want{alone("p", "a", "edit")}},
		"earlier changes do not": {batches: []*Batch{of("a", 5, edit).after(6, 10*time.Minute)}, want: []want{free}},
		"a cluster policy allows less": {
			batches: []*Batch{of("a", 5, edit).allowing(policy.HoldAbove{Objects: 4, Total: -1})}, want: []want{alone("p", "a", "edit")},
		},
		"a cluster policy allows more": {
			batches: []*Batch{of("a", 11, edit).allowing(policy.HoldAbove{Objects: 11, Total: -1})}, want: []want{free},
		},
		"a cluster policy allows nothing": {
			batches: []*Batch{of("a", 1, edit).allowing(policy.HoldAbove{Objects: 0, Total: -1}), of("b", 1, edit)},
			want:    []want{alone("p", "a", "edit"), free},
		},
	})
}

// TestAssessTotal: all namespaces that a cluster policy, or a change of one, reaches allow 15 objects.
func TestAssessTotal(t *testing.T) {
	assess(t, map[string]assessCase{
		"allowed": {batches: []*Batch{of("a", 8, wide).byCluster("c"), of("b", 7, wide).byCluster("c")}, want: []want{free, free}},
		"one too many": {
			batches: []*Batch{of("a", 8, wide).byCluster("c"), of("b", 8, wide).byCluster("c")},
			want:    []want{together("c", "wide"), together("c", "wide")},
		},
		"cluster policies count separately": {
			batches: []*Batch{of("a", 8, wide).byCluster("c"), of("b", 8, wider).byCluster("d")}, want: []want{free, free},
		},
		"policies of namespaces are reached by a change of a cluster policy": {
			batches: []*Batch{of("a", 8, wide), of("b", 8, wide).by("q")},
			want:    []want{alone("p", "a", "wide"), alone("q", "b", "wide")},
		},
		"policies of namespaces are reached by nothing else": {
			batches: []*Batch{of("a", 8, relax), of("b", 8, relax).by("q")}, want: []want{free, free},
		},
		"changes of namespaces have a hold for each": {
			batches: []*Batch{of("a", 8, relax).byCluster("c"), of("b", 8, edit).byCluster("c")},
			want:    []want{alone("c", "a", "relax"), alone("c", "b", "edit")},
		},
		"the last change that reaches all namespaces is the cause in all": {
			batches: []*Batch{of("a", 8, wide, wider, relax).byCluster("c"), of("b", 8, wide, wider).byCluster("c")},
			want:    []want{together("c", "wider"), together("c", "wider")},
		},
		"too many in one namespace only": {
			batches: []*Batch{of("a", 11, wide).byCluster("c"), of("b", 4, wide).byCluster("c")},
			want:    []want{alone("c", "a", "wide"), free},
		},
		"the strictest namespace decides": {
			batches: []*Batch{
				of("a", 2, wide).byCluster("c"),
				of("b", 3, wide).byCluster("c").allowing(policy.HoldAbove{Objects: -1, Total: 4}),
			},
			want: []want{together("c", "wide"), together("c", "wide")},
		},
		"recent changes count": {
			batches: []*Batch{of("a", 10, wide).byCluster("c")}, recent: map[types.UID]time.Duration{"c": 10*time.Minute - 1},
			want: []want{together("c", "wide")},
		},
		"earlier changes do not": {
			batches: []*Batch{of("a", 10, wide).byCluster("c")}, recent: map[types.UID]time.Duration{"c": 10 * time.Minute},
			want: []want{free},
		},
		"recent changes of another policy do not": {
			batches: []*Batch{of("a", 10, wide).byCluster("c")}, recent: map[types.UID]time.Duration{"d": time.Minute},
			want: []want{free},
		},
	})
}

// TestAssessApproved: an approval covers exactly the objects that its author could see.
func TestAssessApproved(t *testing.T) {
	id, all := HoldID("p", "a", "edit"), HoldID("c", "", "wide")
	join := Changes{relax, edit}.join().ID
	joinWide := Changes{wider, wide}.join().ID
	assess(t, map[string]assessCase{
		"by the change itself": {batches: []*Batch{of("a", 11, edit).approved(write, id)}, want: []want{free}},
		"later":                {batches: []*Batch{of("a", 11, edit).approved(write+1, id)}, want: []want{free}},
		"before the change": {
			batches: []*Batch{of("a", 11, edit).approved(write-1, id)}, want: []want{alone("p", "a", id)},
		},
		"before the change, and again": {
			batches: []*Batch{of("a", 11, edit).approved(write-1, id).approved(write, id, HoldID("p", "a", id))}, want: []want{free},
		},
		"another change": {
			batches: []*Batch{of("a", 11, edit).approved(write, HoldID("p", "a", "relax"))}, want: []want{alone("p", "a", "edit")},
		},
		"in another namespace": {
			batches: []*Batch{of("a", 11, edit).approved(write, HoldID("p", "b", "edit"))}, want: []want{alone("p", "a", "edit")},
		},
		"one policy of two": {
			batches: []*Batch{of("a", 6, edit).approved(write, id), of("a", 5, edit).by("q")},
			want:    []want{free, alone("q", "a", "edit")},
		},
		"the last of two changes": {
			batches: []*Batch{of("a", 11, relax, edit).approved(write, id)}, want: []want{alone("p", "a", join)},
		},
		"the first of two changes": {
			batches: []*Batch{of("a", 11, relax, edit).approved(write, HoldID("p", "a", "relax"))}, want: []want{alone("p", "a", "edit")},
		},
		"two changes together": {
			batches: []*Batch{of("a", 11, relax, edit).approved(write, id, HoldID("p", "a", join))}, want: []want{free},
		},
		"all namespaces together": {
			batches: []*Batch{of("a", 8, wide).byCluster("c").approved(write, all), of("b", 8, wide).byCluster("c").approved(write, all)},
			want:    []want{free, free},
		},
		"all namespaces together, and one has another change": {
			batches: []*Batch{
				of("a", 8, wide).byCluster("c").approved(write, all), of("b", 8, wider, wide).byCluster("c").approved(write, all),
			},
			want: []want{free, alone("c", "b", joinWide)},
		},
		"one namespace of all": {
			batches: []*Batch{of("a", 16, wide).byCluster("c").approved(write, HoldID("c", "a", "wide"))},
			want:    []want{together("c", "wide")},
		},
	})
}

// TestAssessUnseen: only overdue objects that the last status did not count are attributed to an unseen change.
func TestAssessUnseen(t *testing.T) {
	assess(t, map[string]assessCase{
		"nothing overdue":       {batches: []*Batch{of("a", 100, unseen).overdue(0, 100)}, want: []want{free}},
		"everything reported":   {batches: []*Batch{of("a", 100, unseen).overdue(100, 0)}, want: []want{free}},
		"more reported":         {batches: []*Batch{of("a", 100, unseen).overdue(100, -5)}, want: []want{free}},
		"few overdue":           {batches: []*Batch{of("a", 100, unseen).overdue(10, 100)}, want: []want{free}},
		"few unreported":        {batches: []*Batch{of("a", 100, unseen).overdue(100, 10)}, want: []want{free}},
		"too many of both":      {batches: []*Batch{of("a", 11, unseen).overdue(11, 11)}, want: []want{alone("p", "a", "unseen")}},
		"recent changes do not": {batches: []*Batch{of("a", 8, unseen).overdue(8, 8).after(8, 0)}, want: []want{free}},
		"in two namespaces": {
			batches: []*Batch{of("a", 8, unseen).overdue(8, 16).byCluster("c"), of("b", 8, unseen).overdue(8, 16).byCluster("c")},
			want:    []want{together("c", "unseen"), together("c", "unseen")},
		},
		"in two namespaces, few unreported": {
			batches: []*Batch{of("a", 8, unseen).overdue(8, 15).byCluster("c"), of("b", 8, unseen).overdue(8, 15).byCluster("c")},
			want:    []want{free, free},
		},
		"in two namespaces by their own policies": {
			batches: []*Batch{of("a", 8, unseen).overdue(8, 16), of("b", 8, unseen).overdue(8, 16).by("q")},
			want:    []want{free, free},
		},
		"with a seen change, everything counts": {
			batches: []*Batch{of("a", 11, unseen, edit).overdue(0, 0)}, want: []want{alone("p", "a", "edit")},
		},
		"with a seen change that does not reach all namespaces": {
			batches: []*Batch{of("a", 16, unseen, relax).byCluster("c")}, want: []want{alone("c", "a", "relax")},
		},
		"together with a seen change of the namespace": {
			batches: []*Batch{of("a", 8, unseen).overdue(8, 8), of("a", 8, edit).by("q")}, want: []want{free, free},
		},
		"together with a seen change of other namespaces": {
			batches: []*Batch{
				of("a", 8, unseen).overdue(8, 16).byCluster("c"), of("b", 2, unseen, relax).overdue(8, 16).byCluster("c"),
				of("d", 8, wider), of("e", 8, wider), of("f", 11, unseen).overdue(11, 11).by("q"),
			},
			want: []want{free, free, alone("p", "d", "wider"), alone("p", "e", "wider"), alone("q", "f", "unseen")},
		},
		"by a policy of the namespace, which has no limit for all": {
			batches: []*Batch{of("a", 16, unseen).overdue(16, 16).allowing(policy.HoldAbove{Objects: 16, Total: -1})}, want: []want{free},
		},
		"approved": {
			batches: []*Batch{of("a", 11, unseen).overdue(11, 11).approved(0, HoldID("p", "a", "unseen"))}, want: []want{free},
		},
	})
}

// TestAssessCounts: only what exceeds no limit counts together with later changes, in its namespace and for its cluster policies.
func TestAssessCounts(t *testing.T) {
	old := testbuilders.Now.Add(-WindowLength)
	for name, c := range map[string]struct {
		batch  *Batch
		window int
		recent map[types.UID]int
	}{
		"allowed":                         {of("a", 10, edit), 10, nil},
		"a cluster policy":                {of("a", 10, relax).byCluster("c"), 10, map[types.UID]int{"c": 10}},
		"a change of a cluster policy":    {of("a", 10, wide), 10, map[types.UID]int{"c": 10}},
		"changes of two cluster policies": {of("a", 10, wide, wider).byCluster("c"), 10, map[types.UID]int{"c": 10, "d": 10}},
		"after a recent change":           {of("a", 3, edit).after(7, time.Minute), 10, nil},
		"held":                            {of("a", 11, wide), 0, nil},
		"approved":                        {of("a", 11, edit).approved(write, HoldID("p", "a", "edit")), 0, nil},
		"unseen":                          {of("a", 10, unseen).overdue(10, 10).byCluster("c"), 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			recent := Recent{"gone": &Window{Counts: []Count{{At: old, Objects: 3}}}}
			Assess([]*Batch{c.batch}, recent, testbuilders.Now)
			if got := c.batch.Recent.Sum(testbuilders.Now); got != c.window {
				t.Errorf("%d objects count in the namespace, want %d", got, c.window)
			}
			got := map[types.UID]int{}
			for uid, w := range recent {
				got[uid] = w.Sum(testbuilders.Now)
			}
			if !maps.Equal(got, c.recent) {
				t.Errorf("objects count for cluster policies %v, want %v", got, c.recent)
			}
		})
	}
}

// TestWhy: the message says which change exceeded which limit, and what sets the limit.
func TestWhy(t *testing.T) {
	objects := policy.HoldAbove{Objects: 4, ObjectsOf: "g", Total: -1}
	total := policy.HoldAbove{Objects: -1, Total: 8, TotalOf: "g"}
	looser := policy.HoldAbove{Objects: -1, Total: 9, TotalOf: "h"}
	same := policy.HoldAbove{Objects: -1, Total: 8, TotalOf: "f"}
	const made = " made more objects due at once than "
	const field, g = "spec.guardrails.holdAbove.", "clustercleanuppolicies.gc.winnow.dev/g"
	for name, c := range map[string]struct {
		batches []*Batch
		want    string
	}{
		"flag":       {[]*Batch{of("a", 11, edit)}, "an edit" + made + "--default-hold-above allows (10 in ten minutes)"},
		"policy":     {[]*Batch{of("a", 5, edit).allowing(objects)}, "an edit" + made + field + "objects of " + g + " allows (4 in ten minutes)"},
		"total flag": {[]*Batch{of("a", 16, wide)}, "a change of c" + made + "--default-hold-above-total allows (15 in ten minutes)"},
		"total policy": {
			[]*Batch{of("a", 9, wide).allowing(total)}, "a change of c" + made + field + "total of " + g + " allows (8 in ten minutes)",
		},
		"the strictest policy": {
			[]*Batch{of("a", 5, wide).allowing(looser), of("b", 5, wide).allowing(total)},
			"a change of c" + made + field + "total of " + g + " allows (8 in ten minutes)",
		},
		"the first of policies with the same limit": {
			[]*Batch{of("a", 5, wide).allowing(total), of("b", 5, wide).allowing(same)},
			"a change of c" + made + field + "total of clustercleanuppolicies.gc.winnow.dev/f allows (8 in ten minutes)",
		},
		"the strictest of two cluster policies": {
			[]*Batch{
				of("a", 8, wide, wider).allowing(looser), of("b", 8, wider).allowing(total), of("c", 8, wide),
			},
			"a change of d" + made + field + "total of " + g + " allows (8 in ten minutes)",
		},
		"unseen": {[]*Batch{of("a", 11, unseen).overdue(11, 11)}, "a restart" + made + "--default-hold-above allows (10)"},
	} {
		t.Run(name, func(t *testing.T) {
			v := Assess(c.batches, Recent{}, testbuilders.Now)
			if v[0] == nil || v[0].Why != c.want {
				t.Errorf("got %+v, want %q", v[0], c.want)
			}
		})
	}
}

// TestRecurringChanges: if a change may have the same ID later, its hold has an ID of its own for the objects, whatever their order.
func TestRecurringChanges(t *testing.T) {
	again := Change{ID: "again", Text: "matches", Policy: "c", Wide: true, Recurs: true, Write: write}
	id := func(batches ...*Batch) string {
		t.Helper()
		all := Assess(batches, Recent{}, testbuilders.Now)
		for _, h := range all {
			if h == nil || h.ID != all[0].ID {
				t.Fatalf("got %+v, want one hold", all)
			}
		}
		return all[0].ID
	}
	one := func(states ...string) *Batch { return of("a", 11, again).states(states...) }
	first := id(one("x 1", "y 1"))
	for name, other := range map[string]string{
		"other objects": id(one("x 1", "z 1")),
		"more objects":  id(one("x 1", "y 1", "z 1")),
		"another state": id(one("x 1", "y 2")),
		"approved":      id(one("x 1", "z 1").approved(write, first)),
	} {
		if other == first {
			t.Errorf("%s: the hold has the same ID", name)
		}
	}
	if got := id(one("y 1", "x 1")); got != first {
		t.Errorf("got %s for the same objects, want %s", got, first)
	}
	both := id(of("a", 8, again).byCluster("c").states("x 1"), of("b", 8, again).byCluster("c").states("y 1"))
	if got := id(of("b", 8, again).byCluster("c").states("y 1"), of("a", 8, again).byCluster("c").states("x 1")); got != both {
		t.Errorf("got %s for the same objects of two namespaces, want %s", got, both)
	}
	if got := id(of("a", 8, again).byCluster("c").states("x 2"), of("b", 8, again).byCluster("c").states("y 1")); got == both {
		t.Error("the hold of all namespaces has the same ID for other objects")
	}
	joined := Changes{{ID: "1"}, {ID: "2", Recurs: true}, {ID: "3"}}
	if c := joined.join(); !c.Recurs {
		t.Error("joined changes do not recur, but one of them does")
	}
}
