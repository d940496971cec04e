// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	apiregistration "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"
	"k8s.io/utils/clock"
)

// Guard withdraws the APIService once kube-apiserver has got no answer from Winnow for a while, so that namespaces can be deleted again. It
// asks kube-apiserver alone, so it does not matter whether it could reach Winnow itself.
type Guard struct {
	APIServices apiregistration.APIServiceInterface
	// Ask requests Winnow's API from kube-apiserver.
	Ask func(context.Context) error
	// After is how long there was no answer.
	After time.Duration
	// Withdrawn is told why the APIService is withdrawn.
	Withdrawn func(ctx context.Context, service *apiregistrationv1.APIService, why string)
	Clock     clock.PassiveClock

	since     time.Time // since when each look found no answer; zero if the last one found one
	last      time.Time // when it was last looked
	withdrawn bool      // whether there has been no answer since the APIService was withdrawn
}

const (
	guardEvery = 10 * time.Second
	// After a longer pause between two looks, such as that of a process that was stopped, nobody knows what was in between.
	guardPause = 6 * guardEvery
)

// Run looks until ctx ends.
func (g *Guard) Run(ctx context.Context) {
	wait.NonSlidingUntilWithContext(ctx, func(ctx context.Context) {
		if err := g.look(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot tell whether Winnow answers", "name", Name)
		}
	}, guardEvery)
}

// look withdraws the APIService if that is due. Whatever is not known counts as an answer.
func (g *Guard) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, guardPause/2)
	defer cancel()
	now := g.Clock.Now()
	if now.Sub(g.last) > guardPause {
		g.since = time.Time{}
	}
	g.last = now
	service, err := g.APIServices.Get(ctx, Name, metav1.GetOptions{})
	if err != nil {
		g.since = time.Time{}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("reading it: %w", err)
	}
	if service.DeletionTimestamp != nil {
		return fmt.Errorf("it is withdrawn, but something keeps it from being deleted: its finalizers %q", service.Finalizers)
	}
	if g.answers(ctx, service) {
		g.since, g.withdrawn = time.Time{}, false
		return nil
	}
	after := g.After
	if g.withdrawn { // Something that is not Winnow has created it again, such as a GitOps tool.
		after = min(after, arriving)
	}
	if g.since.IsZero() {
		klog.FromContext(ctx).Info("Winnow does not answer kube-apiserver", "name", Name, "why", unavailable(service), "withdrawn in", after)
		g.since = now
	}
	if now.Sub(g.since) < after {
		return nil
	}
	why := fmt.Sprintf("no replica has answered kube-apiserver for %s: %s", after, unavailable(service))
	if err := withdraw(ctx, g.APIServices, service); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return nil // It has just changed: look again.
		}
		return fmt.Errorf("withdrawing it, because %s: %w", why, err)
	}
	g.since, g.withdrawn = time.Time{}, true
	klog.FromContext(ctx).Info("Withdrew the APIService, so that namespaces can be deleted; Winnow creates it again once a replica is ready",
		"name", Name, "because", why)
	g.Withdrawn(ctx, service, why)
	return nil
}

// answers reports whether Winnow answers through kube-apiserver. Only when kube-apiserver says that nobody does, nobody does.
func (g *Guard) answers(ctx context.Context, service *apiregistrationv1.APIService) bool {
	asking, cancel := context.WithTimeout(ctx, guardEvery)
	defer cancel()
	err := g.Ask(asking)
	if apierrors.IsForbidden(err) {
		klog.FromContext(ctx).Error(err, "Cannot tell whether Winnow answers: grant the guard get on /apis/gc.winnow.dev/*", "name", Name)
	}
	unanswered := apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		asking.Err() != nil // The APIService could be read just now.
	// One kube-apiserver may reach Winnow and another one not. But before Kubernetes 1.36, none of them looks at the certificate.
	untrusted := err != nil && (strings.Contains(err.Error(), "x509:") || strings.Contains(err.Error(), "tls:"))
	return !unanswered || available(service) && !untrusted
}
