// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
)

// policyStore stores policy p as the API server does: each write, of the policy or of a barrier, gets the next version, and the watch
// delivers the writes in their order.
type policyStore struct {
	*world

	mu        sync.Mutex
	writes    []storedWrite
	delivered int // how many writes the watch has delivered
	// lag is how long after a write the watch delivers it. If frozen is set, the watch delivers nothing.
	lag    time.Duration
	frozen bool
}

type storedWrite struct {
	report func(version string)
	at     time.Time
}

// newPolicyStore makes the reader of w write barriers.
func newPolicyStore(w *world) *policyStore {
	s := &policyStore{world: w}
	s.put("0s")
	s.delivered = 1 // The tracker has observed this write.
	w.writeBarriers(s.barrier(w.tracker.ObservePolicies), s.barrier(w.tracker.ObserveClusterPolicies))
	return s
}

func (s *policyStore) barrier(observe func(version string)) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return s.write(observe), nil }
}

// put writes the policy, with a TTL.
func (s *policyStore) put(ttl gc.TTL) {
	s.write(func(version string) { s.tracker.SetPolicy(s.policy(ttl, version), s.time.Now()) })
}

func (s *policyStore) policy(ttl gc.TTL, version string) *gc.CleanupPolicy {
	generation, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		s.Error(err)
	}
	return testbuilders.Policy("p").Generation(generation).Version(version).Default(ttl).Obj()
}

func (s *policyStore) write(report func(version string)) string {
	s.mu.Lock()
	s.writes = append(s.writes, storedWrite{report, s.time.Now()})
	version := strconv.Itoa(len(s.writes))
	s.mu.Unlock()
	s.deliver()
	return version
}

// deliver delivers the writes that are due by now.
func (s *policyStore) deliver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.frozen && s.delivered < len(s.writes) && s.time.Since(s.writes[s.delivered].at) >= s.lag {
		s.delivered++
		s.writes[s.delivered-1].report(strconv.Itoa(s.delivered))
	}
}

// written returns the number of writes.
func (s *policyStore) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.writes)
}

// set changes the lag of the watch, and whether the watch is frozen.
func (s *policyStore) set(lag time.Duration, frozen bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag, s.frozen = lag, frozen
}

// relist starts the watch over with a list of the first version, which allows all deletes, and freezes the watch.
func (s *policyStore) relist() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delivered, s.frozen = 1, true
	s.tracker.ReplacePolicies([]*gc.CleanupPolicy{s.policy("0s", "1")}, "1", s.time.Now())
}

// passes is like world.passes, and delivers writes in each step.
func (s *policyStore) passes(what string, condition func() bool) {
	s.Helper()
	s.world.passes(20*time.Millisecond, what, func() bool {
		s.deliver()
		return condition()
	})
}

// TestPromiseOfASecondByBarriers: after an acknowledged change of a policy, no DELETE that it forbids begins more than a second later,
// whatever happens to the watch. Deletions continue once the watch has delivered a policy that allows them.
func TestPromiseOfASecondByBarriers(t *testing.T) {
	const jobs = 60
	for name, then := range map[string]func(*policyStore){
		"the watch does not lag":                          func(*policyStore) {},
		"the watch lags, and a reading can wait for it":   func(s *policyStore) { s.set(freshness.For-200*time.Millisecond, false) },
		"the watch lags for longer than a reading is new": func(s *policyStore) { s.set(3*time.Second, false) },
		"the watch freezes":                               func(s *policyStore) { s.set(0, true) },
		"the watch starts over with an older list":        (*policyStore).relist,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := newPolicyStore(w)
			for i := range jobs {
				w.job(fmt.Sprint(i))
			}
			var changed time.Time // guarded by the lock of the server
			n := 0
			w.on(http.MethodDelete, func() int {
				w.time.Step(100 * time.Millisecond)
				change := false
				w.do(func() { n++; change = n == 12 })
				if change {
					s.set(0, true) // then decides when the change is delivered.
					s.put("never")
					w.do(func() { changed = w.time.Now() })
					s.set(0, false)
					then(s)
				}
				s.deliver()
				return 0
			})
			w.run()
			w.until("the policy is changed", w.locked(func() bool { return !changed.IsZero() }))
			s.passes("five seconds have passed", func() bool { return w.time.Since(changed) > 5*time.Second })
			w.deletesWithinASecond(changed, jobs)
			s.put("0s")
			s.set(0, false)
			s.passes("the rest is deleted", func() bool { return w.requests("DELETE") == jobs })
		})
	}
}

// TestReadingsWaitForTheWatch: while the watch lags, a reading waits for it instead of writing barrier after barrier. Everything is deleted
// as long as barriers are reported before the reading is too old.
func TestReadingsWaitForTheWatch(t *testing.T) {
	for lag, deletes := range map[time.Duration]bool{
		100 * time.Millisecond: true, 700 * time.Millisecond: true, freshness.For: false, time.Minute: false,
	} {
		t.Run(lag.String(), func(t *testing.T) {
			w := newWorld(t)
			s := newPolicyStore(w)
			s.set(lag, false)
			for i := range 5 {
				w.job(fmt.Sprint(i))
			}
			w.run()
			s.passes("ten seconds have passed", func() bool { return w.time.Since(testbuilders.Now) > 10*time.Second })
			if n := w.requests("DELETE"); deletes != (n == 5) || !deletes && n > 0 {
				t.Errorf("%d DELETEs", n)
			}
			if most := 2 * int(w.time.Since(testbuilders.Now)/readEvery+2); s.written() > most {
				t.Errorf("%d barriers written, want at most %d", s.written(), most)
			}
		})
	}
}

// TestReadingIsConfirmedAtOnce: deletes begin with the bookmark that a reading waits for, before any time passes.
func TestReadingIsConfirmedAtOnce(t *testing.T) {
	w := newWorld(t)
	s := newPolicyStore(w)
	s.set(0, true)
	w.job("a")
	w.run()
	w.until("it is read", func() bool { return s.written() == 3 && w.requests("GET "+leasePath) == 1 })
	if n := w.requests("DELETE"); n > 0 {
		t.Fatal("deleted before the watch delivered the barriers")
	}
	s.set(0, false)
	s.deliver()
	w.until("it is deleted", func() bool { return w.requests("DELETE") == 1 })
	if w.time.Since(testbuilders.Now) > 0 {
		t.Error("time has passed")
	}
}

// TestBarriersThatCannotBeWritten: while barriers cannot be written, nothing is deleted.
func TestBarriersThatCannotBeWritten(t *testing.T) {
	w := newWorld(t)
	s := newPolicyStore(w)
	write := w.reader.policies
	var fails, failed []bool
	w.do(func() { fails = []bool{true, true, true} })
	w.reader.policies = func(ctx context.Context) (c freshness.Contents, err error) {
		fail := false
		w.do(func() {
			if fail = len(fails) > 0; fail {
				fails, failed = fails[1:], slices.Concat(failed, fails[:1])
			}
		})
		if fail {
			return c, errors.New("refused")
		}
		return write(ctx)
	}
	w.job("a")
	w.run()
	w.until("the first fails", w.locked(func() bool { return len(failed) > 0 }))
	if n := w.requests("DELETE"); n > 0 {
		t.Fatal("deleted without a barrier")
	}
	s.passes("it is deleted", func() bool { return w.requests("DELETE") == 1 })
	if len(failed) != 3 {
		t.Errorf("deleted after %d failures", len(failed))
	}
}
