// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/tracker"
	"github.com/winnow-dev/winnow/pkg/controller/write/records"
)

// TestRun: a replica takes the Lease, deletes what is due, and gives the Lease back when it ends. Then another one leads.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer()
		s.job("a")
		stop := start(t, s.controller(t, "replica-1", nil))
		passes(5 * time.Second)
		s.expect(t, 1, "replica-1")
		other := s.controller(t, "replica-2", nil)
		stopOther := start(t, other)
		defer stopOther()
		passes(time.Second)
		if other.replica.Totals(time.Now()).ClockInDoubt {
			t.Error("a replica that does not lead has not compared the clocks")
		}
		passes(time.Minute)
		s.expect(t, 1, "replica-1")
		stop()
		s.expect(t, 1, "")
		s.job("b")
		passes(5 * time.Second)
		s.expect(t, 2, "replica-2")
	})
}

// expect fails unless so many Jobs were deleted, and the Lease is in the name of a replica.
func (s *apiServer) expect(t *testing.T, deleted int, holder string) {
	t.Helper()
	if s.jobsDeleted() != deleted || s.holder() != holder {
		t.Errorf("%d Jobs deleted, the Lease is in the name of %q; want %d and %q", s.jobsDeleted(), s.holder(), deleted, holder)
	}
}

// TestRunWithoutElection asks for no Lease.
func TestRunWithoutElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer()
		s.job("a")
		stop := start(t, s.controller(t, "replica-1", func(c *Config) { c.LeaderElection.LeaderElect = false }))
		defer stop()
		passes(5 * time.Second)
		s.expect(t, 1, "")
	})
}

// TestLeaseIsGivenBackLast: the next leader must not start while a request of this one is in flight.
func TestLeaseIsGivenBackLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer()
		s.job("a")
		answer := make(chan struct{})
		s.on(func(r *http.Request) int {
			if r.Method == http.MethodDelete {
				<-answer
			}
			return 0
		})
		stop := start(t, s.controller(t, "replica-1", nil))
		passes(5 * time.Second)
		ended := make(chan struct{})
		go func() {
			stop()
			close(ended)
		}()
		passes(8 * time.Second)
		s.expect(t, 0, "replica-1")
		close(answer)
		<-ended
		s.expect(t, 1, "")
	})
}

// TestRecordsDoNotKeepTheLease: a replica that ends gives the Lease back before it writes its last records, and does not try for ever.
func TestRecordsDoNotKeepTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer()
		s.job("a")
		tried := 0
		s.on(func(r *http.Request) int {
			if !strings.Contains(r.URL.Path, "/recordchunks") {
				return 0
			}
			tried++
			return http.StatusServiceUnavailable
		})
		stop := start(t, s.controller(t, "replica-1", func(c *Config) { c.RecordsPerNamespace = 1000 }))
		passes(5 * time.Second)
		s.expect(t, 1, "replica-1")
		ended := make(chan struct{})
		go func() {
			stop()
			close(ended)
		}()
		passes(2 * time.Second)
		s.expect(t, 1, "")
		select {
		case <-ended:
			t.Error("it has ended without its last records")
		default:
		}
		passes(records.FlushTimeout)
		if <-ended; tried == 0 {
			t.Error("it has tried to store nothing")
		}
	})
}

// TestLeaseIsLost: a replica that cannot renew the Lease stops to lead before another one may, and may lead again later. It renews the Lease
// less often than it would look whether another one has given it back.
func TestLeaseIsLost(t *testing.T) {
	for _, retry := range []time.Duration{2 * time.Second, 500 * time.Millisecond} {
		t.Run(retry.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAPIServer()
				c := s.controller(t, "replica-1", func(c *Config) { c.LeaderElection.RetryPeriod.Duration = retry })
				stop := start(t, c)
				defer stop()
				passes(5 * time.Second)
				s.expect(t, 0, "replica-1")
				renewed, code := 0, 0
				s.on(func(r *http.Request) int {
					if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/leases/") {
						return 0
					}
					renewed++
					return code
				})
				passes(time.Minute)
				if renewed != 30 {
					t.Errorf("it renewed the Lease %d times in a minute, want 30", renewed)
				}
				s.do(func() { code = http.StatusInternalServerError })
				passes(15 * time.Second)
				if c.replica.(*tracker.Tracker).Leading() {
					t.Error("it leads without the Lease")
				}
				s.job("a") // The Lease is still in its name.
				passes(time.Minute)
				s.expect(t, 0, "replica-1")
				s.on(func(*http.Request) int { return 0 })
				passes(10 * time.Second)
				s.expect(t, 1, "replica-1")
			})
		})
	}
}

// TestDoubtKeeps: while a replica is in doubt, it deletes nothing.
func TestDoubtKeeps(t *testing.T) {
	for name, c := range map[string]struct {
		config func(*Config)
		begin  func(*apiServer)
		later  func(*apiServer) // when policies and lifecycles were observed; may be nil
		end    func(*apiServer) // ends the doubt; nil if nothing does
	}{
		"it starts suspended": {config: func(c *Config) { c.StartSuspended = true }},
		"its clock is slow": {
			begin: func(s *apiServer) { s.do(func() { s.ahead = time.Hour }) },
			end:   func(s *apiServer) { s.do(func() { s.ahead = 0 }) },
		},
		"its clock is fast": {
			begin: func(s *apiServer) { s.do(func() { s.ahead = -time.Hour }) },
			end:   func(s *apiServer) { s.do(func() { s.ahead = 0 }) },
		},
		"answers have no Date": {
			begin: func(s *apiServer) { s.do(func() { s.undated = true }) },
			end:   func(s *apiServer) { s.do(func() { s.undated = false }) },
		},
		"the watch of lifecycles is behind": {
			begin: func(s *apiServer) {
				s.on(func(r *http.Request) int {
					if strings.HasSuffix(r.URL.Path, "/resourcelifecycles") && r.URL.Query().Get("watch") != "" {
						<-r.Context().Done()
					}
					return 0
				})
			},
			later: func(s *apiServer) { s.lifecycle("runs.example.com") },
		},
		"the Lease cannot be read at first": {
			begin: func(s *apiServer) {
				s.on(func(r *http.Request) int {
					if strings.Contains(r.URL.Path, "/leases") {
						return http.StatusInternalServerError
					}
					return 0
				})
			},
			end: func(s *apiServer) { s.on(func(*http.Request) int { return 0 }) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAPIServer()
				if c.begin != nil {
					c.begin(s)
				}
				stop := start(t, s.controller(t, "replica-1", c.config))
				defer stop()
				passes(5 * time.Second)
				if c.later != nil {
					c.later(s)
				}
				s.job("a")
				passes(30 * time.Second)
				if n := s.jobsDeleted(); n > 0 {
					t.Fatalf("%d Jobs deleted", n)
				}
				if c.end == nil {
					return
				}
				c.end(s)
				passes(15 * time.Second)
				if n := s.jobsDeleted(); n != 1 {
					t.Errorf("%d Jobs deleted once nothing is in doubt", n)
				}
			})
		})
	}
}

// lifecycle stores a ResourceLifecycle.
func (s *apiServer) lifecycle(name string) {
	s.Set(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "ResourceLifecycle",
		"metadata": map[string]any{"name": name, "uid": "uid-" + name, "generation": int64(1)},
		"spec":     map[string]any{"finished": map[string]any{"when": "true", "succeeded": "true", "at": "object.at"}},
	}})
}

// TestClocksAreComparedFirst: a new replica adopts the holds of the leader before it. By a slow clock nothing is due, so the hold would
// have no members, and end. If the API server does not say what time it is, the replica observes all the same.
func TestClocksAreComparedFirst(t *testing.T) {
	for name, answers := range map[string]bool{"the API server takes long": true, "it does not answer": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAPIServer()
				s.policyWith("90m", map[string]any{"holds": []any{map[string]any{
					"id": "h", "namespace": testbuilders.Home, "objects": int64(1), "why": "a change", "since": "1999-12-31T23:50:00Z",
				}}})
				s.job("a") // It is due in half an hour by the replica's clock, and was half an hour ago by the API server's.
				s.do(func() { s.ahead = time.Hour })
				s.on(func(r *http.Request) int {
					if strings.HasSuffix(r.URL.Path, "/namespaces") && r.URL.Query().Get("limit") == "1" {
						if time.Sleep(time.Second); !answers {
							<-r.Context().Done()
						}
					}
					return 0
				})
				c := s.controller(t, "replica-1", nil)
				stop := start(t, c)
				defer stop()
				passes(8 * time.Second)
				totals := c.replica.Totals(time.Now())
				if totals.Objects != 1 || totals.Holds != 1 || !totals.ClockInDoubt {
					t.Errorf("%d objects, %d holds, the clock is in doubt: %v", totals.Objects, totals.Holds, totals.ClockInDoubt)
				}
			})
		})
	}
}

// TestAnswersOnceSynced: before policies and namespaces are known, what people ask has no answer, instead of an empty one.
func TestAnswersOnceSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer()
		s.policy("1d")
		s.job("a")
		c := s.controller(t, "replica-1", nil)
		ask := func() map[string]error {
			out := map[string]error{}
			_, out["resources of candidates"] = c.CandidateResources("")
			_, out["named resources"] = c.NamedResources()
			_, out["review"] = c.Review(t.Context(), gc.Draft{
				PolicyChange: gc.PolicyChange{After: testbuilders.Policy("draft").Default("1h").Obj(), DryRun: true},
				MayList:      func(context.Context, string, string) (bool, error) { return true, nil },
			})
			return out
		}
		for question, err := range ask() {
			if err == nil || !strings.Contains(err.Error(), "try again in a few seconds") {
				t.Errorf("%s: %v", question, err)
			}
		}
		if f := c.Forecast(t.Context(), gc.PolicyChange{After: &gc.CleanupPolicy{}}); f.Complete {
			t.Error("a forecast from nothing is complete")
		}
		stop := start(t, c)
		defer stop()
		passes(5 * time.Second)
		for question, err := range ask() {
			if err != nil {
				t.Errorf("%s: %v", question, err)
			}
		}
		page, err := c.Candidates(context.Background(), gc.CandidateQuery{
			Namespace: testbuilders.Home, Resources: sets.New(gc.ResourceJobs), Labels: labels.Everything(), Fields: fields.Everything(),
		})
		if err != nil || len(page.Items) != 1 {
			t.Errorf("candidates: %+v, %v", page, err)
		}
	})
}
