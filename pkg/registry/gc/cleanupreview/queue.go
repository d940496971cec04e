// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanupreview

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

const (
	// waitMost bounds how long a review waits for others.
	waitMost = 20 * time.Second
	// waitingMost is how many reviews may wait: more would take the places of other writes in the server. mineMost is how many of them may
	// belong to one user.
	waitingMost, mineMost = 64, 8
	// retryAfter is how many seconds a client whose review is refused should wait.
	retryAfter = 5
)

// queue lets one review after the other run: reviews are not urgent, and each may use a whole processor. Users take turns: besides the one
// that runs, nobody waits for more than one review of each other user.
type queue struct {
	lock    sync.Mutex
	running bool
	// waiting are the reviews of each user, the first one first. turns are the users who have any, and the first is next.
	waiting map[string][]*place
	turns   []string
	all     int // of waiting
}

// place is the place of one review in the queue. It receives nil when the review may run, or an error if the review lost its place.
type place struct{ answer chan error }

func newQueue() *queue { return &queue{waiting: map[string][]*place{}} }

// enter waits until a review may run. The caller must call leave, unless there is an error.
func (q *queue) enter(ctx context.Context, user string) (leave func(), err error) {
	user = turnOf(user)
	p, err := q.join(user)
	if err != nil {
		return nil, err
	}
	timeout := time.NewTimer(waitMost)
	defer timeout.Stop()
	select {
	case err = <-p.answer:
	case <-ctx.Done():
		err = q.giveUp(user, p, "the request ended before the review began")
	case <-timeout.C:
		err = q.giveUp(user, p, fmt.Sprintf("the review waited %s for other reviews; try again", waitMost))
	}
	if err != nil {
		return nil, err
	}
	return q.leave, nil
}

// turnOf returns who takes a turn. The ServiceAccounts of a namespace take one together, because whoever may create one may create many.
func turnOf(user string) string {
	if namespace, _, err := serviceaccount.SplitUsername(user); err == nil {
		return serviceaccount.MakeNamespaceGroupName(namespace)
	}
	return user
}

func busy(why string) error { return apierrors.NewTooManyRequests(why, retryAfter) }

// join returns the place of another review of a user. If no review runs, it may run at once.
func (q *queue) join(user string) (*place, error) {
	q.lock.Lock()
	defer q.lock.Unlock()
	p := &place{make(chan error, 1)}
	mine := len(q.waiting[user])
	switch {
	case !q.running:
		q.running = true
		p.answer <- nil
		return p, nil
	case mine == mineMost:
		return nil, busy(fmt.Sprintf("%d reviews of yours are waiting already; wait for their answers", mineMost))
	case q.all == waitingMost && !q.makeRoom(mine):
		return nil, busy(fmt.Sprintf("%d reviews of other users are waiting; try again", waitingMost))
	}
	if mine == 0 {
		q.turns = append(q.turns, user)
	}
	q.waiting[user] = append(q.waiting[user], p)
	q.all++
	return p, nil
}

// makeRoom takes the last place of the user who has most, for a user who has so many. It reports whether there was somebody who would
// still have as many.
func (q *queue) makeRoom(mine int) bool {
	most := q.turns[0]
	for _, user := range q.turns {
		if len(q.waiting[user]) > len(q.waiting[most]) {
			most = user
		}
	}
	theirs := q.waiting[most]
	if len(theirs) <= mine+1 {
		return false
	}
	last := theirs[len(theirs)-1]
	q.remove(most, last)
	last.answer <- busy("others who have fewer reviews waiting came first; try again")
	return true
}

// giveUp returns the error of a review that does not wait any longer. If it may run by now, the next one may instead.
func (q *queue) giveUp(user string, p *place, why string) error {
	q.lock.Lock()
	defer q.lock.Unlock()
	if slices.Contains(q.waiting[user], p) {
		q.remove(user, p)
	} else if err := <-p.answer; err == nil {
		q.next()
	}
	return busy(why)
}

// remove removes a place that waits.
func (q *queue) remove(user string, p *place) {
	q.all--
	q.waiting[user] = slices.DeleteFunc(q.waiting[user], func(other *place) bool { return other == p })
	if len(q.waiting[user]) == 0 {
		delete(q.waiting, user)
		q.turns = slices.DeleteFunc(q.turns, func(other string) bool { return other == user })
	}
}

func (q *queue) leave() {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.next()
}

// next lets the first review of the next user run, and moves the user to the end of the turns.
func (q *queue) next() {
	if q.running = len(q.turns) > 0; !q.running {
		return
	}
	user := q.turns[0]
	p := q.waiting[user][0]
	q.turns = append(q.turns[1:], user)
	q.remove(user, p)
	p.answer <- nil
}
