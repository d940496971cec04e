// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inorder keeps what a reflector gets of a collection from going back in time. The resourceVersions of a collection can be compared
// (KEP-5504), and a watch reports changes in their order. So an event that is not newer than one before it is a replay, and a list that is
// older than what was seen says nothing about the present. Neither is passed on. If a consistent read is older too, the store itself has
// gone back, as when a backup is restored, and everything that was observed must be observed anew.
package inorder

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
)

const (
	// askEvery is how often the store is asked at most whether it has gone back, while a watch replays events.
	askEvery   = time.Second
	askTimeout = 5 * time.Second
	// ahead is how many events wait for a reflector at most. Objects may be large, so these are few.
	ahead = 16
)

// Order is how far a collection was seen. It may be used for one reflector after the other.
type Order struct {
	name     string
	clock    clock.PassiveClock
	wentBack func(error)

	lock sync.Mutex
	seen uint64 // the highest resourceVersion
	// refused is set if connections were refused since the last list: the API server may have started again, on another store.
	refused bool
	asked   time.Time
}

// New returns the Order of a collection that was not seen yet. If its store has gone back, wentBack is called, maybe several times, and no
// list is passed on any more.
func New(name string, c clock.PassiveClock, wentBack func(error)) *Order {
	return &Order{name: name, clock: c, wentBack: wentBack}
}

// ListWatch returns calls that list and watch a collection, but pass on nothing that is older than what was seen.
func (o *Order) ListWatch(list cache.ListWithContextFunc, watches cache.WatchFuncWithContext) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			l, err := list(ctx, options)
			if err == nil {
				err = o.listed(l, options.ResourceVersion == "" && options.Continue == "")
			}
			if err != nil {
				return nil, err
			}
			return l, nil
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := watches(ctx, options)
			if err != nil {
				if utilnet.IsConnectionRefused(err) {
					o.refuse()
				}
				return nil, err
			}
			initial := ptr.Deref(options.SendInitialEvents, false)
			if !initial && o.wasRefused() {
				w.Stop()
				return nil, apierrors.NewResourceExpired("the API server was away, so that " + o.name + " must be listed again")
			}
			p := &passage{Order: o, list: list, initial: initial, consistent: options.ResourceVersion == ""}
			return Filter(w, ahead, func(e watch.Event) (watch.Event, bool) { return p.pass(ctx, e) }), nil
		},
	}
}

// listed takes in a list, and returns an error if it is older than what was seen. A reflector follows an Expired with a consistent list.
func (o *Order) listed(l runtime.Object, consistent bool) error {
	m, err := meta.ListAccessor(l)
	if err != nil {
		return err
	}
	version := freshness.ParseVersion(m.GetResourceVersion())
	if seen := o.reach(version, true); version == 0 || version >= seen {
		return nil
	} else if consistent {
		return o.back(version, seen)
	}
	return apierrors.NewResourceExpired(fmt.Sprintf("the list of %s is older than what its watch has reported", o.name))
}

// reach records that a version was seen, and returns the highest that was seen before.
func (o *Order) reach(version uint64, list bool) (before uint64) {
	o.lock.Lock()
	defer o.lock.Unlock()
	before = o.seen
	if o.seen = max(o.seen, version); list && version >= before {
		o.refused = false
	}
	return before
}

// back tells that a consistent read was older than what was seen before it began.
func (o *Order) back(version, seen uint64) error {
	err := fmt.Errorf("the store of %s is at resourceVersion %d, after %d was seen: it has gone back, as when a backup is restored",
		o.name, version, seen)
	o.wentBack(err)
	return err
}

func (o *Order) refuse() {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.refused = true
}

func (o *Order) wasRefused() bool {
	o.lock.Lock()
	defer o.lock.Unlock()
	return o.refused
}

// passage is one watch.
type passage struct {
	*Order
	list cache.ListWithContextFunc
	// initial is set until all initial events have come, which are in any order. consistent says that they come from a consistent read.
	initial, consistent bool
}

// pass returns the event that replaces e; false if there is none.
func (p *passage) pass(ctx context.Context, e watch.Event) (watch.Event, bool) {
	m, err := meta.Accessor(e.Object)
	if e.Type == watch.Error || err != nil {
		return e, true
	}
	version := freshness.ParseVersion(m.GetResourceVersion())
	switch {
	case version == 0:
		return e, true
	case p.initial:
		return p.passInitial(e, m, version)
	}
	seen := p.reach(version, false)
	// A bookmark may say once more how far the watch has come. What is removed once more does no harm; some servers remove an object in the
	// version that it had.
	if version > seen || version == seen && (e.Type == watch.Bookmark || e.Type == watch.Deleted) {
		return e, true
	}
	if err := p.ask(ctx, version); err != nil {
		return errorEvent(err), true
	}
	return e, false
}

// passInitial is pass for the initial events, which a last bookmark ends.
func (p *passage) passInitial(e watch.Event, m metav1.Object, version uint64) (watch.Event, bool) {
	if e.Type != watch.Bookmark || m.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
		return e, true
	}
	p.initial = false
	if seen := p.reach(version, true); version >= seen {
		return e, true
	} else if p.consistent {
		return errorEvent(p.back(version, seen)), true
	}
	return errorEvent(apierrors.NewResourceExpired("the initial events of " + p.name + " are older than what was reported before")), true
}

// ask asks the store, after a replay, how new it is, and returns an error if it has gone back.
func (p *passage) ask(ctx context.Context, replayed uint64) error {
	seen, due := p.mayAsk(p.clock.Now())
	if !due {
		return nil
	}
	klog.FromContext(ctx).Info("Ignored what a watch has reported once more", "resource", p.name, "resourceVersion", replayed, "seen", seen)
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	l, err := p.list(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil // What cannot be read does not say that the store has gone back.
	}
	m, err := meta.ListAccessor(l)
	if err != nil {
		return nil
	}
	if version := freshness.ParseVersion(m.GetResourceVersion()); version > 0 && version < seen {
		return p.back(version, seen)
	}
	return nil
}

func (o *Order) mayAsk(now time.Time) (seen uint64, due bool) {
	o.lock.Lock()
	defer o.lock.Unlock()
	if now.Sub(o.asked) < askEvery {
		return o.seen, false
	}
	o.asked = now
	return o.seen, true
}

// errorEvent returns the event that ends a watch.
func errorEvent(err error) watch.Event {
	status := apierrors.NewInternalError(err).Status()
	if expired, ok := err.(apierrors.APIStatus); ok {
		status = expired.Status()
	}
	return watch.Event{Type: watch.Error, Object: &status}
}
