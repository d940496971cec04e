// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package deleter

import "time"

// Limit is how many deletes may be under way: it grows by one for each round of successes up to its bound, and is halved
// when the API server asks to be spared, as TCP does (RFC 5681). It is not safe for concurrent use.
type Limit struct {
	most     int
	current  float64
	cutAt    time.Time
	resumeAt time.Time
}

// cutEvery is how long one cut must have been in effect before the next: the requests that were under way at the first
// are refused too, for the same reason.
const cutEvery = time.Second

// NewLimit returns a limit that starts at its bound.
func NewLimit(most int) *Limit { return &Limit{most: most, current: float64(most)} }

// Allows tells whether one more may be started at now beside those under way.
func (l *Limit) Allows(underway int, now time.Time) bool {
	return underway < int(l.current) && !now.Before(l.resumeAt)
}

// Current is the limit.
func (l *Limit) Current() int { return int(l.current) }

// ResumeAt is until when nothing may be started.
func (l *Limit) ResumeAt() time.Time { return l.resumeAt }

// Succeeded takes in that the server kept up.
func (l *Limit) Succeeded() { l.current = min(l.current+1/l.current, float64(l.most)) }

// Throttled takes in that the server asked at now to be spared for a time.
func (l *Limit) Throttled(retryAfter time.Duration, now time.Time) {
	if resume := now.Add(retryAfter); resume.After(l.resumeAt) {
		l.resumeAt = resume
	}
	if now.Sub(l.cutAt) >= cutEvery {
		l.current, l.cutAt = max(l.current/2, 1), now
	}
}
