// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/observe/inorder"
)

// always are the reflectors that run whatever policies say.
type always struct {
	// orders are by name, and outlive the reflectors, so that a list of the next ones cannot be older than what was seen.
	orders map[string]*inorder.Order
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// startAlways starts the reflectors of policies, namespaces, marks and assessments.
func (o *Observer) startAlways(ctx context.Context) {
	ctx, o.always.cancel = context.WithCancel(ctx)
	order := func(name string) *inorder.Order {
		if o.always.orders[name] == nil {
			o.always.orders[name] = o.order(name)
		}
		return o.always.orders[name]
	}
	policies, namespaces := o.Policies.CleanupPolicies(metav1.NamespaceAll), o.Metadata.Resource(namespaceResource)
	runReflector(ctx, &o.always.done, "cleanuppolicies", cache.ToListWatcherWithWatchListSemantics(
		newListWatch(order("cleanuppolicies"), policies.List, policies.Watch, unreported), o.Policies),
		&v1alpha1.CleanupPolicy{}, o.policySink())
	clusterPolicies := o.Policies.ClusterCleanupPolicies()
	runReflector(ctx, &o.always.done, "clustercleanuppolicies", cache.ToListWatcherWithWatchListSemantics(
		newListWatch(order("clustercleanuppolicies"), clusterPolicies.List, clusterPolicies.Watch, unreported), o.Policies),
		&v1alpha1.ClusterCleanupPolicy{}, o.clusterPolicySink())
	runReflector(ctx, &o.always.done, "namespaces", cache.ToListWatcherWithWatchListSemantics(
		newListWatch(order("namespaces"), namespaces.List, namespaces.Watch, unreported), o.Metadata),
		&metav1.PartialObjectMetadata{}, o.namespaceSink())
	marksOrder := order("marks")
	o.always.done.Go(func() { o.observeMarks(ctx, marksOrder) })
	assessmentsOrder := order("assessments")
	o.always.done.Go(func() { o.observeAssessments(ctx, assessmentsOrder) })
}

func (o *Observer) stopAlways() {
	o.always.cancel()
	o.always.done.Wait()
}

// order returns the Order of a collection for one reflector, and those that follow it.
func (o *Observer) order(name string) *inorder.Order { return inorder.New(name, o.Clock, o.WentBack) }

// Relist has policies, namespaces, marks and assessments listed again, because what the watches have reported does not agree with what is
// stored.
func (o *Observer) Relist() {
	select {
	case o.relist <- struct{}{}:
	default:
	}
}

// StartAnew has everything observed anew, because the store of the cluster has gone back.
func (o *Observer) StartAnew(why error) {
	select {
	case o.anew <- why.Error():
	default: // It will be observed anew already.
	}
}

// relistNow starts the reflectors of policies, namespaces, marks and assessments again.
func (o *Observer) relistNow(ctx context.Context) {
	klog.FromContext(ctx).Info("Listing policies and namespaces again, because watches do not report what is stored")
	o.stopAlways()
	o.startAlways(ctx)
}

// observeAnew ends all reflectors, has the tracker know nothing of what is stored, and starts them again.
func (o *Observer) observeAnew(ctx context.Context, why string) {
	klog.FromContext(ctx).Error(nil, "Observing everything anew, and deleting nothing until that is done", "reason", why)
	o.stopAlways()
	o.stopAll()
	if o.referrers.table != nil {
		o.Tracker.ForgetReferrers(o.Clock.Now())
		o.referrers.table = nil
	}
	for i := range o.synced {
		o.synced[i].Store(false)
	}
	clear(o.always.orders)
	o.Tracker.StartAnew(o.Clock.Now())
	select { // Several may have said so meanwhile, such as the reflectors that have ended.
	case <-o.anew:
	default:
	}
	o.startAlways(ctx)
}
