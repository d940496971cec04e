// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// TestWidenedWindowsAreAssessed: people let objects go if they remove or widen windows. That a window opens is no change.
func TestWidenedWindowsAreAssessed(t *testing.T) {
	for name, change := range map[string]func(*world){
		"removed": func(w *world) { w.clusterPolicy(windowsPolicy(2)) },
		"widened": func(w *world) { w.clusterPolicy(windowsPolicy(2, nights, noons)) },
		"for other namespaces": func(w *world) {
			p := windowsPolicy(2, nights)
			p.Spec.NamespaceSelector.MatchLabels = map[string]string{"team": "other"}
			w.clusterPolicy(p)
		},
		"by a label of the namespace": func(w *world) {
			p := windowsPolicy(2, nights)
			p.Spec.NamespaceSelector.MatchLabels = map[string]string{"tier": "prod"}
			w.namespace(testbuilders.Home, "tier", "prod")
			w.clusterPolicy(p)
			w.confirmFresh()
			w.takes()
			w.noHolds("p")
			w.namespace(testbuilders.Home, "tier", "dev")
		},
		"sooner, and still closed": func(w *world) {
			w.clusterPolicy(windowsPolicy(2, gc.Window{Schedule: "1 12 * * *", Duration: "6h"}))
		},
		"after windows that never open": func(w *world) {
			w.clusterPolicy(windowsPolicy(2, noDay))
			w.confirmFresh()
			w.noHolds("p")
			w.clusterPolicy(windowsPolicy(3, nights))
		},
		"widened before it could be assessed": func(w *world) {
			w.CronJobsListed = false
			w.clusterPolicy(windowsPolicy(2, nights, noons))
			w.clusterPolicy(windowsPolicy(3))
			w.ReplaceCronJobs(nil, w.now)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := windowWorld(t, windowsPolicy(1, nights), "a", "b", "c")
			w.Config.HoldAbove = 2
			change(w)
			w.confirmFresh()
			w.takes()
			w.oneHold("p", 3)
		})
	}
}

// TestChangesThatWidenNothing: a change at a time when the windows are open anyway, or after which they open no sooner, lets nothing go.
func TestChangesThatWidenNothing(t *testing.T) {
	w := windowWorld(t, windowsPolicy(1, noons), "a", "b", "c")
	w.Config.HoldAbove = 2
	w.clusterPolicy(windowsPolicy(2))
	w.confirmFresh()
	w.takes("a", "b", "c")

	w = windowWorld(t, windowsPolicy(1, nights), "a", "b", "c")
	w.Config.HoldAbove = 2
	w.clusterPolicy(windowsPolicy(2, gc.Window{Schedule: "0 22 * * *", Duration: "8h"}, gc.Window{Schedule: "0 23 * * *", Duration: "6h"}))
	w.confirmFresh()
	w.noHolds("p")
	w.pass(10 * time.Hour)
	w.takes("a", "b", "c")
}

// TestAChangeOutsideOfWindowsIsAssessedAtOnce: so that people can approve it before the window opens.
func TestAChangeOutsideOfWindowsIsAssessedAtOnce(t *testing.T) {
	w := windowWorld(t, windowsPolicy(1, nights))
	w.Config.HoldAbove = 2
	w.upsert(jobs(30*time.Minute, "a", "b", "c")...)
	w.policy(ttlPolicy("10m", 2))
	w.confirmFresh()
	hold := w.oneHold("p", 3)
	w.decided("a", policy.Hold, policy.ReasonHeld)
	w.policy(ttlPolicy("10m", 2).Annotated(gc.AnnotationApprovedHold, hold.ID))
	w.confirmFresh()
	w.decided("a", policy.Hold, policy.ReasonOutsideWindow)
	w.pass(10 * time.Hour)
	w.takes("a", "b", "c")
}

// TestReadyWithoutWindows: what waited for windows that were removed counts as ready since then.
func TestReadyWithoutWindows(t *testing.T) {
	w := windowWorld(t, windowsPolicy(1, nights), "a")
	w.pass(time.Hour)
	w.clusterPolicy(windowsPolicy(2))
	w.confirmFresh()
	w.takes("a")
	if o := w.orders["a"]; !o.Ready.Equal(w.now) {
		t.Errorf("the order is ready since %s, and windows were removed at %s", o.Ready, w.now)
	}
}

// TestWindowsAfterARestart: what waited for a window goes when one opens, and not because somebody widened windows while no controller ran.
func TestWindowsAfterARestart(t *testing.T) {
	status := func(due, held, waiting, forWindow int64) gc.CleanupPolicyStatus {
		return gc.CleanupPolicyStatus{ObservedGeneration: 1, Due: due, Held: held, Waiting: waiting, WaitingForWindow: forWindow}
	}
	four := names("a-", 4)
	for name, tc := range map[string]struct {
		windows []gc.Window
		status  gc.CleanupPolicyStatus
		held    bool
	}{
		"still closed":                   {[]gc.Window{nights}, status(4, 4, 4, 4), false},
		"never open":                     {[]gc.Window{noDay}, status(4, 4, 4, 4), false},
		"open since":                     {[]gc.Window{noons}, status(4, 4, 4, 4), false},
		"removed":                        {nil, status(4, 4, 4, 4), true},
		"widened":                        {[]gc.Window{{Schedule: "0 0 * * *", Duration: "1d"}}, status(4, 4, 4, 4), true},
		"no windows, waited for another": {nil, status(4, 4, 4, 0), false},
		"new":                            {[]gc.Window{nights}, status(4, 0, 0, 0), false},
		"closed, and due by a change":    {[]gc.Window{nights}, status(0, 0, 0, 0), true},
	} {
		t.Run(name, func(t *testing.T) {
			w := restarted(t, testbuilders.Now.Add(-5*time.Minute))
			p := windowsPolicy(1, tc.windows...)
			p.Status.ObservedGeneration = 1
			w.observeClusterPolicy(p)
			w.lists([]string{testbuilders.Home}, ttlPolicy("1h", 1).Status(tc.status))
			w.upsert(jobs(2*time.Hour, four...)...)
			w.listCovered()
			w.confirmFresh()
			if tc.held {
				w.oneHold("p", 4)
				return
			}
			w.noHolds("p")
		})
	}
}
