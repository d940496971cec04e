// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"slices"
	"testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

// TestHolds: each hold is told when it comes and when it ends, and also by a replica that has just begun to lead.
func TestHolds(t *testing.T) {
	type reports = []report.Report
	approved := func(r report.Report, ids string) report.Report {
		r.Stored.Annotations = map[string]string{gc.AnnotationApprovedHold: ids}
		return r
	}
	unlisted := func(r report.Report) report.Report {
		r.UnlistedHolds = 1
		return r
	}
	other := hold("b")
	other.Policy = "everywhere"
	for name, c := range map[string]struct {
		reports []reports
		want    []string
	}{
		"nothing":                 {[]reports{{reported(nil)}, {reported(nil)}}, nil},
		"found once":              {[]reports{{reported(nil)}, {reported(nil, hold("a"))}, {reported(nil, hold("a"))}}, []string{"a Found"}},
		"one more":                {[]reports{{reported(nil, hold("a"))}, {reported(nil, hold("a"), hold("b"))}}, []string{"a Found", "b Found"}},
		"ended":                   {[]reports{{reported(nil, hold("a"))}, {reported(nil)}, {reported(nil)}}, []string{"a Found", "a Ended"}},
		"approved":                {[]reports{{reported(nil, hold("a"))}, {approved(reported(nil), "x, a")}}, []string{"a Found", "a Approved"}},
		"another one is approved": {[]reports{{reported(nil, hold("a"))}, {approved(reported(nil), "x")}}, []string{"a Found", "a Ended"}},
		"a hold of another policy": {
			[]reports{{reported(nil, other)}, {approved(reported(nil), "b")}}, []string{"b Found", "b Ended"},
		},
		"taken over by a later change": {
			[]reports{{reported(nil, hold("a"))}, {reported(nil, hold("b"))}}, []string{"a Found", "b Found", "a Ended"},
		},
		"the policy is deleted": {[]reports{{reported(nil, hold("a"), hold("b"))}, {}}, []string{"a Found", "b Found", "a Ended", "b Ended"}},
		"a new leader tells it again": {
			[]reports{{reported([]gc.PolicyHold{hold("a")}, hold("a"))}}, []string{"a Found"},
		},
		"ended before a new leader led": {
			[]reports{{approved(reported([]gc.PolicyHold{hold("a"), hold("b")}), "a")}, {reported([]gc.PolicyHold{hold("a")})}},
			[]string{"a Approved", "b Ended"},
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
				for _, change := range h.compare(testbuilders.Home, r) {
					got = append(got, change.hold.ID+" "+change.phase)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("told %q, want %q", got, c.want)
			}
		})
	}
}

// TestHoldsOfOtherNamespaces: the reports of one namespace say nothing about another.
func TestHoldsOfOtherNamespaces(t *testing.T) {
	var h holds
	h.compare(testbuilders.Home, []report.Report{reported(nil, hold("a"))})
	if got := h.compare("elsewhere", nil); len(got) > 0 {
		t.Errorf("told %+v", got)
	}
	if got := h.compare("", nil); len(got) > 0 {
		t.Errorf("told %+v", got)
	}
}
