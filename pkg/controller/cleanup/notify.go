// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"sync"

	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

// tellGone passes deletions whose objects are gone, and changes of deadlines, on to everybody who tells people of them. If this replica
// stops leading before it has seen that an object is gone, or the answer to its DELETE was lost, nobody tells of that object.
func (c *Controller) tellGone(gone []deletion.Gone) {
	c.status.Gone(gone)
	c.notifier.Deleted(gone)
}

// startNotifying sends notifications until the returned function is called, and then for some seconds what is left. That is after this
// replica has led, so that the next leader need not wait, and so that the deletions that were seen last are among them.
func (c *Controller) startNotifying(ctx context.Context) (stop func()) {
	return outlasting(ctx, c.notifier.Run)
}

// outlasting runs a function until the returned function is called, even if ctx has ended before.
func outlasting(ctx context.Context, run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}
