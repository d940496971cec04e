// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"errors"
	"testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/given"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// TestWhatCannotBeObservedIsHeld: a resource that cannot be listed or watched holds its objects, and those that it may own.
func TestWhatCannotBeObservedIsHeld(t *testing.T) {
	for resource, c := range map[string]struct {
		taken []string
		held  map[string]string // by object, why
	}{
		"pods":           {[]string{"j"}, map[string]string{"a": "pods cannot be observed: no right"}},
		"jobs.batch":     {nil, map[string]string{"j": "jobs.batch cannot be observed: no right", "a": "jobs.batch cannot be observed: no right"}},
		"cronjobs.batch": {[]string{"a"}, map[string]string{"j": "cronjobs.batch cannot be observed: no right"}},
	} {
		t.Run(resource, func(t *testing.T) {
			w := newWorld(t, keep("0s", 1))
			w.upsert(job(0, "j"), given.Pod("a").Succeeded(w.now).Fact())
			w.TakeDirty()
			w.Observing(resource, errors.New("no right"), w.now)
			for name, why := range c.held {
				w.decided(name, policy.Hold, policy.ReasonUnobserved)
				if got := w.explain(w.records.get(given.UID(name))).Detail; got != why {
					t.Errorf("%s is held because %q", name, got)
				}
			}
			w.counts("p", counts{candidates: 2, due: 2, held: int64(len(c.held))})
			if w.report("p").Blind != resource+" cannot be observed: no right" {
				t.Errorf("the report says %q", w.report("p").Blind)
			}
			if len(w.TakeDirty()) != 1 {
				t.Error("no report is stale")
			}
			w.takes(c.taken...)
			w.Observing(resource, errors.New("no right, still"), w.now)
			w.takes()
			w.Observing(resource, nil, w.now)
			w.Observing(resource, nil, w.now)
			if w.report("p").Blind != "" {
				t.Errorf("the report says %q", w.report("p").Blind)
			}
			for name := range c.held {
				w.decided(name, policy.Delete, policy.ReasonExpired)
			}
		})
	}
	t.Run("and others are not", func(t *testing.T) {
		w := newWorld(t, given.Policy("p").Rules(given.Rule("r", "0s").For(gc.ResourceJobs)))
		w.upsert(job(0, "j"))
		w.Observing("pods", errors.New("no right"), w.now)
		if w.report("p").Blind != "" {
			t.Errorf("the report says %q", w.report("p").Blind)
		}
		w.takes("j")
	})
}
