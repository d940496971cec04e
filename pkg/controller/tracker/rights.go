// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

// These methods are for the rights of ServiceAccounts. Each calls the method of the engine with the same name.

// RightsNeeded receives when there is something for RightsToAsk.
func (t *Tracker) RightsNeeded() <-chan struct{} { return t.rights }

// RightsToAsk returns the next rights to ask for, at most so many.
func (t *Tracker) RightsToAsk(most int) []deletion.Right {
	return call(t, func(e *engine.Engine) []deletion.Right { return e.RightsToAsk(most) })
}

// AskAgain has rights asked for again whose answer is old, or failed to come.
func (t *Tracker) AskAgain(now time.Time) { t.do(func(e *engine.Engine) { e.AskAgain(now) }) }

// SetRight records what is missing for a right; empty if it is there.
func (t *Tracker) SetRight(right deletion.Right, missing string, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.SetRight(right, missing, now) })
}
