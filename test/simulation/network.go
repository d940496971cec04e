// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/winnow-dev/winnow/test/simulation/apiserver"
)

const (
	// barrier begins the name of an object in the storage that is no policy, and is written twice a second while something is due.
	barrier = "barrier."
	// collected is after how many messages garbage is collected.
	collected = 10_000
	// jitter is how long messages take at most without a fault.
	jitter = 5 * time.Millisecond
	// slowMost is how long a fault delays an answer.
	slowMost = 20 * time.Second
	// beginsMost is how long a page of the initial events of a watch takes at most.
	beginsMost = 500 * time.Millisecond
	// noticed is after how long a client notices that its connection is gone, as by pings of HTTP/2.
	noticed = 45 * time.Second
)

// message is something that the network delivers: a request, an answer, or what a watch has to say.
type message struct {
	at      time.Time // when it arrives at the earliest
	key     string    // orders messages that were sent at the same time
	deliver func()
}

// link is how a replica reaches the API server.
type link struct {
	dead bool      // for good
	down time.Time // until then, nothing arrives
	// undiscovered is until when discovery fails.
	undiscovered time.Time
	// wrong is the share of requests with a fault, of a hundred, until a time.
	wrong      int
	wrongUntil time.Time
	// unanswered is until when half of the answers to DELETE and PATCH are lost.
	unanswered time.Time
	// lags are until when events of resources are delayed, by the resource.
	lags map[string]lag
}

type lag struct {
	until time.Time
	by    time.Duration // at most; 0 for until the end
}

// network delivers messages one at a time, in an order that a seed chooses, once every goroutine waits.
type network struct {
	store  *apiserver.Store
	random *rand.Rand
	wake   chan struct{}
	steps  int
	// digest is of all messages in their order. Two runs with the same digest were the same.
	digest uint64
	trace  io.Writer // nil for none

	lock    sync.Mutex
	sent    []*message // since the last delivery
	waiting []*message
	links   map[string]*link
	skew    time.Duration // of the API server's Date
	// unanswered is the share of answers to DELETE and PATCH that are lost whatever happens, of a hundred.
	unanswered int
	// brokenOff is the share of pages of initial events before which a watch breaks, of a hundred.
	brokenOff int
	// deleted is called with each DELETE of a replica that the API server has carried out, before the answer is sent.
	deleted func(from string, a *apiserver.Answer)
	// patched is called with each PATCH, like deleted.
	patched func(from string, a *apiserver.Answer)
	// wrote is called with each request that may have changed a policy.
	wrote func()
}

var errCut = errors.New("connection reset by peer")

func newNetwork(store *apiserver.Store, random *rand.Rand) *network {
	return &network{store: store, random: random, wake: make(chan struct{}, 1), links: map[string]*link{}}
}

func (n *network) link(replica string) *link {
	n.lock.Lock()
	defer n.lock.Unlock()
	if n.links[replica] == nil {
		n.links[replica] = &link{lags: map[string]lag{}}
	}
	return n.links[replica]
}

func (n *network) send(after time.Duration, key string, deliver func()) {
	n.lock.Lock()
	n.sent = append(n.sent, &message{time.Now().Add(after), key, deliver})
	n.lock.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// run delivers messages until a time.
func (n *network) run(until time.Time) {
	for {
		synctest.Wait()
		n.order()
		now := time.Now()
		if !now.Before(until) {
			return
		}
		m, next := n.next(now, until)
		if m != nil {
			n.note(m)
			m.deliver()
			continue
		}
		timer := time.NewTimer(next.Sub(now))
		select {
		case <-n.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (n *network) note(m *message) {
	n.steps++
	if n.steps%collected == 0 {
		freeMemory()
	}
	h := fnv.New64a()
	fmt.Fprint(h, n.digest, m.key, time.Now().UnixNano())
	n.digest = h.Sum64()
	if n.trace != nil {
		fmt.Fprintf(n.trace, "%s %d %s\n", time.Now().Format("02 15:04:05.000000"), n.steps, m.key)
	}
}

// freeMemory collects garbage, which happens at no other time, because runs would not repeat.
func freeMemory() { runtime.GC() }

// order puts what was sent into an order that does not depend on which goroutine ran first, and draws how long it takes.
func (n *network) order() {
	n.lock.Lock()
	defer n.lock.Unlock()
	select {
	case <-n.wake:
	default:
	}
	slices.SortStableFunc(n.sent, func(a, b *message) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.key, b.key)) })
	for _, m := range n.sent {
		m.at = m.at.Add(time.Duration(n.random.Int64N(int64(jitter))))
		n.waiting = append(n.waiting, m)
	}
	n.sent = n.sent[:0]
}

// next takes one of the messages that have arrived. Without one, it returns when the next one arrives.
func (n *network) next(now, until time.Time) (*message, time.Time) {
	n.lock.Lock()
	defer n.lock.Unlock()
	var ready []int
	next := until
	for i, m := range n.waiting {
		if !m.at.After(now) {
			ready = append(ready, i)
		} else if m.at.Before(next) {
			next = m.at
		}
	}
	if len(ready) == 0 {
		return nil, next
	}
	i := ready[n.random.IntN(len(ready))]
	m := n.waiting[i]
	n.waiting = slices.Delete(n.waiting, i, i+1)
	return m, next
}

// upTo draws a time.
func (n *network) upTo(most time.Duration) time.Duration {
	return time.Duration(n.random.Int64N(int64(most)))
}

// exchange is a request under way.
type exchange struct {
	*http.Request

	from, key string
	data      []byte
	link      *link
	answered  chan answered
}

type answered struct {
	response *http.Response
	err      error
}

// RoundTrip sends a request of a replica, which is the host of the URL.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	x := &exchange{Request: r, from: r.URL.Hostname(), answered: make(chan answered, 1)}
	if r.Body != nil {
		var err error
		if x.data, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	x.link = n.link(x.from)
	x.key = fmt.Sprintf("%s %s %s", x.from, r.Method, r.URL.RequestURI())
	n.send(0, "request "+x.key, func() { n.arrive(x) })
	select {
	case out := <-x.answered:
		return out.response, out.err
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
}

// fail answers with an error of the connection, later.
func (n *network) fail(x *exchange, after time.Duration) {
	n.send(after, "cut "+x.key, func() { x.answered <- answered{nil, errCut} })
}

// arrive has the API server carry out a request, or lets something go wrong.
func (n *network) arrive(x *exchange) {
	now := time.Now()
	switch {
	case x.Context().Err() != nil || x.link.dead:
		return
	case now.Before(x.link.down):
		n.fail(x, noticed)
		return
	}
	switch n.drawWrong(x, now) {
	case lostRequest:
		n.fail(x, n.upTo(slowMost))
	case tooMany:
		n.respond(x, apiserver.Failure(apierrors.NewTooManyRequests("too many requests", 1)), 0)
	case unavailable:
		n.respond(x, apiserver.Failure(apierrors.NewServiceUnavailable("unavailable")), 0)
	case timedOut:
		n.respond(x, apiserver.Failure(apierrors.NewInternalError(errors.New("etcdserver: request timed out"))), n.upTo(slowMost))
	case lostAnswer:
		n.carryOut(x)
		n.fail(x, n.upTo(slowMost))
	case slow:
		n.respond(x, n.carryOut(x), n.upTo(slowMost))
	default:
		n.respond(x, n.carryOut(x), 0)
	}
}

// What may go wrong with a request.
const (
	fine        = -1
	lostRequest = iota - 1
	lostAnswer
	tooMany
	unavailable
	timedOut
	slow
	kindsOfWrong
)

func (n *network) drawWrong(x *exchange, now time.Time) int {
	l, changes := x.link, x.Method == http.MethodDelete || x.Method == http.MethodPatch
	switch {
	case now.Before(l.undiscovered) && apiserver.IsDiscovery(x.URL.Path):
		return unavailable
	case changes && (now.Before(l.unanswered) && n.random.IntN(2) == 0 || n.random.IntN(100) < n.unanswered):
		return lostAnswer
	case now.Before(l.wrongUntil) && n.random.IntN(100) < l.wrong:
		return n.random.IntN(kindsOfWrong)
	}
	return fine
}

func (n *network) carryOut(x *exchange) *apiserver.Answer {
	a := n.store.Handle(x.Request, bytes.Clone(x.data), func(w *apiserver.Watch) { n.ready(x, w) })
	if a.Deleted != nil {
		n.deleted(x.from, a)
	}
	if a.Patched != nil {
		n.patched(x.from, a)
	}
	if x.Method != http.MethodGet && strings.Contains(x.URL.Path, "policies") && !strings.Contains(x.URL.Path, barrier) {
		n.wrote()
	}
	if w := a.Watch; w != nil {
		if seconds := w.Request().Options.TimeoutSeconds; seconds != nil {
			n.send(time.Duration(*seconds)*time.Second, "end "+x.key, func() { w.Cut(io.EOF) })
		}
	}
	return a
}

func (n *network) respond(x *exchange, a *apiserver.Answer, after time.Duration) {
	date := time.Now().Add(n.skew)
	n.send(after, fmt.Sprintf("answer %d %s", a.Code, x.key), func() {
		switch {
		case x.link.dead:
		case time.Now().Before(x.link.down):
			n.fail(x, noticed)
		default:
			x.answered <- answered{a.Response(x.Request, date), nil}
		}
	})
}

// ready sends what a watch has to say, later if events of its resource lag.
func (n *network) ready(x *exchange, w *apiserver.Watch) {
	now := time.Now()
	var after time.Duration
	if lag, ok := x.link.lags[w.Resource().String()]; ok && now.Before(lag.until) {
		after = lag.until.Sub(now)
		if lag.by > 0 {
			after = min(after, n.upTo(lag.by))
		}
	}
	if w.Begins() && n.store.PageMost > 0 {
		after += n.upTo(beginsMost) // The next page of initial events, if there are several.
	}
	n.send(after, "event "+x.key, func() { n.event(x, w) })
}

func (n *network) event(x *exchange, w *apiserver.Watch) {
	switch {
	case x.link.dead:
		w.Cut(errCut)
	case time.Now().Before(x.link.down):
		n.send(noticed, "cut "+x.key, func() { w.Cut(errCut) })
	case w.Begins() && n.brokenOff > 0 && n.random.IntN(100) < n.brokenOff:
		w.Cut(errCut)
	default:
		w.Send()
	}
}
