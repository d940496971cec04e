// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

// policyStore keeps policy p as the cluster does: each write, of the policy or of a barrier, gets the next version, and the watch reports
// the writes in their order.
type policyStore struct {
	*world

	mu     sync.Mutex
	writes []storedWrite
	told   int // how many writes the watch has reported
	// lag is how long after a write the watch reports it, and frozen whether it reports nothing.
	lag    time.Duration
	frozen bool
}

type storedWrite struct {
	report func(version string)
	at     time.Time
}

// newPolicyStore has the policies of w read by barriers.
func newPolicyStore(w *world) *policyStore {
	s := &policyStore{world: w}
	s.put("0s")
	s.told = 1 // It is what w knows.
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
	s.tell()
	return version
}

// tell has the watch report what it reports at this time.
func (s *policyStore) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.frozen && s.told < len(s.writes) && s.time.Since(s.writes[s.told].at) >= s.lag {
		s.told++
		s.writes[s.told-1].report(strconv.Itoa(s.told))
	}
}

// written is how many writes there were.
func (s *policyStore) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.writes)
}

// set changes how the watch is.
func (s *policyStore) set(lag time.Duration, frozen bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag, s.frozen = lag, frozen
}

// relist starts the watch over from a list of the first version, when the policy let everything go, and freezes it.
func (s *policyStore) relist() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told, s.frozen = 1, true
	s.tracker.ReplacePolicies([]*gc.CleanupPolicy{s.policy("0s", "1")}, "1", s.time.Now())
}

// passes is as that of the world, and the watch reports.
func (s *policyStore) passes(what string, condition func() bool) {
	s.Helper()
	s.world.passes(20*time.Millisecond, what, func() bool {
		s.tell()
		return condition()
	})
}

// TestPromiseOfASecondByBarriers: after an acknowledged change of a policy, no DELETE that it forbids starts more than a second later,
// whatever happens to the watch. Deletions go on once the watch has caught up with a policy that allows them.
func TestPromiseOfASecondByBarriers(t *testing.T) {
	const jobs = 60
	for name, then := range map[string]func(*policyStore){
		"the watch is in time":                            func(*policyStore) {},
		"the watch lags, and a reading can wait for it":   func(s *policyStore) { s.set(freshness.For-200*time.Millisecond, false) },
		"the watch lags for longer than a reading is new": func(s *policyStore) { s.set(3*time.Second, false) },
		"the watch freezes":                               func(s *policyStore) { s.set(0, true) },
		"the watch starts over from what was before":      (*policyStore).relist,
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
					s.set(0, true) // What follows is how the change is reported, if it is.
					s.put("never")
					w.do(func() { changed = w.time.Now() })
					s.set(0, false)
					then(s)
				}
				s.tell()
				return 0
			})
			w.run()
			w.until("the policy is changed", func() (done bool) {
				w.do(func() { done = !changed.IsZero() })
				return done
			})
			s.passes("five seconds have passed", func() bool { return w.time.Since(changed) > 5*time.Second })
			w.do(func() {
				last := time.Duration(math.MinInt64)
				for job, at := range w.deletes {
					if last = max(last, at.Sub(changed)); at.Sub(changed) > time.Second {
						t.Errorf("DELETE of %s began %s after the change", job, at.Sub(changed))
					}
				}
				if len(w.deletes) == jobs {
					t.Error("the change came too late to forbid anything")
				}
				t.Logf("%d deleted, the last %s after the change", len(w.deletes), last)
			})
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
				t.Errorf("%d barriers written, want %d at the most", s.written(), most)
			}
		})
	}
}

// TestReadingIsConfirmedAtOnce: the bookmark that a reading waits for starts the deletes, before any time passes.
func TestReadingIsConfirmedAtOnce(t *testing.T) {
	w := newWorld(t)
	s := newPolicyStore(w)
	s.set(0, true)
	w.job("a")
	w.run()
	w.until("it is read", func() bool { return s.written() == 3 && w.requests("GET "+leasePath) == 1 })
	if n := w.requests("DELETE"); n > 0 {
		t.Fatal("deleted before the watch reported the barriers")
	}
	s.set(0, false)
	s.tell()
	w.until("it is deleted", func() bool { return w.requests("DELETE") == 1 })
	if w.time.Since(testbuilders.Now) > 0 {
		t.Error("time has passed")
	}
}

// TestBarriersThatCannotBeWritten: nothing is deleted, and everything once they can be.
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
	w.until("the first fails", func() (done bool) {
		w.do(func() { done = len(failed) > 0 })
		return done
	})
	if n := w.requests("DELETE"); n > 0 {
		t.Fatal("deleted without a barrier")
	}
	s.passes("it is deleted", func() bool { return w.requests("DELETE") == 1 })
	if len(failed) != 3 {
		t.Errorf("deleted after %d failures", len(failed))
	}
}
