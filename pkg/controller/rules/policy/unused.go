// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// afterUnused deletes objects that nothing refers to any more, some time after the last use.
var afterUnused = trigger{
	Trigger: gc.TriggerOf(gc.AfterUnused),
	since:   func(f *lifecycle.Fact, _ *Rule, _ time.Time) time.Time { return f.Usage.Since },
	excluded: func(f *lifecycle.Fact) Reason {
		if f.Usage.State != lifecycle.InUse {
			return ""
		}
		return ReasonInUse
	},
	unclear: func(f *lifecycle.Fact) cause {
		if f.Usage.Since.IsZero() {
			return cmp.Or(finishUndated(f), referrersUnknown(f))
		}
		return finishUndated(f)
	},
	hold:   referrersUnknown,
	note:   noteNothing,
	marked: true,
}

// referrersUnknown returns a cause if something that is not observed may refer to the object.
func referrersUnknown(f *lifecycle.Fact) cause {
	if f.Usage.State != lifecycle.UsageUnknown {
		return cause{}
	}
	return cause{reason: ReasonReferrersUnknown}
}
