// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"fmt"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/given"
)

// crowd are policies of one namespace, every other of which previews. The last of their rules matches, and keeps so many.
func crowd(policies, rules int, ttl gc.TTL, keeping int64) []*given.PolicyBuilder {
	var out []*given.PolicyBuilder
	for i := range policies {
		var all []*given.RuleBuilder
		for r := range rules - 1 {
			all = append(all, given.Rule(fmt.Sprint("other-", r), "1h").Labelled("app", fmt.Sprint("other-", r)))
		}
		p := given.Policy(fmt.Sprintf("p-%03d", i)).Rules(append(all, given.Rule("mine", ttl).Labelled("app", "mine").Keeping(keeping))...)
		if i%2 == 1 {
			p.Preview()
		}
		out = append(out, p)
	}
	return out
}

// TestPoliciesAreAskedOnce counts how often the policies of a namespace are asked about objects, half of which preview. Each of them used
// to be asked again for each that previews.
func TestPoliciesAreAskedOnce(t *testing.T) {
	const known = 3
	mine := func(name string, age time.Duration) *given.JobBuilder {
		return given.Job(name).Label("app", "mine").Complete(given.Now.Add(-age))
	}
	policies := crowd(12, 3, "30d", known)
	for name, c := range map[string]struct {
		do   func(*world)
		want int
	}{
		"a new state":                        {func(w *world) { w.upsert(mine("1", time.Hour).Label("run", "2").Fact()) }, 1},
		"one that runs":                      {func(w *world) { w.upsert(given.Job("runs").Label("app", "mine").Fact()) }, 1},
		"one that pushes one out of pools":   {func(w *world) { w.upsert(mine("new", 0).Fact()) }, 2},
		"one that nobody matches":            {func(w *world) { w.upsert(given.Job("other").Complete(w.now).Fact()) }, 1},
		"one that goes":                      {func(w *world) { w.removed("1") }, 0},
		"time":                               {func(w *world) { w.now = w.now.Add(31 * 24 * time.Hour); w.Expire(w.now) }, known},
		"a policy: all counted, then judged": {func(w *world) { w.policy(crowd(12, 3, "20d", known)[4].Generation(2)) }, 2 * known},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policies...)
			for i := range known {
				w.upsert(mine(fmt.Sprint(i), time.Hour).Fact())
			}
			before := w.matchings
			if c.do(w); w.matchings-before != c.want {
				t.Errorf("policies were asked %d times, want %d", w.matchings-before, c.want)
			}
		})
	}
}
