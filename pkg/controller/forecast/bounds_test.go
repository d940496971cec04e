// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/engine/trial"
	"github.com/winnow-dev/winnow/pkg/controller/internal/fakecluster"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/tracker"
)

// minutesAgo returns n times m.
func minutesAgo(m, n int) []int { return slices.Repeat([]int{m}, n) }

func TestAtLeast(t *testing.T) {
	created := gc.PolicyChange{After: ttlPolicy("p", "1h")}
	shortened := gc.PolicyChange{Before: ttlPolicy("p", "1d"), After: next(ttlPolicy("p", "1h"))}
	for name, tc := range map[string]struct {
		world         *world
		change        gc.PolicyChange
		known, listed int
		want          []string
	}{
		"listed, exactly as many": {
			world: newWorld(jobs("team-a", minutesAgo(70, 3)...)...), change: created, listed: 3,
			want: []string{"3 Jobs in team-a are past this TTL and will be deleted now"},
		},
		"listed, one too many": {
			world: newWorld(jobs("team-a", minutesAgo(70, 4)...)...), change: created, listed: 3,
			want: []string{"at least 3 Jobs in team-a are past this TTL and will be deleted now"},
		},
		"listed, none of them due": {
			world: newWorld(jobs("team-a", minutesAgo(10, 4)...)...), change: created, listed: 3,
			want: []string{"nothing is due among the first 3 objects; there was no time to check the rest"},
		},
		"known, one too many": {
			world: newWorld(jobs("team-a", minutesAgo(70, 4)...)...).with(ttlPolicy("p", "1d")), change: shortened, known: 3,
			want: []string{"at least 3 Jobs in team-a are past this TTL and will be deleted now"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := tc.world.forecaster()
			f.knownMost, f.listedMost = tc.known, tc.listed
			if got := f.Forecast(t.Context(), tc.change).Lines; !slices.Equal(got, tc.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

// TestPartlyListed: if the cluster does not answer in time, or with an error, the forecast is based on the known objects.
func TestPartlyListed(t *testing.T) {
	const counted = "at least 1 Job in team-a is past this TTL and will be deleted now"
	unlisted := "more objects may be due than were counted: pods cannot be listed: no right. To grant it to Winnow, an administrator can use: " +
		gc.GrantAdvice(gc.ResourcePods)
	ofJobs := testbuilders.Policy("p").Rules(testbuilders.Rule("jobs", "1d").For(gc.ResourceJobs))
	for name, tc := range map[string]struct {
		minutes int // since the objects finished
		answer  func() error
		want    []string
	}{
		"refused, nothing else is due": {
			minutes: 10,
			answer:  func() error { return errors.New("no right") },
			want:    []string{unlisted},
		},
		"no answer": {
			minutes: 70,
			answer:  func() error { time.Sleep(listTimeout + time.Millisecond); return errors.New("cut off") },
			want:    []string{counted},
		},
		"refused": {
			minutes: 70,
			answer:  func() error { return errors.New("no right") },
			want:    []string{counted, unlisted},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(join(jobs("team-a", tc.minutes), pods("team-a", tc.minutes))...)
			w.with(ofJobs.Obj())
			cluster := fakecluster.New()
			cluster.React(func(r fakecluster.Request) (runtime.Object, error) {
				if r.Resource == "pods" {
					return nil, tc.answer()
				}
				return nil, nil
			})
			f := w.forecasterOf(cluster)
			got := f.Forecast(t.Context(), gc.PolicyChange{Before: ofJobs.Obj(), After: next(ttlPolicy("p", "1h"))})
			if !slices.Equal(got.Lines, tc.want) || got.Complete {
				t.Errorf("%s: got %q, complete: %t; want %q", name, got.Lines, got.Complete, tc.want)
			}
		})
	}
}

// slowClock takes a while to return the time. The forecast reads it after its start.
type slowClock struct {
	*clocktesting.FakePassiveClock
	takes time.Duration
}

func (c slowClock) Now() time.Time {
	time.Sleep(c.takes)
	return c.FakePassiveClock.Now()
}

// TestTooLong: a forecast that takes too long returns early, and frees its slot once it has noticed.
func TestTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newWorld(jobs("team-a", 70)...).forecaster()
		f.Clock = slowClock{clocktesting.NewFakePassiveClock(testbuilders.Now), time.Hour}
		begin := time.Now()
		got := f.Forecast(t.Context(), gc.PolicyChange{After: ttlPolicy("p", "1h")})
		want := "cannot tell what this change deletes: there are too many objects, policies or rules to evaluate within 2s"
		if !slices.Equal(got.Lines, []string{want}) || got.Complete || time.Since(begin) != timeout {
			t.Errorf("got %q, complete: %t, after %s; want %q after %s", got.Lines, got.Complete, time.Since(begin), want, timeout)
		}
		if len(f.slots) != 1 {
			t.Errorf("%d forecasts are under way, want 1", len(f.slots))
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(f.slots) != 0 {
			t.Errorf("%d forecasts are under way after an hour", len(f.slots))
		}
	})
}

// TestTrialEnds: a trial notices soon that its context has ended, at any step. A review also counts each object, before and after.
func TestTrialEnds(t *testing.T) {
	const n = 1000
	change := gc.PolicyChange{Before: ttlPolicy("p", "1d"), After: approved(next(ttlPolicy("p", "1h")), "5f3c")}
	w := newWorld(jobs("team-a", minutesAgo(70, n)...)...).with(ttlPolicy("p", "1d"))
	run := func(asks int, r *review) (int, error) {
		ctx := &testbuilders.Countdown{Context: t.Context(), Left: asks}
		snapshot := w.Snapshot(ctx, trial.Propose(change), 2*n, testbuilders.Now)
		t := attempt{Engine: snapshot.Engine, now: testbuilders.Now, review: r}
		err := t.run(ctx, snapshot, &listing{}, change)
		return asks - ctx.Left, err
	}
	least := 2 * n
	for _, tc := range []struct {
		name   string
		review func() *review
	}{
		{"forecast", func() *review { return nil }},
		{"review", func() *review { return newReview(gc.Draft{PolicyChange: change}) }},
	} {
		most, err := run(1<<20, tc.review())
		if err != nil || most < least {
			t.Fatalf("%s: got %v after %d questions, want at least %d: one for each of %d objects before and after", tc.name, err, most, least, n)
		}
		for _, asks := range []int{0, 1, n / 2, n + 5, most / 2, most - n/2, most - 2, most - 1} {
			if asked, err := run(asks, tc.review()); err == nil || asked > asks+2 {
				t.Errorf("%s, after %d questions: got %v, and %d more", tc.name, asks, err, asked-asks)
			}
		}
		least = most + 2*n
	}
}

func TestTooManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newWorld(jobs("team-a", 70)...).forecaster()
		for range atOnce {
			f.slots <- struct{}{}
		}
		got := f.Forecast(t.Context(), gc.PolicyChange{After: ttlPolicy("p", "1h")}).Lines
		want := "cannot tell what this change deletes: the server is busy with other changes of policies"
		if len(got) != 1 || got[0] != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestManyNamespaces: if a change reaches many namespaces, all are listed at once, and objects of other namespaces are ignored.
func TestManyNamespaces(t *testing.T) {
	var objects []runtime.Object
	names := []string{"other"}
	for i := range namespacesMost + 1 {
		names = append(names, fmt.Sprintf("ns-%02d", i))
	}
	for _, name := range names {
		objects = append(objects, jobs(name, 70)...)
	}
	w := newWorld(objects...)
	for _, name := range names {
		w.SetNamespace(testbuilders.Namespace(name, "1", "of", name[:2]), testbuilders.Now)
	}
	change := gc.PolicyChange{After: clusterPolicy("p", func(s *gc.ClusterCleanupPolicySpec) {
		s.TTLAfterFinished, s.NamespaceSelector = &hour, &metav1.LabelSelector{MatchLabels: map[string]string{"of": "ns"}}
	})}
	want := []string{"21 Jobs in 21 namespaces are past this TTL and will be deleted now: ns-00 (1), ns-01 (1), ns-02 (1) and 18 more"}
	if got := w.forecaster().Forecast(t.Context(), change).Lines; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// BenchmarkForecast checks the largest allowed number of objects, and all of them become due.
func BenchmarkForecast(b *testing.B) {
	w := &world{Tracker: begun(tracker.New(memory.Config{HoldAbove: 1000, HoldAboveTotal: -1}, nil))}
	w.SetNamespace(testbuilders.Namespace(testbuilders.Home, "1"), testbuilders.Now)
	w.set(ttlPolicy("p", "1d"))
	all := make([]*facts.Compact, knownMost)
	for i := range all {
		all[i] = facts.Compress(testbuilders.Job(fmt.Sprint("job-", i)).Complete(testbuilders.Now.Add(-2 * time.Hour)).Fact())
	}
	w.ReplaceCronJobs(nil, testbuilders.Now)
	w.list(gc.ResourceJobs, all)
	w.list(gc.ResourcePods, nil)
	f := w.forecaster()
	for b.Loop() {
		f.Forecast(b.Context(), gc.PolicyChange{Before: ttlPolicy("p", "1d"), After: next(ttlPolicy("p", "1h"))})
	}
}
