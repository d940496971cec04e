// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// afterFinished deletes objects some time after they have finished.
var afterFinished = trigger{
	Trigger: gc.TriggerOf(gc.AfterFinished),
	since: func(f *lifecycle.Fact, _ *Rule, ownerFinished time.Time) time.Time {
		return notBefore(f.FinishedAt, ownerFinished)
	},
	excluded: func(f *lifecycle.Fact) Reason {
		if f.Finished || f.Failed != "" {
			return ""
		}
		return ReasonNotFinished
	},
	unclear: finishUndated,
	hold:    holdNone,
	note: func(f *lifecycle.Fact) string {
		if f.FirstSeen == nil {
			return ""
		}
		return f.FirstSeen.Why + ", so it counts from when Winnow first saw it finished"
	},
}

// finishUndated returns a cause if the object has finished and does not say when.
func finishUndated(f *lifecycle.Fact) cause {
	if f.Doubt == "" {
		return cause{}
	}
	return cause{ReasonFinishTimeUnknown, f.Doubt}
}
