// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import "sync"

// firstLists are the lists that fill the memory after the start: those that begin before the first of them have all ended or failed.
type firstLists struct {
	changed func(underWay bool) // may be nil; see Config.FirstLists

	lock     sync.Mutex
	underWay int
	over     bool
}

// begin counts a list. The caller must call ended when the list has ended or failed, and may call it again.
func (l *firstLists) begin() (ended func()) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.over || l.changed == nil {
		return func() {}
	}
	if l.underWay++; l.underWay == 1 {
		l.changed(true)
	}
	return sync.OnceFunc(l.end)
}

func (l *firstLists) end() {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.underWay--; l.underWay == 0 {
		l.over = true
		l.changed(false)
	}
}
