// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

func TestGroupString(t *testing.T) {
	for want, g := range map[string]Group{
		"Held: pods/a":                     {Reason: policy.ReasonHeld, Object: "pods/a", Count: 1},
		"Held: pods/a (5f3c)":              {Reason: policy.ReasonHeld, Object: "pods/a", Detail: "5f3c", Count: 1},
		"Held: pods/a and 1 more":          {Reason: policy.ReasonHeld, Object: "pods/a", Count: 2},
		"Refused: pods/a (no) and 41 more": {Reason: policy.ReasonRefused, Object: "pods/a", Detail: "no", Count: 42},
		"Refused: pods/a (" + strings.Repeat("x", 900) + ")": {
			Reason: policy.ReasonRefused, Object: "pods/a", Detail: strings.Repeat("x", 901), Count: 1,
		},
		"Refused: pods/a (" + strings.Repeat("é", 900) + ")": {
			Reason: policy.ReasonRefused, Object: "pods/a", Detail: strings.Repeat("é", 100000), Count: 1,
		},
		"Refused: 1 object (kubectl get cand names them)": {
			Reason: policy.ReasonRefused, Object: "secrets/a", Detail: "no", Unnamed: true, Count: 1,
		},
		"Refused: 3 objects (kubectl get cand names them)": {
			Reason: policy.ReasonRefused, Object: "secrets/a", Detail: "no", Unnamed: true, Count: 3,
		},
	} {
		if got := g.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestJoinHolds(t *testing.T) {
	a := func(id string, objects int64) gc.PolicyHold {
		return gc.PolicyHold{ID: id, Namespace: "a", Objects: objects}
	}
	b := func(id string, objects int64) gc.PolicyHold {
		return gc.PolicyHold{ID: id, Namespace: "b", Objects: objects}
	}
	total := func(objects int64, after time.Duration, resources ...string) gc.PolicyHold {
		return gc.PolicyHold{ID: "t", Objects: objects, Since: in(after), Resources: resources, Why: "why"}
	}
	unknown := total(1, 0, "pods")
	unknown.Since = nil
	unknownBoth := unknown
	unknownBoth.Objects = 2
	for name, c := range map[string]struct{ holds, want []gc.PolicyHold }{
		"none":                  {nil, nil},
		"one":                   {[]gc.PolicyHold{a("1", 3)}, []gc.PolicyHold{a("1", 3)}},
		"by namespace, then ID": {[]gc.PolicyHold{b("1", 4), a("3", 5), a("2", 6)}, []gc.PolicyHold{a("2", 6), a("3", 5), b("1", 4)}},
		"holds of all namespaces first": {
			[]gc.PolicyHold{a("1", 1), total(2, 0)}, []gc.PolicyHold{total(2, 0), a("1", 1)},
		},
		"several namespaces make one": {
			[]gc.PolicyHold{total(2, 0, "pods"), a("1", 1), total(3, 0, "jobs.batch", "pods"), total(4, 0)},
			[]gc.PolicyHold{total(9, 0, "jobs.batch", "pods"), a("1", 1)},
		},
		"since the last change": {
			[]gc.PolicyHold{total(1, 2, "pods"), total(1, 3, "pods"), total(1, 1, "pods")}, []gc.PolicyHold{total(3, 3, "pods")},
		},
		"since an unknown time, first": {[]gc.PolicyHold{unknown, total(1, 1, "pods")}, []gc.PolicyHold{unknownBoth}},
		"since an unknown time, last":  {[]gc.PolicyHold{total(1, 1, "pods"), unknown}, []gc.PolicyHold{unknownBoth}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := JoinHolds(slices.Clone(c.holds)); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// TestListHolds: a status lists the first holds, and says how many more there are.
func TestListHolds(t *testing.T) {
	for holds, want := range map[int]struct{ listed, unlisted int }{
		0:               {0, 0},
		1:               {1, 0},
		HoldsListed:     {HoldsListed, 0},
		HoldsListed + 1: {HoldsListed, 1},
		HoldsListed * 3: {HoldsListed, HoldsListed * 2},
	} {
		r := Report{}
		for i := range holds {
			h := gc.PolicyHold{ID: fmt.Sprintf("%03d", holds-i), Namespace: "a", Objects: 1}
			r.Holds = append(r.Holds, h, h)
		}
		r.LimitHolds()
		if len(r.Holds) != want.listed || r.UnlistedHolds != int64(want.unlisted) {
			t.Errorf("of %d holds %d are listed and %d are not", holds, len(r.Holds), r.UnlistedHolds)
		}
		for i, h := range r.Holds {
			if h.ID != fmt.Sprintf("%03d", i+1) || h.Objects != 2 {
				t.Fatalf("of %d holds, number %d is %+v", holds, i, h)
			}
		}
	}
}

// TestAddNamespace: in whatever order namespaces are counted, the first have the most due, then the most candidates, then the first name.
func TestAddNamespace(t *testing.T) {
	want := []gc.NamespaceStatus{
		{Namespace: "due", Candidates: 3, Due: 3, Held: 3},
		{Namespace: "many", Candidates: 9, Due: 2},
		{Namespace: "few", Candidates: 2, Due: 2, Held: 1},
	}
	for i := range NamespacesListed {
		want = append(want, gc.NamespaceStatus{Namespace: fmt.Sprintf("idle-%02d", i), Candidates: 7})
	}
	for listed := range want {
		for range 3 {
			added := slices.Clone(want[:listed+1])
			rand.Shuffle(len(added), func(i, j int) { added[i], added[j] = added[j], added[i] })
			r := Report{}
			for _, n := range added {
				r.AddNamespace(n)
			}
			if most := min(len(added), NamespacesListed); !slices.Equal(r.Namespaces, want[:most]) || r.UnlistedNamespaces != int64(len(added)-most) {
				t.Fatalf("lists %+v and %d more of %+v", r.Namespaces, r.UnlistedNamespaces, added)
			}
		}
	}
}
