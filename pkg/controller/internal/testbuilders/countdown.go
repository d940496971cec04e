// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package testbuilders

import "context"

// Countdown is a context that ends after Left calls of Err.
type Countdown struct {
	context.Context
	Left int
}

// Err implements context.Context.
func (c *Countdown) Err() error {
	if c.Left--; c.Left < 0 {
		return context.Canceled
	}
	return nil
}
