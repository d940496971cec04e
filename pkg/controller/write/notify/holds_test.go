// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

// tell acknowledges all offers, and returns them.
func tell(h *holds) (out []string) {
	for taken := h.take(testbuilders.Now); len(taken) > 0; taken = h.take(testbuilders.Now) {
		for _, n := range taken {
			told := n.(*holdNotice)
			out = append(out, told.listed.ID+" "+told.phase)
			n.settle(true)
		}
	}
	return out
}

func noneLost(t *testing.T) func(int) {
	return func(n int) { t.Errorf("%d holds are forgotten", n) }
}

// TestHolds: each hold is told when it comes and when it ends, and also by a replica that has just begun to lead.
func TestHolds(t *testing.T) {
	type reports = []report.Report
	unlisted := func(r report.Report) report.Report {
		r.UnlistedHolds = 1
		return r
	}
	renewed := reported(nil, hold("a"))
	renewed.Holds[0].Since = &metav1.Time{Time: testbuilders.Now.Add(time.Hour)}
	for name, c := range map[string]struct {
		reports []reports
		want    []string
	}{
		"nothing":     {[]reports{{reported(nil)}, {reported(nil)}}, nil},
		"found once":  {[]reports{{reported(nil)}, {reported(nil, hold("a"))}, {reported(nil, hold("a"))}}, []string{"a Found"}},
		"one more":    {[]reports{{reported(nil, hold("a"))}, {reported(nil, hold("a"), hold("b"))}}, []string{"a Found", "b Found"}},
		"ended":       {[]reports{{reported(nil, hold("a"))}, {reported(nil)}, {reported(nil)}}, []string{"a Found", "a Ended"}},
		"found again": {[]reports{{reported(nil, hold("a"))}, {reported(nil)}, {renewed}}, []string{"a Found", "a Ended", "a Found"}},
		"taken over by a later change": {
			[]reports{{reported(nil, hold("a"))}, {reported(nil, hold("b"))}}, []string{"a Found", "b Found", "a Ended"},
		},
		"the policy is deleted": {[]reports{{reported(nil, hold("a"), hold("b"))}, {}}, []string{"a Found", "b Found", "a Ended", "b Ended"}},
		"a new leader tells it again": {
			[]reports{{reported([]gc.PolicyHold{hold("a")}, hold("a"))}}, []string{"a Found"},
		},
		"ended before a new leader led": {
			[]reports{{reported([]gc.PolicyHold{hold("a"), hold("b")})}, {reported([]gc.PolicyHold{hold("a")})}}, []string{"a Ended", "b Ended"},
		},
		"no longer listed": {
			[]reports{{reported(nil, hold("b"))}, {unlisted(reported(nil, hold("a")))}, {reported(nil, hold("a"), hold("b"))}, {reported(nil, hold("a"))}},
			[]string{"b Found", "a Found", "b Ended"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var h holds
			var got []string
			for _, r := range c.reports {
				h.compare(testbuilders.Home, r, testbuilders.Now, noneLost(t))
				got = append(got, tell(&h)...)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("told %q, want %q", got, c.want)
			}
		})
	}
}

// TestHoldsWhileTheReceiverIsDown: what the receiver has not acknowledged is told however often the holds change, and nothing else.
func TestHoldsWhileTheReceiverIsDown(t *testing.T) {
	var h holds
	report := func(holds ...gc.PolicyHold) {
		h.compare(testbuilders.Home, []report.Report{reported(nil, holds...)}, testbuilders.Now, noneLost(t))
	}
	report(hold("a"), hold("b"))
	underway := h.take(testbuilders.Now)
	report(hold("a"), hold("c"))
	report(hold("a")) // c has come and gone.
	report(hold("a"))
	if waiting := h.take(testbuilders.Now); len(waiting) > 0 {
		t.Errorf("b is on the way, and %d others are sent before", len(waiting))
	}
	for _, n := range underway {
		n.settle(true)
	}
	if got := tell(&h); !slices.Equal(got, []string{"b Ended"}) {
		t.Errorf("told %q", got)
	}
	if len(h.policies[testbuilders.Home]["uid-p"].holds) != 1 {
		t.Error("holds that have ended stay in memory")
	}
}

// TestUnlistedHolds: a status lists only some of the holds, and a policy whose holds change all the time takes no more and more memory.
func TestUnlistedHolds(t *testing.T) {
	var h holds
	lost := 0
	for i := range 3 * report.HoldsListed {
		r := reported(nil, hold(fmt.Sprint(i)))
		r.UnlistedHolds = 1
		h.compare(testbuilders.Home, []report.Report{r}, testbuilders.Now, func(n int) { lost += n })
		tell(&h)
	}
	if kept := len(h.policies[testbuilders.Home]["uid-p"].holds); kept != report.HoldsListed+1 || lost != 3*report.HoldsListed-kept {
		t.Errorf("%d holds are kept, %d lost", kept, lost)
	}
}

// TestLeading: a replica that leads anew tells all holds, and one that no longer leads tells none after some seconds.
func TestLeading(t *testing.T) {
	var h holds
	compare := func() {
		h.compare(testbuilders.Home, []report.Report{reported(nil, hold("a"))}, testbuilders.Now, noneLost(t))
	}
	h.lead()
	compare()
	tell(&h)
	h.follow(testbuilders.Now)
	h.lead()
	if !h.stale(testbuilders.Now) || h.stale(testbuilders.Now) {
		t.Error("what was taken before is sent")
	}
	compare()
	if got := tell(&h); !slices.Equal(got, []string{"a Found"}) {
		t.Errorf("told %q", got)
	}
	h.lead()
	compare()
	h.follow(testbuilders.Now)
	h.stale(testbuilders.Now)
	if h.stale(testbuilders.Now.Add(DrainFor-1)) || len(h.offers) != 1 {
		t.Error("it does not even try")
	}
	if !h.stale(testbuilders.Now.Add(DrainFor)) || len(h.offers) > 0 {
		t.Error("it tells of holds of which only the next leader knows")
	}
}

// TestHoldsOfOtherNamespaces: the reports of one namespace say nothing about another.
func TestHoldsOfOtherNamespaces(t *testing.T) {
	var h holds
	h.compare(testbuilders.Home, []report.Report{reported(nil, hold("a"))}, testbuilders.Now, noneLost(t))
	tell(&h)
	for _, namespace := range []string{"elsewhere", ""} {
		if h.compare(namespace, nil, testbuilders.Now, noneLost(t)) {
			t.Errorf("told %q", tell(&h))
		}
	}
}
