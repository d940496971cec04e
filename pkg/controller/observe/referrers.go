// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/references"
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

// stopReferrers stops some reflectors.
func (o *Observer) stopReferrers(which func(*kinds.Referrer) bool) {
	var stopped []*reflection
	for k, r := range o.referrers.running {
		if which(k) {
			r.cancel()
			stopped = append(stopped, r)
			delete(o.referrers.running, k)
		}
	}
	for _, r := range stopped {
		r.done.Wait()
	}
}

// startReferrer starts the reflector of one resource. A source that has another version or reader than before is listed again, since the
// reflector is another one; until then the references of before count.
func (o *Observer) startReferrer(ctx context.Context, k *kinds.Referrer) *reflection {
	r := &reflection{}
	r.ctx, r.cancel = context.WithCancel(ctx)
	reading := ReferrerReading(k)
	list, watches := o.Client.Lister(reading, metav1.NamespaceAll), o.Client.Watcher(reading)
	lw := newListWatch(selecting(list, k.FieldSelector), selecting(watches, k.FieldSelector), o.reportReferrer(k))
	runReflector(r.ctx, &r.done, k.Sources()[0], lw, nil, o.referrerSink(k))
	return r
}

// ReferrerReading returns what is read of referrers.
func ReferrerReading(k *kinds.Referrer) Reading {
	r := NewReading(k.Kind(), func(string) map[string]*lifecycle.Conditions { return nil })
	r.unread = nil
	if r.typed() {
		r.unread = unreadExcept(r.Kind)
	}
	return r
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

// reportReferrer returns a function that tells the tracker whether a referrer can be observed. A watch that succeeds goes on where the one
// before has ended.
func (o *Observer) reportReferrer(k *kinds.Referrer) func(context.Context, error) {
	return func(ctx context.Context, err error) {
		for _, source := range k.Sources() {
			if ctx.Err() == nil {
				o.Tracker.ObservingReferrers(source, err, o.Clock.Now())
			}
		}
	}
}

// referring is what an object refers to, for each of the sources of its resource.
type referring []engine.Referring

// referringOf returns what an object refers to.
func referringOf(k *kinds.Referrer, object any) (referring, error) {
	u, err := unstructuredOf(object)
	if err != nil {
		return nil, err
	}
	refs, exempt := k.References(u)
	of := references.Referrer{UID: u.GetUID(), Namespace: u.GetNamespace(), Name: u.GetName()}
	var out referring
	if source := k.Source(); source != "" {
		out = append(out, engine.Referring{Source: source, Referrer: of, Keys: references.Keys(refs)})
	}
	if source := k.Exemptions(); source != "" {
		own := engine.Referring{Source: source, Referrer: of}
		if exempt != "" {
			own.Name, own.Keys = exempt, references.Keys([]references.Reference{k.Itself(of.Namespace, of.Name)})
		}
		out = append(out, own)
	}
	return out, nil
}

// unstructuredOf returns an object as References takes it. The object must not be used otherwise.
func unstructuredOf(object any) (*unstructured.Unstructured, error) {
	switch o := object.(type) {
	case *unstructured.Unstructured:
		return o, nil
	case metav1.Object:
		o.SetManagedFields(nil) // To convert them takes long.
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		return &unstructured.Unstructured{Object: content}, err
	}
	return nil, fmt.Errorf("objects of type %T are not known", object)
}

func (o *Observer) referrerSink(k *kinds.Referrer) *sink[referring] {
	return &sink[referring]{
		reduce: func(object any) (referring, error) { return referringOf(k, object) },
		upsert: func(r referring) { o.Tracker.SetReferring(r, o.Clock.Now()) },
		remove: func(r referring) {
			for _, of := range r {
				o.Tracker.RemoveReferrer(of.Source, of.UID, o.Clock.Now())
			}
		},
		replace: func(all []referring, _ string) { o.replaceReferring(k, all) },
	}
}

// referringAtOnce is how many objects are passed to the tracker at a time.
const referringAtOnce = 500

// replaceReferring passes a whole list of referrers to the tracker.
func (o *Observer) replaceReferring(k *kinds.Referrer, all []referring) {
	for _, source := range k.Sources() {
		o.Tracker.BeginReferrers(source, o.Clock.Now())
	}
	var page []engine.Referring
	for _, r := range all {
		if page = append(page, r...); len(page) >= referringAtOnce {
			o.Tracker.SetReferring(page, o.Clock.Now())
			page = page[:0]
		}
	}
	o.Tracker.SetReferring(page, o.Clock.Now())
	for _, source := range k.Sources() {
		o.Tracker.EndReferrers(source, o.Clock.Now())
	}
}

var _ cache.TransformingStore = &sink[referring]{}

// referrersTracker takes in what may refer to ConfigMaps and Secrets.
type referrersTracker interface {
	SetReferrerSources(names []string, why string, now time.Time)
	ForgetReferrers(now time.Time)
	ObservingReferrers(source string, why error, now time.Time)
	BeginReferrers(source string, now time.Time)
	EndReferrers(source string, now time.Time)
	SetReferring(all []engine.Referring, now time.Time)
	RemoveReferrer(source string, uid types.UID, now time.Time)
}
