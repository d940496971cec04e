// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"maps"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/metrics"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
)

// Reasons of the conditions of a lifecycle, besides gc.ReasonLifecycleUnreadable.
const (
	reasonAccepted     = "Accepted"
	reasonNotSupported = "NotSupported"
)

const (
	reportEvery = 5 * time.Second
	countEvery  = 5 * time.Minute
	countAgain  = 30 * time.Second // if Winnow may not list the resource, so that its status shows soon that it may
	countMost   = 10 * time.Second // for the objects of one resource
)

// usage is what the last count of the objects of a resource has found.
type usage struct {
	next        time.Time
	objects     int64
	unusedSince *metav1.Time // nil while there are objects
	err         error
}

// Report writes the status of the lifecycles and counts the objects of their resources until ctx ends. Only the leader calls it.
func (f *Follower) Report(ctx context.Context) {
	defer metrics.ResourceObjects.Reset()
	defer metrics.ResourceUnused.Reset()
	r := &reporter{Follower: f, used: map[string]*usage{}, accepted: map[freshness.Revision]metav1.Condition{}}
	for ctx.Err() == nil {
		r.report(ctx)
		select {
		case <-ctx.Done():
		case <-f.Clock.After(reportEvery):
		}
	}
}

// reporter is what one leader has found out.
type reporter struct {
	*Follower
	used     map[string]*usage                       // by resource
	accepted map[freshness.Revision]metav1.Condition // of each lifecycle that was compiled
}

func (f *reporter) report(ctx context.Context) {
	found := f.last.Load()
	if found == nil {
		return
	}
	stored := map[string]*v1alpha1.ResourceLifecycle{}
	revisions := sets.New[freshness.Revision]()
	for _, l := range f.observed() {
		stored[l.Name] = l
		revisions.Insert(revision(l))
	}
	maps.DeleteFunc(f.accepted, func(r freshness.Revision, _ metav1.Condition) bool { return !revisions.Has(r) })
	table, served := f.Tracker.Kinds(), sets.New[string]()
	for _, s := range found.served {
		if k, err := table.For(s.Resource()); err == nil && k.Finishes && !kinds.Builtin().Finishes(s.Resource()) {
			served.Insert(s.Resource())
			f.count(ctx, s, stored[s.Resource()])
		}
	}
	for resource := range f.used {
		if !served.Has(resource) {
			delete(f.used, resource)
			forget(resource)
		}
	}
	for _, l := range stored {
		if gc.Unreadable(l) == "" { // Otherwise what is served says so.
			f.write(ctx, l, found)
		}
	}
}

// write writes the status of a lifecycle if it has changed.
func (f *reporter) write(ctx context.Context, l *v1alpha1.ResourceLifecycle, found *answer) {
	next := l.DeepCopy()
	next.Status = f.statusOf(l, found, metav1.NewTime(f.Clock.Now()))
	if apiequality.Semantic.DeepEqual(next.Status, l.Status) {
		return
	}
	_, err := f.Lifecycles.UpdateStatus(ctx, next, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Cannot write the status of a ResourceLifecycle", "name", l.Name)
	}
}

// count counts the objects of a resource if it is time to. It asks for one object, and the API server says how many more there are.
func (f *reporter) count(ctx context.Context, s kinds.Served, l *v1alpha1.ResourceLifecycle) {
	resource, now := s.Resource(), f.Clock.Now()
	u := f.used[resource]
	switch {
	case u == nil:
		u = &usage{}
		if l != nil {
			u.unusedSince = l.Status.UnusedSince
		}
		f.used[resource] = u
	case now.Before(u.next):
		return
	}
	u.next = now.Add(countEvery)
	ctx, cancel := context.WithTimeout(ctx, countMost)
	defer cancel()
	list, err := f.Metadata.Resource(s.GroupVersion().WithResource(s.Plural)).List(ctx, metav1.ListOptions{Limit: 1})
	if u.err = err; err != nil {
		if apierrors.IsForbidden(err) {
			u.next = now.Add(countAgain)
		}
		forget(resource)
		return
	}
	u.objects = int64(len(list.Items)) + ptr.Deref(list.RemainingItemCount, 0)
	metrics.ResourceObjects.WithLabelValues(resource).Set(float64(u.objects))
	if u.objects > 0 {
		u.unusedSince = nil
		metrics.ResourceUnused.DeleteLabelValues(resource)
		return
	}
	if u.unusedSince == nil {
		u.unusedSince = ptr.To(metav1.NewTime(now.Truncate(time.Second)))
	}
	metrics.ResourceUnused.WithLabelValues(resource).Set(float64(u.unusedSince.Unix()))
}

// forget removes a resource from the metrics.
func forget(resource string) {
	metrics.ResourceObjects.DeleteLabelValues(resource)
	metrics.ResourceUnused.DeleteLabelValues(resource)
}

// statusOf returns the status of a lifecycle.
func (f *reporter) statusOf(l *v1alpha1.ResourceLifecycle, found *answer, now metav1.Time) v1alpha1.ResourceLifecycleStatus {
	out, u := *l.Status.DeepCopy(), f.used[l.Name]
	compiled, ok := f.accepted[revision(l)]
	if !ok {
		compiled = f.acceptedOf(l)
		f.accepted[revision(l)] = compiled
	}
	for _, c := range []metav1.Condition{compiled, established(l, found, u)} {
		c.ObservedGeneration, c.LastTransitionTime = l.Generation, now
		meta.SetStatusCondition(&out.Conditions, c)
	}
	switch {
	case u == nil:
		out.Objects, out.UnusedSince = nil, nil
	case u.err == nil:
		out.Objects, out.UnusedSince = ptr.To(u.objects), u.unusedSince
	case apierrors.IsForbidden(u.err):
		out.Objects, out.UnusedSince = nil, nil
	}
	return out
}

func (f *Follower) acceptedOf(l *v1alpha1.ResourceLifecycle) metav1.Condition {
	c := metav1.Condition{
		Type: gc.ConditionAccepted, Status: metav1.ConditionTrue, Reason: reasonAccepted, Message: "All expressions compile.",
	}
	own, err := f.convert(l)
	if err == nil {
		_, err = kinds.CompileLifecycle(own, schema.GroupKind{Group: schema.ParseGroupResource(l.Name).Group})
	}
	if err != nil {
		c.Status, c.Reason = metav1.ConditionFalse, gc.ReasonLifecycleUnreadable
		c.Message = fmt.Sprintf("%s, because this version of Winnow cannot compile the lifecycle: %v", consequence(l), err)
	}
	return c
}

// consequence says what follows if a lifecycle cannot be compiled.
func consequence(l *v1alpha1.ResourceLifecycle) string {
	const held, refers = "No object of the resource is deleted", "ach object may refer to every ConfigMap and Secret of its namespace"
	switch {
	case len(l.Spec.References) == 0:
		return held
	case l.Spec.Finished == nil:
		return "E" + refers
	}
	return held + ", and e" + refers
}

func established(l *v1alpha1.ResourceLifecycle, found *answer, u *usage) metav1.Condition {
	resource, served := l.Name, found.about(l.Name)
	c := metav1.Condition{Type: gc.ConditionEstablished, Status: metav1.ConditionFalse}
	ineffective, wholly := served.Ineffective(resource, l.Spec.Finished != nil, len(l.Spec.References) > 0)
	switch {
	case wholly:
		c.Reason, c.Message = reasonNotSupported, "T"+ineffective[1:]+"."
	case served.Missing:
		c.Reason = gc.ReasonNotServed
		c.Message = fmt.Sprintf("The cluster does not serve %s. The lifecycle applies as soon as it does.", resource)
		if served.Similar != "" {
			c.Message += fmt.Sprintf(" Did you mean %q?", served.Similar)
		}
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, gc.ReasonServed, "The cluster serves the resource."
		if ineffective != "" {
			c.Message += " But " + ineffective + "."
		}
		if u != nil && apierrors.IsForbidden(u.err) {
			c.Message += " Winnow may not list it; to let Winnow clean it up: " + gc.GrantAdvice(resource)
		}
	}
	return c
}
