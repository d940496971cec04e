// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Timeline notices when a store has gone back in time, as it does when its etcd is restored from a backup. Then everything that was
// seen later than that is no more, and whoever has seen it must start anew. resourceVersions of a client say nothing here: only those that
// the store has reported count.
type Timeline struct {
	lock    sync.Mutex
	newest  uint64
	watches map[Watch]bool
	// past is set from when the store was seen to have gone back until the watch cache lists it anew.
	past bool
}

// Watch is a watch of a store. Expire ends it with ErrExpired.
type Watch interface{ Expire() }

// ErrWentBack asks the client to try again. ErrExpired asks it to list anew.
var (
	ErrWentBack = apierrors.NewTooManyRequests("the store went back in time, as after a restore of a backup; try again", 1)
	ErrExpired  = apierrors.NewResourceExpired(
		"The provided resourceVersion is later than the newest of the store, which may have been restored from a backup.")
)

// Now returns the newest resourceVersion that the store has reported.
func (t *Timeline) Now() uint64 {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.newest
}

// Join makes a watch end when the store goes back in time.
func (t *Timeline) Join(w Watch) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.watches == nil {
		t.watches = map[Watch]bool{}
	}
	t.watches[w] = true
}

// Leave takes that a watch has ended.
func (t *Timeline) Leave(w Watch) {
	t.lock.Lock()
	defer t.lock.Unlock()
	delete(t.watches, w)
}

// Saw takes what a watch has reported. A watch that was told to end counts no longer.
func (t *Timeline) Saw(w Watch, revision uint64) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.watches[w] {
		t.newest = max(t.newest, revision)
	}
}

// HasPast reports whether the watch cache still has what is no more.
func (t *Timeline) HasPast() bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.past
}

// Anew takes that the watch cache lists the store anew, and answers nobody before it has.
func (t *Timeline) Anew() {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.past = false
}

// Read takes the resourceVersion of a consistent read, and what Now returned before that read began. If the read is older than that, the
// store has gone back in time: all watches end, and Read returns ErrWentBack.
func (t *Timeline) Read(before, revision uint64) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	if revision >= before {
		t.newest = max(t.newest, revision)
		return nil
	}
	t.newest, t.past = revision, true
	for w := range t.watches {
		w.Expire()
		delete(t.watches, w)
	}
	return ErrWentBack
}
