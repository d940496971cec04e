// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// progressPeriod is how much time is at least between two barriers for readers, however many there are: as much as there is between
	// two requests for progress that a watch cache sends to an etcd.
	progressPeriod = 100 * time.Millisecond
	// progressTimeout bounds the write of a barrier, on which many readers may wait.
	progressTimeout = 2 * time.Second
)

// progress writes barriers for readers. Those who come while a barrier is written wait for the next, because theirs must be written after
// they came.
type progress struct {
	put func(context.Context) (string, error)

	lock    sync.Mutex
	next    *turn // nil if nobody waits for a barrier that is still to be written
	running bool
}

// turn is one barrier, and what came of it once done is closed.
type turn struct {
	done    chan struct{}
	version string
	err     error
}

// write returns the resourceVersion of a barrier that was written after the call.
func (p *progress) write(ctx context.Context) (string, error) {
	mine := p.join()
	select {
	case <-mine.done:
		return mine.version, mine.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (p *progress) join() *turn {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.next == nil {
		p.next = &turn{done: make(chan struct{})}
	}
	if !p.running {
		p.running = true
		go p.run()
	}
	return p.next
}

// run writes barriers until nobody waits for one.
func (p *progress) run() {
	for {
		current := p.take()
		if current == nil {
			return
		}
		period := clock.RealClock{}.NewTimer(progressPeriod)
		ctx, cancel := context.WithTimeout(context.Background(), progressTimeout)
		current.version, current.err = p.put(ctx)
		cancel()
		close(current.done)
		<-period.C()
	}
}

func (p *progress) take() *turn {
	p.lock.Lock()
	defer p.lock.Unlock()
	current := p.next
	p.next, p.running = nil, current != nil
	return current
}
