// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanupreview

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// waitMost bounds how long a review waits for others.
	waitMost = 20 * time.Second
	// reviewsMost is how many reviews may run or wait: more would take the places of other writes in the server. mineMost is how many of them
	// may be those of one user.
	reviewsMost, mineMost = 64, 20
)

// queue lets one review after the other run: reviews are not urgent, and each may use a whole processor.
type queue struct {
	running chan struct{}

	lock   sync.Mutex
	all    int
	byUser map[string]int
}

func newQueue() *queue { return &queue{running: make(chan struct{}, 1), byUser: map[string]int{}} }

// enter waits until a review may run. The caller must call leave, unless there is an error.
func (q *queue) enter(ctx context.Context, user string) (leave func(), err error) {
	if !q.add(user) {
		return nil, busy()
	}
	ctx, cancel := context.WithTimeout(ctx, waitMost)
	defer cancel()
	select {
	case q.running <- struct{}{}:
		return func() {
			<-q.running
			q.remove(user)
		}, nil
	case <-ctx.Done():
		q.remove(user)
		return nil, busy()
	}
}

func busy() error {
	return apierrors.NewTooManyRequests("the server is busy with other reviews; try again", 5)
}

func (q *queue) add(user string) bool {
	q.lock.Lock()
	defer q.lock.Unlock()
	if q.all == reviewsMost || q.byUser[user] == mineMost {
		return false
	}
	q.all++
	q.byUser[user]++
	return true
}

func (q *queue) remove(user string) {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.all--
	if q.byUser[user]--; q.byUser[user] == 0 {
		delete(q.byUser, user)
	}
}
