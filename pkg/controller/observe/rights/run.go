// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

const (
	// askAgainEvery is how often old answers are looked for.
	askAgainEvery = 5 * time.Second
	// askAtOnce is how many rights are asked for at a time, and askMost how many before those that have become urgent are asked first.
	askAtOnce, askMost = 4, 32
	// answerWithin bounds the requests for one right.
	answerWithin = 10 * time.Second
)

// Tracker knows which rights are needed.
type Tracker interface {
	// RightsNeeded receives when RightsToAsk returns something.
	RightsNeeded() <-chan struct{}
	RightsToAsk(most int) []deletion.Right
	// AskAgain has RightsToAsk return rights whose answers are old, or failed to come.
	AskAgain(now time.Time)
	SetRight(right deletion.Right, missing string, now time.Time)
}

// Run asks for the rights that a tracker needs, until ctx ends. All replicas do this, because each explains its decisions.
func (a *Asker) Run(ctx context.Context, t Tracker, clock clock.WithTicker) {
	again := clock.NewTicker(askAgainEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C():
			t.AskAgain(a.clock.Now())
		case <-t.RightsNeeded():
		}
		for rights := t.RightsToAsk(askMost); len(rights) > 0 && ctx.Err() == nil; rights = t.RightsToAsk(askMost) {
			a.askAll(ctx, t, rights)
		}
	}
}

// askAll asks for rights. One whose answer fails to come is asked for again later.
func (a *Asker) askAll(ctx context.Context, t Tracker, rights []deletion.Right) {
	var group errgroup.Group
	group.SetLimit(askAtOnce)
	for _, right := range rights {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, answerWithin)
			defer cancel()
			if missing, err := a.missing(ctx, right, rememberFor); err == nil {
				t.SetRight(right, missing, a.clock.Now())
			} else if ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Cannot ask what a ServiceAccount may do, trying again",
					"serviceAccount", klog.KRef(right.Namespace, right.Account), "verb", right.Verb, "resource", right.Resource)
			}
			return nil
		})
	}
	_ = group.Wait() // No function fails.
}
