// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decide is the fifth stage of the engine: what happens to an object, why, and when that changes because time passes.
package decide

import (
	"github.com/winnow-dev/winnow/pkg/controller/engine/limits"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/expiry"
)

// Decider decides for records. It has their timers.
type Decider struct {
	*limits.Limits
	Timers expiry.Heap[*memory.Record]
}

// New returns a decider without timers.
func New(l *limits.Limits) *Decider { return &Decider{Limits: l} }
