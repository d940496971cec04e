// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func holds(all ...Hold) *Holds { return &Holds{Holds: all} }

func TestValidate(t *testing.T) {
	cluster := &Cluster{Leader: "winnow-0", Term: 3}
	home := []Namespace{{UID: "home"}}
	for name, c := range map[string]struct {
		Object
		want string // part of the error; empty for none
	}{
		"holds":                  {Object{Name: "holds-0", Holds: holds(Hold{ID: "1", Namespace: "home"})}, ""},
		"no hold any more":       {Object{Name: "holds-0", Holds: holds()}, ""},
		"namespaces":             {Object{Name: "namespaces-12", Namespaces: home}, ""},
		"cluster":                {Object{Name: "cluster", Cluster: cluster}, ""},
		"another name":           {Object{Name: "marks-0", Holds: holds()}, "no name of stored assessments"},
		"no holds":               {Object{Name: "holds-0"}, "lacks its contents"},
		"no namespaces":          {Object{Name: "namespaces-0"}, "lacks its contents"},
		"no leader":              {Object{Name: "cluster", Cluster: &Cluster{Term: 3}}, "lacks its contents"},
		"holds of a namespace":   {Object{Name: "holds-0", Holds: holds(), Namespaces: home}, "contents of another object"},
		"namespaces and cluster": {Object{Name: "namespaces-0", Namespaces: home, Cluster: cluster}, "contents of another object"},
		"cluster and holds":      {Object{Name: "cluster", Cluster: cluster, Holds: holds()}, "contents of another object"},
		"a hold without ID":      {Object{Name: "holds-0", Holds: holds(Hold{Namespace: "home"})}, "hold 0 has no ID"},
		"a hold of nowhere":      {Object{Name: "holds-0", Holds: holds(Hold{ID: "1"})}, "hold 1 has no namespace"},
		"no UID":                 {Object{Name: "namespaces-0", Namespaces: []Namespace{{}}}, "no UID"},
		"a namespace twice":      {Object{Name: "namespaces-0", Namespaces: append(home, home...)}, "there twice"},
	} {
		err := c.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// What is stored must be the same after it was read, or each leader would write everything again.
func TestEncoding(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 5000, time.UTC)
	for _, o := range []Object{
		{Seen: map[string]uint64{"jobs.batch": 1 << 60}, Holds: holds(Hold{
			ID: "1", Namespace: "home", Owner: "p", Former: []string{"0"}, Total: true, Since: at, Why: "because", Number: 4,
			Members: []types.UID{"a", "b"},
		}, Hold{ID: "2", Namespace: "home", Members: []types.UID{"c"}})},
		{Namespaces: []Namespace{{
			UID: "home", Number: 4, Unlisted: []string{"pods"}, HoldAbove: &Limit{Objects: -1, Total: 5, TotalOf: "guardrails"},
			Counts: []Count{{At: at, Objects: 7, Policies: []types.UID{"p"}}},
			Inputs: Inputs{
				Stopped: "terminating", Kinds: "k", Quotas: map[types.UID]string{"q": "5"},
				Policies: []Policy{{UID: "p", Title: "policy p", Wide: true, Generation: 2, Digest: "d"}},
			},
		}}},
		{Cluster: &Cluster{Leader: "winnow-0", Term: 3, Holds: 2}},
	} {
		encoded, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		var got Object
		if err := json.Unmarshal(encoded, &got); err != nil || !reflect.DeepEqual(got, o) {
			t.Errorf("%s was read as %+v (%v)", encoded, got, err)
		}
	}
}

// TestAddCount: counts of the same minute and the same cluster policies become one.
func TestAddCount(t *testing.T) {
	at := func(d time.Duration) time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(d) }
	var all []Count
	for i, policies := range [][]types.UID{nil, nil, {"a"}, nil, {"a"}, {"a", "b"}} {
		all = AddCount(all, Count{At: at(time.Duration(i) * 15 * time.Second), Objects: 1, Policies: policies})
	}
	want := []Count{
		{At: at(45 * time.Second), Objects: 3}, {At: at(30 * time.Second), Objects: 1, Policies: []types.UID{"a"}},
		{At: at(60 * time.Second), Objects: 1, Policies: []types.UID{"a"}}, {At: at(75 * time.Second), Objects: 1, Policies: []types.UID{"a", "b"}},
	}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("got %+v, want %+v", all, want)
	}
}
