// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// afterCreated deletes objects some time after their creation. Objects that can finish must have finished too, see decideCandidate.
var afterCreated = trigger{
	Trigger: gc.TriggerOf(gc.AfterCreated),
	since: func(f *lifecycle.Fact, _ *Rule, ownerFinished time.Time) time.Time {
		return notBefore(f.Created, ownerFinished)
	},
	excluded: excludeNone,
	unclear: func(f *lifecycle.Fact) cause {
		if !f.Created.IsZero() {
			return cause{}
		}
		return cause{ReasonFinishTimeUnknown, "it has no creation time"}
	},
	hold: holdNone,
	note: noteNothing,
}
