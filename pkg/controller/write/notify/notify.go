// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package notify sends CloudEvents about deletions, notices of deletions, and holds to a webhook. Delivery decides nothing: who reports an
// event never waits, and what cannot be delivered is dropped and counted. Only a replica that leads deletes and writes status, so only that
// one has events to send.
package notify

import (
	"context"
	"fmt"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

const (
	// gatherFor is how long events are gathered before the first of them is sent, so that what happens together comes in few requests.
	gatherFor = time.Second
	// DrainFor is for how long a replica that ends still tries to send. The server waits longer for the controller.
	DrainFor = 5 * time.Second
)

// Config says where events are sent.
type Config struct {
	// URL of the receiver; empty if nothing is sent.
	URL string
	// CAFile has the authorities that may have signed the receiver's certificate; empty for those of the system.
	CAFile string
	// TokenFile has a bearer token; empty for none.
	TokenFile string
	// ClientCertFile and ClientKeyFile authenticate Winnow; empty for none.
	ClientCertFile, ClientKeyFile string
	// SourcePrefix begins the source of each event, so that clusters can share a receiver; usually empty.
	SourcePrefix string
	// UserAgent of the requests.
	UserAgent string
	// Instance names this replica, different from all others.
	Instance string
	Clock    clock.Clock
	// Tracker knows which notices the receiver must acknowledge.
	Tracker Tracker
}

// Notifier sends events one request after the other. All methods except Run may be called at any time, by several goroutines.
type Notifier struct {
	Config
	queue   *queue // of deletions
	notices *queue // of announcements
	holds   holds
	// demanded are the notices that the receiver must acknowledge.
	demanded *demanded
	send     func(ctx context.Context, body []byte) answer
	// filled receives when something is to be sent.
	filled chan struct{}

	// These belong to Run.
	lanes   [categories]*lane
	last    category // whose lane sent last
	reports int      // how many events this replica has made about events that it has dropped
}

// New returns a Notifier, which Run starts.
func New(c Config) *Notifier {
	n := &Notifier{Config: c, send: newSender(c).send, filled: make(chan struct{}, 1), demanded: newDemanded(c.Clock, c.Tracker)}
	for of := range categories {
		l := &lane{losses: &losses{category: of}, report: n.report, sourcePrefix: c.SourcePrefix}
		l.resume()
		n.lanes[of] = l
	}
	n.queue = newQueue(n.lanes[deletions].losses)
	n.notices = newQueue(n.lanes[announcements].losses)
	n.lanes[deletions].take, n.lanes[announcements].take, n.lanes[holdChanges].take = n.queue.take, n.notices.take, n.holds.take
	n.lanes[demandedNotices].take = n.demanded.take
	return n
}

// Lead is called before this replica leads: what the receiver knows of holds is unknown, because others have led.
func (n *Notifier) Lead() {
	n.holds.lead()
	n.demanded.leading.Store(true)
}

// Follow is called after this replica has led. Deletions are still told, and holds for some seconds.
func (n *Notifier) Follow() {
	n.holds.follow(n.Clock.Now())
	n.demanded.leading.Store(false)
}

// Deleted queues an event for each object that is gone, unless the answer to its DELETE was lost: somebody else may have deleted it.
// Deletions that are not recorded are not told either.
func (n *Notifier) Deleted(gone []deletion.Gone) {
	if n.URL == "" {
		return
	}
	for i := range gone {
		if gone[i].Deadline == nil && !gone[i].Unanswered && gone[i].Recorded() {
			n.queue.add(newDeletionNotice(&gone[i]), n.Clock.Now())
			n.fill()
		}
	}
}

// Announced queues an event for each object that was given notice of its deletion at a time. What the receiver must acknowledge is sent
// once it is stored.
func (n *Notifier) Announced(given []view.DeletionNotice, at time.Time) {
	if n.URL == "" {
		return
	}
	for i := range given {
		if !given[i].Required() {
			n.notices.add(newAnnouncement(&given[i], at, given[i].GivenAt(at).At), n.Clock.Now())
			n.fill()
		}
	}
}

// Deliver sends the notices that the receiver must acknowledge, if there are any.
func (n *Notifier) Deliver() {
	if n.URL != "" && len(n.Tracker.NamespacesToDeliver()) > 0 {
		n.fill()
	}
}

// Reported finds out which holds have come or ended since the last reports on the policies of a namespace, or for "" on the cluster
// policies.
func (n *Notifier) Reported(namespace string, reports []report.Report) {
	if n.URL == "" {
		return
	}
	now := n.Clock.Now()
	if n.holds.compare(namespace, reports, now, func(lost int) { n.lanes[holdChanges].losses.add(now, lost, 0) }) {
		n.fill()
	}
}

// fill wakes Run up.
func (n *Notifier) fill() {
	select {
	case n.filled <- struct{}{}:
	default:
	}
}

// Run sends until ctx ends, and then tries for DrainFor to send the rest.
func (n *Notifier) Run(ctx context.Context) {
	if n.URL == "" {
		return
	}
	sending, stop := n.outlasting(ctx)
	defer stop()
	for pause := time.Duration(0); sending.Err() == nil; {
		n.rest(ctx, sending, pause)
		if pause = n.flush(ctx, sending); pause == 0 && ctx.Err() != nil {
			break
		}
	}
	n.demanded.leading.Store(false) // The next leader goes on.
	for _, l := range n.lanes {
		l.giveUp(ctx, n.Clock.Now())
	}
}

// outlasting returns a context that ends DrainFor after ctx.
func (n *Notifier) outlasting(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := n.Clock.NewTimer(DrainFor)
		defer timer.Stop()
		select {
		case <-timer.C():
			cancel()
		case <-out.Done():
		}
	})
	return out, func() { stop(); cancel() }
}

// rest waits until a pause ends, or until something was queued and has been gathered; with 0 only for the latter. It returns early when ctx
// ends. After that, it waits only for the pause.
func (n *Notifier) rest(ctx, sending context.Context, pause time.Duration) {
	ended, filled := ctx.Done(), n.filled
	var paused <-chan time.Time // Nothing comes from nil.
	if ctx.Err() != nil {
		if ended, filled = nil, nil; pause == 0 {
			return
		}
	}
	if pause > 0 {
		timer := n.Clock.NewTimer(pause)
		defer timer.Stop()
		paused = timer.C()
	}
	select {
	case <-sending.Done():
	case <-ended:
	case <-paused:
	case <-filled:
		timer := n.Clock.NewTimer(gatherFor)
		defer timer.Stop()
		select {
		case <-timer.C():
		case <-ended:
		}
	}
}

// flush sends what can be sent now. It returns how long to wait until more can be sent; 0 if nothing is left.
func (n *Notifier) flush(ctx, sending context.Context) time.Duration {
	for sending.Err() == nil {
		l, pause := n.ready(ctx)
		if l == nil {
			return pause
		}
		a := n.send(sending, l.work[0].body())
		l.answered(sending, a, n.Clock.Now())
	}
	return 0
}

// ready returns the next lane that has something to send and does not pause; nil if there is none. Then it returns the shortest pause of
// those that have something to send.
func (n *Notifier) ready(ctx context.Context) (next *lane, pause time.Duration) {
	now := n.Clock.Now()
	if n.holds.stale(now) {
		n.lanes[holdChanges].discard()
	}
	if !n.demanded.leading.Load() {
		n.lanes[demandedNotices].discard()
		n.demanded.forget()
	}
	for _, of := range n.turns() {
		l := n.lanes[of]
		if l.losses.unlogged() {
			klog.FromContext(ctx).Info("Too many notifications wait, dropping new ones", "type", names[of])
		}
		if !l.fill(now) {
			continue
		}
		waits := l.waits(now, ctx.Err() != nil)
		if waits <= 0 {
			n.last = of
			return l, 0
		}
		if pause == 0 || waits < pause {
			pause = waits
		}
	}
	return nil, pause
}

// turns returns the lanes in the order in which they may send. Somebody has to approve holds, so they always come first. The others take
// turns: many notices must not keep the queue of deletions waiting until it is full.
func (n *Notifier) turns() []category {
	out := []category{holdChanges}
	for i := range categories - 1 {
		out = append(out, 1+(max(n.last, 1)+i)%(categories-1))
	}
	return out
}

// report returns an event about events that were dropped.
func (n *Notifier) report(lost Dropped) notice {
	n.reports++
	return &droppedNotice{lost, fmt.Sprintf("%s/%d", n.Instance, n.reports)}
}
