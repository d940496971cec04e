// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/tracker"
)

// TestHistory: a consistent read that is older than one before it, or than what memory had when it began, shows that the store has gone
// back. That is told once: what follows is compared with the store as it is now.
func TestHistory(t *testing.T) {
	for name, c := range map[string]struct {
		memory uint64
		reads  []string
		back   int // how many of the reads tell that the store has gone back
	}{
		"each is newer":                         {0, []string{"5", "6", "100"}, 0},
		"nothing was written in between":        {0, []string{"5", "5"}, 0},
		"one is older":                          {0, []string{"6", "5", "5", "7"}, 1},
		"it goes back twice":                    {0, []string{"9", "10", "8", "7"}, 2},
		"one is older than memory":              {8, []string{"7"}, 1},
		"memory is as new":                      {7, []string{"7", "8"}, 0},
		"what is no number":                     {0, []string{"9", "x", "", "8"}, 1},
		"a number that is shorter, and greater": {0, []string{"9", "10"}, 0},
	} {
		told, anew := 0, 0
		memory := c.memory
		h := newHistory(func(freshness.Collection) (uint64, int) { return memory, anew }, func(error) {
			told++
		})
		for _, version := range c.reads {
			before := told
			h.begin(freshness.Policies)
			if err := h.follow(freshness.Policies, version); (err != nil) != (told > before) {
				t.Errorf("%s: after %s it returned %v", name, version, err)
			}
			if told > before { // Everything is listed anew.
				anew, memory = anew+1, freshness.ParseVersion(version)
			}
		}
		if told != c.back {
			t.Errorf("%s: it was told %d times that the store has gone back, want %d", name, told, c.back)
		}
	}
}

// TestOthersHaveNoticed: if everything was observed anew because somebody else has noticed that the store has gone back, that is not told
// again, even if a read was under way meanwhile.
func TestOthersHaveNoticed(t *testing.T) {
	memory, anew := uint64(10), 0
	h := newHistory(func(freshness.Collection) (uint64, int) { return memory, anew }, func(err error) { t.Error(err) })
	read := func(version string, meanwhile func()) {
		h.begin(freshness.Policies)
		meanwhile()
		if err := h.follow(freshness.Policies, version); err != nil {
			t.Error(err)
		}
	}
	nothing := func() {}
	read("20", nothing)
	anew, memory = 1, 5
	read("6", nothing)
	read("4", func() { anew, memory = 2, 0 })
	read("3", nothing)
	told := 0
	h.wentBack = func(error) { told++ }
	h.begin(freshness.Policies)
	if err := h.follow(freshness.Policies, "2"); err == nil || told != 1 {
		t.Errorf("when it goes back once more: %v, told %d times", err, told)
	}
}

// TestCollectionsHaveHistoriesOfTheirOwn: they may be in different stores.
func TestCollectionsHaveHistoriesOfTheirOwn(t *testing.T) {
	h := newHistory(func(c freshness.Collection) (uint64, int) {
		return map[freshness.Collection]uint64{freshness.Namespaces: 1000}[c], 0
	}, func(err error) { t.Error(err) })
	h.begin(freshness.Policies)
	if err := h.follow(freshness.Policies, "5"); err != nil {
		t.Error(err)
	}
}

// TestNothingIsDeletedAfterTheStoreWentBack: a policy that deletes at once was written, and watched, after the last reading. Then the store
// is restored in a state that is newer than that reading, and older than the policy. No reading of it allows a DELETE.
func TestNothingIsDeletedAfterTheStoreWentBack(t *testing.T) {
	for name, collection := range map[string]freshness.Collection{
		"cleanuppolicies": freshness.Policies, "clustercleanuppolicies": freshness.ClusterPolicies, "namespaces": freshness.Namespaces,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var told atomic.Int32
			w.reader.history.wentBack = func(err error) {
				if !strings.Contains(err.Error(), name+" is at resourceVersion 11, after 111 was seen") {
					t.Error(err)
				}
				told.Add(1)
			}
			w.writeBarriers(func(context.Context) (string, error) { return "11", nil }, func(context.Context) (string, error) { return "11", nil })
			w.do(func() { w.generation = 2 }) // Lists are at 11.
			switch collection {
			case freshness.Policies:
				w.tracker.ObservePolicies("111")
			case freshness.ClusterPolicies:
				w.tracker.ObserveClusterPolicies("111")
			case freshness.Namespaces:
				w.tracker.ObserveNamespaces("111")
			}
			w.job("a")
			w.run()
			w.passes(50*time.Millisecond, "it is read again and again", func() bool { return w.requests("GET "+namespacesPath) > 5 })
			if n := w.requests("DELETE"); n != 0 || told.Load() == 0 {
				t.Errorf("%d DELETEs, and it was told %d times that the store has gone back", n, told.Load())
			}
		})
	}
}

// TestReadFailsIfTheStoreWentBack: it fails once, with all collections that are older than in the reading before.
func TestReadFailsIfTheStoreWentBack(t *testing.T) {
	w := newWorld(t)
	told := 0
	w.reader.history.wentBack = func(error) { told++ }
	version := "19"
	w.writeBarriers(answer("7", nil), func(context.Context) (string, error) { return version, nil })
	w.do(func() { w.generation = 2 })
	if _, err := w.reader.read(t.Context(), testbuilders.Now); err != nil || told != 0 {
		t.Fatal(err, told)
	}
	version = "18"
	w.do(func() { w.generation = 1 })
	r, err := w.reader.read(t.Context(), testbuilders.Now)
	if err == nil || told != 2 || r.Policies.Version != "" ||
		!strings.Contains(err.Error(), "the store of clustercleanuppolicies is at resourceVersion 18, after 19 was seen") ||
		!strings.Contains(err.Error(), "the store of namespaces is at resourceVersion 1, after 11 was seen") {
		t.Errorf("read %+v, %v, and told %d times", r, err, told)
	}
	if _, err := w.reader.read(t.Context(), testbuilders.Now); err != nil || told != 2 {
		t.Errorf("the next one: %v, and told %d times", err, told)
	}
}

// TestDoubtClocks: before records are removed, clocks are compared at once. Without an answer they are in doubt.
func TestDoubtClocks(t *testing.T) {
	w := newWorld(t)
	if w.doubtClocks(t.Context()) {
		t.Error("clocks that agree are in doubt")
	}
	right := w.loop.clock
	w.loop.clock = clocktesting.NewFakeClock(w.time.Now().AddDate(0, 0, 40))
	if !w.doubtClocks(t.Context()) {
		t.Error("a clock that is 40 days ahead is not in doubt")
	}
	w.loop.clock = right
	if w.doubtClocks(t.Context()) {
		t.Error("a clock that was set right is in doubt")
	}
	w.on("GET "+namespacesPath, func() int { return http.StatusInternalServerError })
	if !w.doubtClocks(t.Context()) {
		t.Error("clocks that cannot be compared are not in doubt")
	}
	if names := w.tracker.NamespacesFrom(testbuilders.Home); len(names) != 1 || len(w.tracker.NamespacesFrom("zz")) != 0 {
		t.Errorf("namespaces %q", names)
	}
}

// TestLook: also a replica that does not lead compares the clocks, and sees that the store has gone back: by one look after the other, or
// because its watch has reported more than what is stored.
func TestLook(t *testing.T) {
	w := newWorld(t)
	w.policyStore = nil
	seen := newHistory(w.tracker.Newest, func(err error) { t.Error(err) })
	look := func() error { return w.lookOnce(t.Context(), &seen) }
	w.do(func() { w.generation = 2 })
	for range 2 {
		if err := look(); err != nil {
			t.Fatal(err)
		}
	}
	if !w.tracker.Totals(w.time.Now()).ClockCompared {
		t.Error("the clocks were not compared")
	}
	var told []string
	seen.wentBack = func(err error) { told = append(told, err.Error()) }
	w.do(func() { w.generation = 1 })
	if err := look(); err == nil || len(told) != 1 ||
		!strings.HasPrefix(told[0], "the store of namespaces is at resourceVersion 1, after 11 was seen") {
		t.Errorf("after an older list: %v, %q", err, told)
	}
	if err := look(); err != nil {
		t.Errorf("the next one: %v", err)
	}
	w.tracker.SetNamespace(testbuilders.Namespace(testbuilders.Home, "5", gc.LabelProtected, "true"), w.time.Now())
	if err := look(); err == nil || len(told) != 2 {
		t.Errorf("after the watch has reported more: %v, %q", err, told)
	}
	w.on("GET "+namespacesPath, func() int { return http.StatusInternalServerError })
	if err := look(); err == nil || len(told) != 2 {
		t.Errorf("without an answer: %v, %q", err, told)
	}
}

// TestLookAtTheStoreOfPolicies: if policies are not in the store of the cluster, every replica also sees that their store has gone back.
func TestLookAtTheStoreOfPolicies(t *testing.T) {
	for name, observe := range map[string]func(*tracker.Tracker){
		"the watch of policies":         func(tr *tracker.Tracker) { tr.ObservePolicies("111") },
		"the watch of cluster policies": func(tr *tracker.Tracker) { tr.ObserveClusterPolicies("111") },
	} {
		w := newWorld(t)
		var told []string
		seen := newHistory(w.tracker.Newest, func(err error) { told = append(told, err.Error()) })
		if err := w.lookOnce(t.Context(), &seen); err != nil || len(told) > 0 {
			t.Errorf("%s: %v, %q", name, err, told)
		}
		observe(w.tracker)
		if err := w.lookOnce(t.Context(), &seen); err == nil || len(told) != 1 || !strings.Contains(told[0], "policies is at resourceVersion 1, after 111") {
			t.Errorf("%s has reported more than is stored: %v, %q", name, err, told)
		}
		w.policyStore = nil // It is the cluster's.
		if err := w.lookOnce(t.Context(), &seen); err != nil || len(told) != 1 {
			t.Errorf("%s, of the store of the cluster: %v, %q", name, err, told)
		}
	}
}

// TestLookAgainAndAgain: every replica looks every ten seconds, also after a look that failed.
func TestLookAgainAndAgain(t *testing.T) {
	w := newWorld(t)
	looks := func() int { return w.requests("GET " + namespacesPath) }
	w.on("GET "+namespacesPath, func() int { return http.StatusInternalServerError })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		seen := newHistory(w.tracker.Newest, w.wentBack)
		w.keepLooking(ctx, &seen)
	}()
	w.until("it waits", w.time.HasWaiters)
	for n := 1; n <= 3; n++ {
		w.time.Step(lookEvery - time.Second)
		if looks() != n-1 {
			t.Errorf("%d looks before ten seconds have passed", looks())
		}
		w.time.Step(time.Second)
		w.until("it looks", func() bool { return looks() == n })
	}
	cancel()
	<-ended
}
