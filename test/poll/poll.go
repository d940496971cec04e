// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package poll waits, for programs that measure and test on real clusters.
package poll

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Until asks at intervals until the answer is nil, but for at most so long; the last answer explains why it took too long.
func Until(ctx context.Context, most, interval time.Duration, ask func(context.Context) error) error {
	last := errors.New("was never asked")
	err := wait.PollUntilContextTimeout(ctx, interval, most, true, func(ctx context.Context) (bool, error) {
		answer := ask(ctx)
		if ctx.Err() == nil {
			last = answer
		}
		return answer == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// Pause waits for a while, or until the context ends.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
