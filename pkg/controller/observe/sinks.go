// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/observe/decode"
	"github.com/winnow-dev/winnow/pkg/controller/observe/inorder"
)

// newListWatch returns the list and watch calls that a reflector needs, in order. Each call passes its error, or nil, to report. The server
// streams initial lists if it can (KEP-3157).
func newListWatch[L runtime.Object](
	order *inorder.Order, list func(context.Context, metav1.ListOptions) (L, error), watches cache.WatchFuncWithContext,
	report func(context.Context, error),
) *cache.ListWatch {
	calls := order.ListWatch(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return list(ctx, options)
	}, watches)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			l, err := calls.ListWithContextFunc(ctx, options)
			report(ctx, err)
			return l, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := calls.WatchFuncWithContext(ctx, options)
			report(ctx, err)
			return w, err
		},
	}
}

// reportObserving returns a function that tells the tracker whether a resource can be observed. It ignores calls that end because the
// resource is no longer needed.
func (o *Observer) reportObserving(resource string) func(context.Context, error) {
	return func(ctx context.Context, err error) {
		if ctx.Err() == nil {
			o.Tracker.Observing(resource, o.explain(resource, err), o.Clock.Now())
		}
	}
}

// explain adds to an error of a missing permission how to grant it. Resources that are never deleted need only the permissions of
// artifacts/install.
func (o *Observer) explain(resource string, err error) error {
	if _, neverDeleted := o.dependencies[resource]; neverDeleted || resource == kinds.UsageMarks {
		return err
	}
	return withAdvice(err, resource, gc.GrantAdvice(resource))
}

// withAdvice adds to an error of a missing permission which one that is, and how to grant it.
func withAdvice(err error, resource, advice string) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return fmt.Errorf("%w. Missing permission: kubectl auth can-i list %s --all-namespaces, or watch. To grant it: %s", err, resource, advice)
}

// reportErrors is like reportObserving, but ignores success. The tracker learns only from the first event of the watch that the resource
// can be observed again, because until then it still has the old objects.
func (o *Observer) reportErrors(resource string) func(context.Context, error) {
	report := o.reportObserving(resource)
	return func(ctx context.Context, err error) {
		if err != nil {
			report(ctx, err)
		}
	}
}

// unreported is for policies and namespaces. The tracker need not know whether they can be observed, because it compares them with
// consistent reads.
func unreported(context.Context, error) {}

// factStream is the listStream of a resource that is reduced to facts.
type factStream struct {
	listStream[*facts.Compact]
	listed func() // called when a list has ended or failed, and when the stream has
}

// newListStream returns the stream of a resource, which hands its lists to the tracker.
func (o *Observer) newListStream(k *kinds.Kind, lister cache.ListWithContextFunc, watcher cache.WatchFuncWithContext) *factStream {
	listed, report := o.first.begin(), o.reportObserving(k.Resource)
	calls := o.order(k.Resource).ListWatch(lister, watcher)
	return &factStream{listed: listed, listStream: listStream[*facts.Compact]{
		lister: calls.ListWithContextFunc, watcher: calls.WatchFuncWithContext,
		report: func(ctx context.Context, err error) {
			if report(ctx, err); err != nil {
				listed()
			}
		},
		begin:  func() List[*facts.Compact] { return o.Tracker.BeginList(k.Resource) },
		reduce: reducing(k),
		atOnce: pageSize,
		remove: func(k *facts.Compact) { o.Tracker.Remove(k, o.Clock.Now()) },
		now:    o.Clock.Now,
	}}
}

// factSink takes in what follows a list. The objects of the list itself go through the stream.
func (o *Observer) factSink(k *kinds.Kind, stream *factStream) *sink[*facts.Compact] {
	return &sink[*facts.Compact]{
		reduce: reducing(k),
		upsert: func(k *facts.Compact) { o.Tracker.Upsert(k, o.Clock.Now()) },
		remove: stream.remove,
		replace: func(_ []*facts.Compact, rv string) { // The stream has passed on the objects.
			stream.end(rv)
			stream.listed()
		},
		heard: o.heard(k.Resource),
	}
}

// heardEvery is how often the tracker is told at most that a watch is alive.
const heardEvery = time.Second

// heard tells the tracker that the watch of a resource has sent something.
func (o *Observer) heard(resource string) func() {
	var last time.Time
	return func() {
		if now := o.Clock.Now(); now.Sub(last) >= heardEvery || now.Before(last) {
			last = now
			o.Tracker.Heard(resource, now)
		}
	}
}

func reducing(k *kinds.Kind) func(object any) (*facts.Compact, error) {
	return func(object any) (*facts.Compact, error) { return decode.Fact(k, object) }
}

func (o *Observer) cronJobSink() *sink[*lifecycle.CronJob] {
	return &sink[*lifecycle.CronJob]{
		reduce: func(object any) (*lifecycle.CronJob, error) {
			cj, ok := object.(*batchv1.CronJob)
			if !ok {
				return nil, fmt.Errorf("%T is not a CronJob", object)
			}
			return lifecycle.FromCronJob(cj), nil
		},
		upsert:  func(cj *lifecycle.CronJob) { o.Tracker.SetCronJob(cj, o.Clock.Now()) },
		remove:  func(cj *lifecycle.CronJob) { o.Tracker.RemoveCronJob(cj.UID, o.Clock.Now()) },
		replace: func(all []*lifecycle.CronJob, _ string) { o.Tracker.ReplaceCronJobs(all, o.Clock.Now()) },
		heard:   o.heard(kinds.CronJobs),
	}
}

func (o *Observer) quotaSink() *sink[*memory.Quota] {
	return &sink[*memory.Quota]{
		reduce: func(object any) (*memory.Quota, error) {
			q, ok := object.(*corev1.ResourceQuota)
			if !ok {
				return nil, fmt.Errorf("%T is not a ResourceQuota", object)
			}
			return memory.QuotaOf(q), nil
		},
		upsert:  func(q *memory.Quota) { o.Tracker.SetQuota(q, o.Clock.Now()) },
		remove:  func(q *memory.Quota) { o.Tracker.RemoveQuota(q, o.Clock.Now()) },
		replace: func(all []*memory.Quota, _ string) { o.Tracker.ReplaceQuotas(all, o.Clock.Now()) },
		heard:   func() { o.Tracker.Heard(kinds.ResourceQuotas, o.Clock.Now()) }, // Always, see reportErrors.
	}
}

func (o *Observer) clusterPolicySink() *sink[*gc.ClusterCleanupPolicy] {
	return &sink[*gc.ClusterCleanupPolicy]{
		reduce: func(object any) (*gc.ClusterCleanupPolicy, error) {
			stored, ok := object.(*v1alpha1.ClusterCleanupPolicy)
			if !ok {
				return nil, fmt.Errorf("%T is not a ClusterCleanupPolicy", object)
			}
			p := &gc.ClusterCleanupPolicy{}
			return p, v1alpha1.Convert_v1alpha1_ClusterCleanupPolicy_To_gc_ClusterCleanupPolicy(stored, p, nil)
		},
		upsert: func(p *gc.ClusterCleanupPolicy) { o.Tracker.SetClusterPolicy(p, o.Clock.Now()) },
		remove: func(p *gc.ClusterCleanupPolicy) { o.Tracker.RemoveClusterPolicy(p, o.Clock.Now()) },
		replace: func(all []*gc.ClusterCleanupPolicy, rv string) {
			o.Tracker.ReplaceClusterPolicies(all, rv, o.Clock.Now())
			o.synced[1].Store(true)
		},
		bookmark: o.Tracker.ObserveClusterPolicies,
	}
}

func (o *Observer) policySink() *sink[*gc.CleanupPolicy] {
	return &sink[*gc.CleanupPolicy]{
		reduce: func(object any) (*gc.CleanupPolicy, error) {
			stored, ok := object.(*v1alpha1.CleanupPolicy)
			if !ok {
				return nil, fmt.Errorf("%T is not a CleanupPolicy", object)
			}
			p := &gc.CleanupPolicy{}
			return p, v1alpha1.Convert_v1alpha1_CleanupPolicy_To_gc_CleanupPolicy(stored, p, nil)
		},
		upsert: func(p *gc.CleanupPolicy) { o.Tracker.SetPolicy(p, o.Clock.Now()) },
		remove: func(p *gc.CleanupPolicy) { o.Tracker.RemovePolicy(p, o.Clock.Now()) },
		replace: func(all []*gc.CleanupPolicy, rv string) {
			o.Tracker.ReplacePolicies(all, rv, o.Clock.Now())
			o.synced[0].Store(true)
		},
		bookmark: o.Tracker.ObservePolicies,
	}
}

func (o *Observer) namespaceSink() *sink[*metav1.PartialObjectMetadata] {
	return &sink[*metav1.PartialObjectMetadata]{
		reduce: func(object any) (*metav1.PartialObjectMetadata, error) {
			return nil, fmt.Errorf("%T is no metadata of a Namespace", object)
		},
		upsert: func(m *metav1.PartialObjectMetadata) { o.Tracker.SetNamespace(m, o.Clock.Now()) },
		remove: func(m *metav1.PartialObjectMetadata) { o.Tracker.RemoveNamespace(m, o.Clock.Now()) },
		replace: func(all []*metav1.PartialObjectMetadata, rv string) {
			o.Tracker.ReplaceNamespaces(all, rv, o.Clock.Now())
			o.synced[2].Store(true)
		},
		bookmark: o.Tracker.ObserveNamespaces,
	}
}
