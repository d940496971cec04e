// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

func TestMixed(t *testing.T) {
	held := []Group{{Reason: policy.ReasonSuspended, Count: 1}, {Reason: policy.ReasonHeld, Count: 2}}
	for name, c := range map[string]struct {
		report Report
		want   bool
	}{
		"nothing":                    {Report{}, false},
		"a hold":                     {Report{HeldByReason: held, Holds: []gc.PolicyHold{{ID: "a"}}}, false},
		"a hold that is not listed":  {Report{HeldByReason: held, UnlistedHolds: 1}, false},
		"suspended":                  {Report{HeldByReason: held[:1]}, false},
		"the hold has ended already": {Report{HeldByReason: held}, true},
	} {
		if got := c.report.Mixed(); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
