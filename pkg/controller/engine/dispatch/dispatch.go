// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dispatch is the seventh stage of the engine: which delete is next, and what became of the deletes that were sent.
package dispatch

import (
	"github.com/winnow-dev/winnow/pkg/controller/engine/gate"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

// Dispatch hands out orders.
type Dispatch struct {
	*gate.Gate
	// InFlight are the orders that Take has returned and that have not ended.
	InFlight map[*deletion.Order]*memory.Record
	// gone are the deletions that TakeGone has not returned yet.
	gone []deletion.Gone
	// exceeded are the objects that TakeExceeded has not returned yet.
	exceeded []deletion.Exceeded
}

// New returns a dispatch without orders.
func New(g *gate.Gate) *Dispatch {
	return &Dispatch{Gate: g, InFlight: map[*deletion.Order]*memory.Record{}}
}
