// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/observe/decode"
	"github.com/winnow-dev/winnow/pkg/controller/observe/inorder"
)

// referrers are the reflectors of what may refer to ConfigMaps and Secrets. They run while any policy has a rule with after: Unused.
type referrers struct {
	table   *kinds.Table // whose referrers are observed; nil if none are
	running map[*kinds.Referrer]*reflection
}

// undiscoveredEvery is how often the tracker is told that not all referrers are known.
const undiscoveredEvery = 10 * time.Second

// coverReferrers starts and stops reflectors, so that all referrers are observed if they are needed.
func (o *Observer) coverReferrers(ctx context.Context, table *kinds.Table, needed bool) {
	switch r := &o.referrers; {
	case !needed && r.table == nil, needed && r.table != nil && table.SameReferrers(r.table) && table.Undiscovered == "":
		return
	case !needed:
		o.stopReferrers(func(*kinds.Referrer) bool { return true })
		o.Tracker.ForgetReferrers(o.Clock.Now())
		r.table = nil
		return
	}
	present := map[*kinds.Referrer]bool{}
	var sources []string
	for _, k := range table.Referrers {
		present[k] = true
		sources = append(sources, k.Sources()...)
	}
	o.stopReferrers(func(k *kinds.Referrer) bool { return !present[k] })
	o.Tracker.SetReferrerSources(sources, table.Undiscovered, o.Clock.Now())
	o.referrers.table = table
	for _, k := range table.Referrers {
		if o.referrers.running[k] == nil {
			o.referrers.running[k] = o.startReferrer(ctx, k)
		}
	}
}

// stopReferrers stops some reflectors. They tell the tracker nothing any more.
func (o *Observer) stopReferrers(which func(*kinds.Referrer) bool) {
	var stopped []*reflection
	for k, r := range o.referrers.running {
		if which(k) {
			r.reporting.Lock()
			r.cancel()
			r.reporting.Unlock()
			stopped = append(stopped, r)
			delete(o.referrers.running, k)
		}
	}
	for _, r := range stopped {
		r.done.Wait()
	}
}

// startReferrer starts the reflector of one resource. If there was another one for the same sources, of another version or reader, its
// references count until the resource is listed, but it is not known that there are no others.
func (o *Observer) startReferrer(ctx context.Context, k *kinds.Referrer) *reflection {
	r := &reflection{}
	r.ctx, r.cancel = context.WithCancel(ctx)
	for _, source := range k.Sources() {
		o.Tracker.BeginReferrers(source, o.Clock.Now())
		o.Tracker.ObservingReferrers(source, nil, o.Clock.Now()) // Errors of the reflector before say nothing about this one.
	}
	reading := decode.ReferrerReading(k)
	list, watches := o.Client.Lister(reading, metav1.NamespaceAll), o.Client.Watcher(reading)
	calls := o.order(k.Sources()[0]).ListWatch(selecting(list, k.FieldSelector), selecting(watches, k.FieldSelector))
	reader := o.newReferrerReader(k)
	stream, sink := newReferrerStream(reader, calls, o.reportReferrer(r, k)), reader.sink()
	sink.replace = func(_ []runtime.Object, rv string) { stream.end(rv) } // The stream has passed on the objects.
	r.done.Go(func() {
		var reflector sync.WaitGroup
		runReflector(r.ctx, &reflector, k.Sources()[0], stream.listWatch(), nil, sink)
		reflector.Wait()
		stream.stop()
	})
	return r
}

// newReferrerStream returns the stream of a resource, which hands its lists to the reader one object at a time: each may have many names.
func newReferrerStream(r *referrerReader, calls *cache.ListWatch, report func(context.Context, error)) *listStream[runtime.Object] {
	lw := newReferrersListWatch(calls.ListWithContextFunc, calls.WatchFuncWithContext, report)
	return &listStream[runtime.Object]{
		lister: lw.ListWithContextFunc, watcher: lw.WatchFuncWithContext, pages: r.Client.pages,
		report: func(ctx context.Context, err error) {
			if err != nil {
				report(ctx, err)
			}
		},
		begin:  r.beginList,
		reduce: itself,
		atOnce: 1,
		remove: r.remove,
		now:    r.Clock.Now,
	}
}

// newReferrersListWatch returns the list and watch calls of a reflector of referrers. It reports each error, also one that ends a watch,
// for example an object that cannot be decoded: references that are not known may have come since. Then only a complete list, or a watch
// that goes on where the one before has ended, brings everything. Parts of a list do not.
func newReferrersListWatch(
	list cache.ListWithContextFunc, watches cache.WatchFuncWithContext, report func(context.Context, error),
) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			l, err := list(ctx, options)
			if err != nil {
				report(ctx, err)
			}
			return l, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := watches(ctx, options)
			if err != nil {
				report(ctx, err)
				return nil, err
			}
			if !ptr.Deref(options.SendInitialEvents, false) {
				report(ctx, nil)
			}
			return reportingErrors(w, func(err error) { report(ctx, err) }), nil
		},
	}
}

// reportingErrors returns a watch that passes each error to report before its reader gets it.
func reportingErrors(w watch.Interface, report func(error)) watch.Interface {
	return inorder.Filter(w, 0, func(e watch.Event) (watch.Event, bool) {
		if e.Type == watch.Error {
			report(apierrors.FromObject(e.Object))
		}
		return e, true
	})
}

// selecting adds a field selector to a call.
func selecting[L any](
	call func(context.Context, metav1.ListOptions) (L, error), selector string,
) func(context.Context, metav1.ListOptions) (L, error) {
	return func(ctx context.Context, options metav1.ListOptions) (L, error) {
		options.FieldSelector = selector
		return call(ctx, options)
	}
}

// reportReferrer returns a function that tells the tracker whether a referrer can be observed.
func (o *Observer) reportReferrer(r *reflection, k *kinds.Referrer) func(context.Context, error) {
	return func(ctx context.Context, err error) {
		err = explainReferrer(k, err)
		r.reporting.Lock()
		defer r.reporting.Unlock()
		for _, source := range k.Sources() {
			if ctx.Err() == nil && r.ctx.Err() == nil {
				o.Tracker.ObservingReferrers(source, err, o.Clock.Now())
			}
		}
	}
}

// explainReferrer adds to an error of a missing permission how to grant it.
func explainReferrer(k *kinds.Referrer, err error) error {
	return withAdvice(err, k.Resource(), gc.ReferrersAdvice())
}

// referrersTracker takes in what may refer to ConfigMaps and Secrets.
type referrersTracker interface {
	SetReferrerSources(names []string, why string, now time.Time)
	ForgetReferrers(now time.Time)
	ObservingReferrers(source string, why error, now time.Time)
	BeginReferrers(source string, now time.Time)
	EndReferrers(source string, now time.Time)
	SetReferring(all []knowledge.Referring, now time.Time)
	IsOverfull(namespace string) bool
	RemoveReferrer(source string, uid types.UID, now time.Time)
	NeedsReread() <-chan struct{}
	BeginReread() (number uint32, namespaces []string)
	Reread(all []knowledge.Referring, now time.Time)
	EndReread(number uint32, now time.Time)
}
