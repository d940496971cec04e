// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package deleter

import (
	"math"
	"time"
)

// Limit is how many deletes may be under way at once. It looks for the least that the API server needs to delete about as fast as it
// can, and so lengthens the queues that others wait in no further: while it is the limit that holds back, it tries a little more
// and a little less in turn, and moves to where more begins to gain nothing. When the API server asks to be spared it is halved, as
// by TCP (RFC 5681). It is not safe for concurrent use.
type Limit struct {
	most, center float64
	more         bool // than center is being tried, or else less
	window       window
	// tried is what came of less and of more; steps tells how many of both are new; below zero is how often neither is to be.
	tried    [2]trial
	steps    int
	hindered int // more than were deleted since
	cutAt    time.Time
	resumeAt time.Time
}

// window counts deletions while the limit holds back.
type window struct {
	begin     time.Time
	deletions int
}

// trial is how many deletions a second there were with so many under way.
type trial struct{ underway, perSecond float64 }

const (
	// swing is how much more, and how much less, is tried.
	swing = 1.2
	// gainLeast is which share of a change of the limit must be gained in deletions. Half as many again under way must bring at
	// least 2 % more.
	gainLeast = 0.05
	// stepRate and stepMost are how far the limit is moved by what was gained, and at most, both as logarithms.
	stepRate, stepMost = 0.45, 0.3
	// A window has several deletions for each that may be under way, so that those begun before hardly count.
	windowRounds    = 4
	windowDeletions = 50
	windowLeast     = 100 * time.Millisecond
	// restAtMost is for how many windows nothing else is tried at the bound, where there is no more to try.
	restAtMost = 8
	// cutEvery is how long one cut must have been in effect before the next: the requests that were under way at the first
	// are refused too, for the same reason.
	cutEvery = time.Second
)

// NewLimit returns a limit that starts at its bound.
func NewLimit(most int) *Limit {
	return &Limit{most: float64(most), center: float64(most), more: true, steps: -restAtMost}
}

// Allows tells whether one more may be started at now beside those under way.
func (l *Limit) Allows(underway int, now time.Time) bool {
	return underway < l.Current() && !now.Before(l.resumeAt)
}

// Current is the limit.
func (l *Limit) Current() int {
	if l.more {
		return int(min(math.Ceil(l.center*swing), l.most))
	}
	return int(max(math.Floor(l.center/swing), 1))
}

// ResumeAt is until when nothing may be started.
func (l *Limit) ResumeAt() time.Time { return l.resumeAt }

// Deleted takes in a deletion that ended at now, with so many under way until then, itself included.
func (l *Limit) Deleted(underway int, now time.Time) {
	l.hindered = max(l.hindered-1, 0)
	if underway < l.Current() { // It was not the limit that held back: what it was found to be is forgotten, slowly.
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

// next tries the other side, or moves when both were tried. Then the same side is tried again, so that a server that becomes
// slower or faster by itself shows in one direction as often as in the other.
func (l *Limit) next() {
	l.steps++
	switch {
	case l.steps <= 0: // rests at the bound
		return
	case l.steps < len(l.tried):
		l.more = !l.more
		return
	}
	l.steps = 0
	less, more := l.tried[0], l.tried[1]
	if less.underway == more.underway { // There is no less than one.
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

// Throttled takes in that the API server asked at now to be spared for a time.
func (l *Limit) Throttled(retryAfter time.Duration, now time.Time) {
	if resume := now.Add(retryAfter); resume.After(l.resumeAt) {
		l.resumeAt = resume
	}
	if now.Sub(l.cutAt) >= cutEvery {
		l.cutAt = now
		l.halve()
	}
}

// Hindered takes in that somebody behind the API server, who has a say in some deletions, asked to be spared. The others go on: the
// limit is halved when a round more were hindered than deleted.
func (l *Limit) Hindered() {
	if l.hindered++; l.hindered > l.Current() {
		l.halve()
	}
}

// halve also forgets what was tried before.
func (l *Limit) halve() {
	l.center = max(l.center/2, 1)
	l.more, l.steps, l.window, l.hindered = false, 0, window{}, 0
}
