// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package deleter

import (
	"math"
	"time"
)

// Limit is how many DELETE requests may be in flight. It searches for the smallest number with which the API server deletes about as fast
// as it can, so that requests of others do not wait longer than necessary. While there are more due objects than the limit allows to
// delete, it measures the rate with a little more and a little less concurrency in turn, and moves to where more gains almost nothing. When
// the API server is overloaded, the limit is halved, as TCP does (RFC 5681). Limit is not safe for concurrent use.
type Limit struct {
	most, center float64
	more         bool // whether more than center is being tried, or less
	window       window
	// tried has the last measurement with less and with more. steps counts the new ones of these; a negative number counts the windows
	// until the next one.
	tried    [2]trial
	steps    int
	hindered int // requests that were hindered, minus those that succeeded since
	cutAt    time.Time
	resumeAt time.Time
}

// window counts deletions while the limit is reached.
type window struct {
	begin     time.Time
	deletions int
}

// trial is a measurement: the number of deletions in a second with so many in flight.
type trial struct{ underway, perSecond float64 }

const (
	// swing is the factor by which more, and less, is tried.
	swing = 1.2
	// gainLeast is which share of a change of the limit must be gained in deletions, as logarithms: 50 % more in flight must bring at least
	// 2 % more deletions.
	gainLeast = 0.05
	// stepRate is how far the limit moves in relation to the gain, and stepMost how far at most, both as logarithms.
	stepRate, stepMost = 0.45, 0.3
	// A window has several deletions for each that may be in flight, so that those which began before it hardly count.
	windowRounds    = 4
	windowDeletions = 50
	windowLeast     = 100 * time.Millisecond
	// restAtMost is for how many windows a limit at its upper bound stays there before less is tried again.
	restAtMost = 8
	// cutEvery is how long the limit must have been halved before it is halved again: the API server also throttles requests that were in
	// flight the first time.
	cutEvery = time.Second
)

// NewLimit returns a limit that starts at its upper bound.
func NewLimit(most int) *Limit {
	return &Limit{most: float64(most), center: float64(most), more: true, steps: -restAtMost}
}

// Allows reports whether another request may start at now while underway requests are in flight.
func (l *Limit) Allows(underway int, now time.Time) bool {
	return underway < l.Current() && !now.Before(l.resumeAt)
}

// Current returns how many requests may be in flight.
func (l *Limit) Current() int {
	if l.more {
		return int(min(math.Ceil(l.center*swing), l.most))
	}
	return int(max(math.Floor(l.center/swing), 1))
}

// ResumeAt returns until when no request may start.
func (l *Limit) ResumeAt() time.Time { return l.resumeAt }

// Deleted records a deletion that ended at now. Until then, the number of requests in flight was underway, including this one.
func (l *Limit) Deleted(underway int, now time.Time) {
	l.hindered = max(l.hindered-1, 0)
	if underway < l.Current() { // Too few objects are due to reach the limit, so it slowly returns to its upper bound.
		l.window = window{}
		l.move(1 / l.center / l.center)
		return
	}
	if l.window.begin.IsZero() {
		l.window.begin = now
		return
	}
	l.window.deletions++
	took := now.Sub(l.window.begin)
	if took < windowLeast || l.window.deletions < max(windowDeletions, windowRounds*l.Current()) {
		return
	}
	l.tried[l.side()] = trial{underway: float64(l.Current()), perSecond: float64(l.window.deletions) / took.Seconds()}
	l.window = window{begin: now}
	l.next()
}

func (l *Limit) side() int {
	if l.more {
		return 1
	}
	return 0
}

// next tries the other side, or moves the limit if both sides were tried. After a move, the last side comes first, so that a server that
// becomes slower or faster by itself biases the measurement in both directions equally.
func (l *Limit) next() {
	l.steps++
	switch {
	case l.steps <= 0: // stays at the upper bound
		return
	case l.steps < len(l.tried):
		l.more = !l.more
		return
	}
	l.steps = 0
	less, more := l.tried[0], l.tried[1]
	if less.underway == more.underway { // Less than one cannot be tried.
		return
	}
	gained := math.Log(more.perSecond/less.perSecond) / math.Log(more.underway/less.underway)
	l.move(min(max(stepRate*(gained-gainLeast), -stepMost), stepMost))
	if l.center == l.most {
		l.more, l.steps = true, -restAtMost
	}
}

// move multiplies the limit by e to the power of by.
func (l *Limit) move(by float64) { l.center = min(max(l.center*math.Exp(by), 1), l.most) }

// Overloaded records that at now the API server asked to wait.
func (l *Limit) Overloaded(retryAfter time.Duration, now time.Time) {
	if resume := now.Add(retryAfter); resume.After(l.resumeAt) {
		l.resumeAt = resume
	}
	if now.Sub(l.cutAt) >= cutEvery {
		l.cutAt = now
		l.halve()
	}
}

// Hindered records that a webhook asked to wait. It may concern only some objects, so the limit is halved only after a whole round of
// requests more was hindered than succeeded.
func (l *Limit) Hindered() {
	if l.hindered++; l.hindered > l.Current() {
		l.halve()
	}
}

// halve halves the limit, and forgets the measurements.
func (l *Limit) halve() {
	l.center = max(l.center/2, 1)
	l.more, l.steps, l.window, l.hindered = false, 0, window{}, 0
}
