// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package deleter

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

// simulated is an API server whose latency depends on the number of requests in flight, and a client that deletes as fast as the limit
// allows.
type simulated struct {
	*Limit
	latency func(underway int) time.Duration
	random  *rand.Rand
	now     time.Time
	ends    ends // of the requests in flight
}

func simulate(l *Limit, latency func(int) time.Duration) *simulated {
	return &simulated{Limit: l, latency: latency, random: rand.New(rand.NewPCG(1, 1)), now: testbuilders.Now}
}

// run sends n deletes, and returns how many of them ended per second.
func (s *simulated) run(n int) float64 {
	begin := s.now
	for range n {
		for s.Allows(len(s.ends), s.now) {
			noise := 0.7 + 0.6*s.random.Float64()
			heap.Push(&s.ends, s.now.Add(time.Duration(noise*float64(s.latency(len(s.ends)+1)))))
		}
		underway := len(s.ends)
		s.now = heap.Pop(&s.ends).(time.Time)
		s.Deleted(underway, s.now)
	}
	return float64(n) / s.now.Sub(begin).Seconds()
}

type ends []time.Time

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].Before(e[j]) }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(time.Time)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// atOnce serves n requests at the same time, each in 5 ms. Others wait.
func atOnce(n int) func(int) time.Duration {
	return func(underway int) time.Duration {
		return 5 * time.Millisecond * time.Duration(max(underway, n)) / time.Duration(n)
	}
}

// gradual serves 200 requests per second with one in flight, 600 with four, 900 with sixteen, and 1,050 with 64.
func gradual(underway int) time.Duration {
	n := float64(underway)
	return time.Duration((4 + 0.87*n) * float64(time.Millisecond))
}

func TestLimitFindsTheBest(t *testing.T) {
	for name, c := range map[string]struct {
		most, least, atMost int
		latency             func(int) time.Duration
	}{
		"one at once":        {64, 1, 3, atOnce(1)},
		"four at once":       {64, 3, 8, atOnce(4)},
		"sixteen at once":    {64, 12, 28, atOnce(16)},
		"more than its most": {64, 53, 64, atOnce(1000)},
		"less and less":      {64, 18, 64, gradual},
		"a small bound":      {2, 1, 2, atOnce(100)},
		"a bound of one":     {1, 1, 1, atOnce(100)},
	} {
		t.Run(name, func(t *testing.T) {
			best := 0.
			for n := 1; n <= c.most; n++ {
				best = max(best, float64(n)/c.latency(n).Seconds())
			}
			s := simulate(NewLimit(c.most), c.latency)
			s.run(30_000)
			for range 20 {
				if got := s.run(10_000); got < 0.9*best && c.most > 2 {
					t.Errorf("%.0f per second with about %d in flight, not near %.0f", got, s.Current(), best)
				}
				if s.Current() < c.least || s.Current() > c.atMost {
					t.Errorf("the limit is %d, want from %d to %d", s.Current(), c.least, c.atMost)
				}
			}
		})
	}
}

// TestLimitFollowsTheServer: the server becomes busy with other work, and idle again.
func TestLimitFollowsTheServer(t *testing.T) {
	s := simulate(NewLimit(64), atOnce(1000))
	for _, phase := range []struct{ atOnce, least, most int }{{1000, 53, 64}, {4, 3, 8}, {1000, 53, 64}} {
		s.latency = atOnce(phase.atOnce)
		s.run(40_000)
		if s.Current() < phase.least || s.Current() > phase.most {
			t.Errorf("the limit is %d when the server does %d at once, want from %d to %d", s.Current(), phase.atOnce, phase.least, phase.most)
		}
	}
}

func TestLimitIsCut(t *testing.T) {
	now := testbuilders.Now
	l := NewLimit(16)
	current := func(want int) {
		t.Helper()
		if l.Current() != want {
			t.Fatalf("the limit is %d, want %d", l.Current(), want)
		}
	}
	current(16)
	if !l.Allows(15, now) || l.Allows(16, now) {
		t.Error("it must allow 16 and no more")
	}
	l.Overloaded(0, now)
	current(6) // A little less than half.
	l.Overloaded(0, now.Add(cutEvery-1))
	current(6) // The answer belongs to the same burst.
	for i, want := range []int{3, 1, 1, 1} {
		l.Overloaded(0, now.Add(time.Duration(i+1)*cutEvery))
		current(want)
	}
	if !l.Allows(0, now.Add(time.Minute)) {
		t.Error("it must always allow one")
	}
	for range 1000 {
		l.Deleted(0, now) // Without Overloaded in between.
	}
	if l.Current() < 13 {
		t.Errorf("the limit is still %d", l.Current())
	}
}

func TestLimitIsCutWhenMostAreHindered(t *testing.T) {
	l := NewLimit(16)
	for range 1000 {
		l.Hindered()
		l.Deleted(1, testbuilders.Now)
	}
	if l.Current() != 16 || !l.Allows(15, testbuilders.Now) {
		t.Errorf("the limit is %d", l.Current())
	}
	for range 17 {
		l.Hindered()
	}
	if l.Current() != 6 || !l.Allows(5, testbuilders.Now) {
		t.Errorf("the limit is %d after a round in which all were hindered", l.Current())
	}
}

func TestLimitPauses(t *testing.T) {
	now := testbuilders.Now
	l := NewLimit(8)
	l.Overloaded(5*time.Second, now)
	l.Overloaded(time.Second, now) // The longest wait counts.
	if !l.ResumeAt().Equal(now.Add(5 * time.Second)) {
		t.Errorf("resumes at %v", l.ResumeAt())
	}
	if l.Allows(0, now.Add(5*time.Second-1)) || !l.Allows(0, now.Add(5*time.Second)) {
		t.Error("it must wait 5 seconds and no longer")
	}
}
