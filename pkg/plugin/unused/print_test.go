// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package unused

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/plugin/internal/plugintest"
)

func reported() *Report {
	ago := func(days int) time.Time { return plugintest.Now.AddDate(0, 0, -days) }
	claim := func(namespace, name string, state State, c Claim) Object {
		return Object{Resource: Claims, Namespace: namespace, Name: name, State: state, Created: ago(100), Claim: &c}
	}
	r := &Report{Time: plugintest.Now, Objects: []Object{
		claim("shop", "data-db-0", Unused, Claim{Status: "Bound", StorageClass: "fast", Requested: 10 << 30, Capacity: 10 << 30, NoPodSince: ago(40)}),
		claim("shop", "data-db-1", Unused, Claim{Status: "Bound", StorageClass: "fast", Requested: 5 << 30, Capacity: 8 << 30, NoPodSince: ago(2)}),
		claim("shop", "import", Unused, Claim{Status: "Pending", Requested: 1 << 40}),
		claim("shop", "uploads", Referenced, Claim{Status: "Bound", StorageClass: "slow", Requested: 1 << 30, Capacity: 1 << 30, NoPodSince: ago(3)}),
		claim("web", "cache", Unknown, Claim{Status: "Bound", Requested: 1 << 30, Capacity: 1 << 30}),
		{Resource: Accounts, Namespace: "shop", Name: "robot", State: Unused, Created: ago(7)},
		{Resource: Services, Namespace: "web", Name: "old", State: Unused, Created: ago(8)},
	}}
	r.Objects[3].UsedBy, r.Objects[3].Users = []string{"deployments.apps/a", "jobs.batch/" + plugintest.Hostile}, 3
	r.Totals = totals(r.Objects)
	return r
}

// TestPrint is what users see.
func TestPrint(t *testing.T) {
	var out bytes.Buffer
	r := reported()
	r.Undated = 2
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	plugintest.Lines(t, out.String(),
		"Unused PersistentVolumeClaims",
		"NAMESPACE   NAME        STATUS    REQUESTED   CAPACITY   STORAGECLASS   NO POD SINCE   AGE",
		"shop        data-db-0   Bound     10.0 GiB    10.0 GiB   fast           40d ago        100d",
		"shop        data-db-1   Bound     5.0 GiB     8.0 GiB    fast           2d ago         100d",
		"shop        import      Pending   1.0 TiB     -          -              unknown        100d",
		"",
		"What they take",
		"NAMESPACE   STORAGECLASS   CLAIMS   REQUESTED   CAPACITY",
		"shop        -              1        1.0 TiB     -",
		"shop        fast           2        15.0 GiB    18.0 GiB",
		"(all)                      3        1.0 TiB     18.0 GiB",
		"",
		"PersistentVolumeClaims that no Pod uses now, but that something refers to or keeps",
		"NAMESPACE   NAME      CAPACITY   STORAGECLASS   NO POD SINCE   KEPT BY",
		`shop        uploads   1.0 GiB    slow           3d ago         deployments.apps/a, jobs.batch/x\x1b[2J\ny, 1 more`,
		"",
		"Unused ServiceAccounts",
		"NAMESPACE   NAME    AGE",
		"shop        robot   7d",
		"",
		"Unused Services: no endpoints, and nothing selects Pods for them",
		"NAMESPACE   NAME   AGE",
		"web         old    8d",
		"",
		"Perhaps unused: nothing that you may list uses them. They count as used",
		"NAMESPACE   OBJECT                         CAPACITY   NO POD SINCE   AGE",
		"web         persistentvolumeclaims/cache   1.0 GiB    unknown        100d",
		"",
		"NO POD SINCE unknown: Kubernetes says it in the condition Unused of bound claims, from version 1.37 on.",
		"Left out are 2 PersistentVolumeClaims of which it is not known since when no Pod uses them. Kubernetes says it in the condition "+
			"Unused of bound claims, from version 1.37 on.")
	out.Reset()
	if err := (&Report{Namespace: "shop"}).Print(&out); err != nil {
		t.Fatal(err)
	}
	plugintest.Lines(t, out.String(), "Nothing is unused in namespace shop.")
	out.Reset()
	if err := (&Report{OlderThan: "90d"}).Print(&out); err != nil {
		t.Fatal(err)
	}
	plugintest.Lines(t, out.String(), "Nothing has been unused for 90d in any namespace.")
}

// TestPrintForPrograms: names, CSV and JSON.
func TestPrintForPrograms(t *testing.T) {
	var out bytes.Buffer
	r := reported()
	if err := r.PrintNames(&out); err != nil {
		t.Fatal(err)
	}
	plugintest.Lines(t, out.String(), "persistentvolumeclaims/data-db-0", "persistentvolumeclaims/data-db-1", "persistentvolumeclaims/import",
		"serviceaccounts/robot", "services/old")
	out.Reset()
	r.Objects = []Object{r.Objects[0], r.Objects[5]}
	r.Objects[0].UsedBy = []string{"a", `b "c"`}
	if err := r.PrintCSV(&out); err != nil {
		t.Fatal(err)
	}
	plugintest.Lines(t, out.String(),
		"resource,namespace,name,state,status,storageClass,requested,capacity,noPodSince,created,usedBy",
		`persistentvolumeclaims,shop,data-db-0,Unused,Bound,fast,10737418240,10737418240,2026-05-22T12:00:00Z,2026-03-23T12:00:00Z,"a, b ""c"""`,
		"serviceaccounts,shop,robot,Unused,,,,,,2026-06-24T12:00:00Z,")
	encoded, err := json.Marshal(r.Objects[1])
	if want := `{"resource":"serviceaccounts","namespace":"shop","name":"robot","state":"Unused","created":"2026-06-24T12:00:00Z"}`; err != nil ||
		string(encoded) != want {
		t.Errorf("got %s, %v", encoded, err)
	}
}
