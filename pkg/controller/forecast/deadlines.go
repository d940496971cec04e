// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

func isDeadline(r policy.Reason) bool {
	return r == policy.ReasonActiveDeadline || r == policy.ReasonActiveDeadlineWithdrawn
}

// deadlines describes running objects whose deadline the change sets or removes, by this policy or another one.
func (a *account) deadlines(all []*view.Due) []string {
	withdrawn := only(all, func(due *view.Due) bool { return due.Reason == policy.ReasonActiveDeadlineWithdrawn })
	var lines []string
	for _, preview := range []bool{false, true} {
		set := only(all, func(due *view.Due) bool { return due.Preview == preview && due.Reason == policy.ReasonActiveDeadline })
		ends := only(set, func(due *view.Due) bool { return due.Ends })
		if len(set) == 0 {
			continue
		}
		will, in := a.will(), ""
		if preview {
			will, in = "would", fmt.Sprintf(" with mode: %s", gc.ModeEnforce)
		}
		line := fmt.Sprintf("%s %s get an activeDeadline%s", a.count(set), will, in)
		if len(ends) > 0 {
			line += fmt.Sprintf("; %d of these %s end at once, having run for longer", len(ends), will)
		}
		lines = append(lines, line+most(set))
	}
	if len(withdrawn) > 0 {
		lines = append(lines, fmt.Sprintf("%s %s lose the activeDeadline that Winnow has set%s", a.count(withdrawn), a.will(), most(withdrawn)))
	}
	return lines
}
