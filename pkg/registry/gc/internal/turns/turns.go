// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package turns bounds how many costly requests run at once, and lets users take turns.
package turns

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
)

const (
	// waitMost bounds how long a request waits for others.
	waitMost = 20 * time.Second
	// waitingMost is how many requests may wait: more would take the places of others in the server. mineMost is how many of them may
	// belong to one user.
	waitingMost, mineMost = 64, 8
	// retryAfter is how many seconds a client whose request is refused should wait.
	retryAfter = 5
)

// Queue lets a few requests run at once. Users take turns: besides those that run, nobody waits for more than one request of each other
// user.
type Queue struct {
	noun    string // what a request is, for its error
	most    int
	lock    sync.Mutex
	running int
	// waiting are the requests of each user, the first one first. turns are the users who have any, and the first is next.
	waiting map[string][]*place
	turns   []string
	all     int // of waiting
}

// place is the place of one request in the queue. It receives nil when the request may run, or an error if the request lost its place.
type place struct{ answer chan error }

// New returns a queue that lets up to most requests run at once. noun says what one is, such as "review".
func New(noun string, most int) *Queue {
	return &Queue{noun: noun, most: most, waiting: map[string][]*place{}}
}

// Enter waits until a request of a user may run. The caller must call leave, unless there is an error, which is TooManyRequests.
func (q *Queue) Enter(ctx context.Context, user string) (leave func(), err error) {
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
		err = q.giveUp(user, p, fmt.Sprintf("the request ended before the %s began", q.noun))
	case <-timeout.C:
		err = q.giveUp(user, p, fmt.Sprintf("the %s waited %s for others; try again", q.noun, waitMost))
	}
	if err != nil {
		return nil, err
	}
	return q.leave, nil
}

// EnterCaller is Enter for the user of a request.
func (q *Queue) EnterCaller(ctx context.Context) (who user.Info, leave func(), err error) {
	who, ok := genericapirequest.UserFrom(ctx)
	if !ok {
		return nil, nil, apierrors.NewInternalError(errors.New("the request has no user"))
	}
	leave, err = q.Enter(ctx, who.GetName())
	return who, leave, err
}

// turnOf returns who takes a turn. The ServiceAccounts of a namespace take one together, because whoever may create one may create many.
func turnOf(user string) string {
	if namespace, _, err := serviceaccount.SplitUsername(user); err == nil {
		return serviceaccount.MakeNamespaceGroupName(namespace)
	}
	return user
}

func busy(why string) error { return apierrors.NewTooManyRequests(why, retryAfter) }

// join returns the place of another request of a user. If few requests run, it may run at once.
func (q *Queue) join(user string) (*place, error) {
	q.lock.Lock()
	defer q.lock.Unlock()
	p := &place{make(chan error, 1)}
	mine := len(q.waiting[user])
	switch {
	case q.running < q.most:
		q.running++
		p.answer <- nil
		return p, nil
	case mine == mineMost:
		return nil, busy(fmt.Sprintf("%d %ss of yours are waiting already; wait for their answers", mineMost, q.noun))
	case q.all == waitingMost && !q.makeRoom(mine):
		return nil, busy(fmt.Sprintf("%d %ss of other users are waiting; try again", waitingMost, q.noun))
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
func (q *Queue) makeRoom(mine int) bool {
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
	last.answer <- busy(fmt.Sprintf("others who have fewer %ss waiting came first; try again", q.noun))
	return true
}

// giveUp returns the error of a request that does not wait any longer. If it may run by now, the next one may instead.
func (q *Queue) giveUp(user string, p *place, why string) error {
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
func (q *Queue) remove(user string, p *place) {
	q.all--
	q.waiting[user] = slices.DeleteFunc(q.waiting[user], func(other *place) bool { return other == p })
	if len(q.waiting[user]) == 0 {
		delete(q.waiting, user)
		q.turns = slices.DeleteFunc(q.turns, func(other string) bool { return other == user })
	}
}

func (q *Queue) leave() {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.next()
}

// next ends a request, lets the first one of the next user run, and moves the user to the end of the turns.
func (q *Queue) next() {
	if len(q.turns) == 0 {
		q.running--
		return
	}
	user := q.turns[0]
	p := q.waiting[user][0]
	q.turns = append(q.turns[1:], user)
	q.remove(user, p)
	p.answer <- nil
}
