// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"sync"
	"time"
)

const (
	// slice is for how long somebody may have the lock before others have their turn.
	slice = 5 * time.Millisecond
	// lookEvery is how much work is done between two looks at the clock, to which one object adds as much as policies are asked about it.
	lookEvery = 64
)

// mutex is the lock of the tracker. Long work asks it when it is the turn of others.
type mutex struct {
	sync.Mutex
	// clock tells for how long it was locked; nil where nobody else waits.
	clock     func() time.Time
	lookEvery int
	since     time.Time // when it was locked
	held      func()    // what a test does at the end of each turn
	worked    int       // since somebody last looked at the clock
}

// Lock begins a turn.
func (m *mutex) Lock() {
	m.Mutex.Lock()
	if m.worked = 0; m.clock != nil {
		m.since = m.clock()
	}
}

// Unlock ends a turn.
func (m *mutex) Unlock() {
	if m.held != nil {
		m.held()
	}
	m.Mutex.Unlock()
}

// spent reports, after some more work, whether it is the turn of others.
func (m *mutex) spent(work int) bool {
	if m.worked += work; m.clock == nil || m.worked < m.lookEvery {
		return false
	}
	m.worked = 0
	return m.clock().Sub(m.since) >= slice
}
