// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// timeline notices when the cluster has gone back in time, as it does when its etcd is restored from a backup. Then everything that was
// seen later than that is no more, and whoever has seen it must start anew. resourceVersions of a client say nothing here: only those that
// the cluster has reported count.
type timeline struct {
	lock    sync.Mutex
	newest  uint64
	watches map[*watcher]bool
	// past is set from when the cluster was seen to have gone back until the watch cache lists it anew.
	past bool
}

// errWentBack asks the client to try again.
var errWentBack = apierrors.NewTooManyRequests("the cluster went back in time, as after a restore of a backup; try again", 1)

// now returns the newest resourceVersion that the cluster has reported.
func (t *timeline) now() uint64 {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.newest
}

// join makes a watch end when the cluster goes back in time.
func (t *timeline) join(w *watcher) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.watches == nil {
		t.watches = map[*watcher]bool{}
	}
	t.watches[w] = true
}

func (t *timeline) leave(w *watcher) {
	t.lock.Lock()
	defer t.lock.Unlock()
	delete(t.watches, w)
}

// saw takes what a watch has reported. A watch that was told to end counts no longer.
func (t *timeline) saw(w *watcher, revision uint64) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.watches[w] {
		t.newest = max(t.newest, revision)
	}
}

// hasPast reports whether the watch cache still has what is no more.
func (t *timeline) hasPast() bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.past
}

// anew takes that the watch cache lists the cluster anew, and answers nobody before it has.
func (t *timeline) anew() {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.past = false
}

// read takes the resourceVersion of a consistent read, and what now returned before that read began. If the read is older than that, the
// cluster has gone back in time: all watches end, and read returns errWentBack.
func (t *timeline) read(before, revision uint64) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	if revision >= before {
		t.newest = max(t.newest, revision)
		return nil
	}
	t.newest, t.past = revision, true
	for w := range t.watches {
		w.expire()
		delete(t.watches, w)
	}
	return errWentBack
}
