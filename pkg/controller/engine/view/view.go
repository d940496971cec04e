// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package view is the eighth stage of the engine: what people see of it. These are candidates with their explanations, reports on policies,
// totals and notices. It changes no decision.
package view

import "github.com/winnow-dev/winnow/pkg/controller/engine/dispatch"

// View answers questions about what the engine knows.
type View struct {
	*dispatch.Dispatch
	notices notices
}

// New returns a view of a dispatch.
func New(d *dispatch.Dispatch) *View { return &View{Dispatch: d} }
