// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package marks

import (
	"time"

	"golang.org/x/time/rate"
)

const (
	// slowest and fastest are how many writes a second there may be at least and at most, and most how many at once. A write counts as one
	// for each perWrite marks.
	slowest, fastest, most = 5, 50, 10
	perWrite               = 1000
	// share is how many times as long as an answer takes the next write waits, so that writes are under way for half of the time.
	share = 2
	// smoothing is over how many answers the time is averaged.
	smoothing = 8
	// slow is how long an answer takes with which there are as few writes as possible.
	slow = time.Second / (slowest * share)
)

// pace allows as many writes as the API server answers quickly.
type pace struct {
	limiter *rate.Limiter
	took    time.Duration // by the last answers
}

func newPace() *pace { return &pace{limiter: rate.NewLimiter(slowest, most), took: slow} }

// answered takes in how long a write took. One that failed counts as slow, however soon it did.
func (p *pace) answered(took time.Duration, err error) {
	if err != nil {
		took = max(took, slow)
	}
	p.took += (took - p.took) / smoothing
	limit := 1 / (share * max(p.took, time.Millisecond).Seconds())
	p.limiter.SetLimit(rate.Limit(min(max(limit, slowest), fastest)))
}
