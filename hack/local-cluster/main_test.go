// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestServe: Ctrl-C is no error, and ends what runs only after it was stopped.
func TestServe(t *testing.T) {
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		interrupted bool  // while it starts
		start, stop error // that these return
		want        error
	}{
		"runs until Ctrl-C":           {},
		"cannot be stopped":           {stop: failed, want: failed},
		"cannot be started":           {start: failed, want: failed},
		"interrupted while it starts": {interrupted: true, start: failed},
		"interrupted, but started":    {interrupted: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			stopped := false
			err := serve(ctx, func(life context.Context) (func() error, error) {
				if c.interrupted {
					interrupt()
					<-life.Done()
				}
				time.AfterFunc(time.Second, interrupt)
				return func() error {
					stopped = true
					return errors.Join(life.Err(), c.stop)
				}, c.start
			})
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || stopped != (c.start == nil) {
				t.Errorf("%s: %v, stopped %v", name, err, stopped)
			}
			interrupt()
		})
	}
}
