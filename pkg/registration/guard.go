// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	apiregistration "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/logonce"
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
	// Leaving reports whether Winnow's namespace is being deleted.
	Leaving func(context.Context) (bool, error)
	Clock   clock.PassiveClock

	since     time.Time // since when each look found no answer; zero if the last one found one
	last      time.Time // of the last look that found out whether there is an answer
	withdrawn bool      // whether there has been no answer since the APIService was withdrawn
	errors    logonce.Errors
	answer    logonce.Errors // the last answer, if that was an error
}

const (
	guardEvery = 10 * time.Second
	// If longer passes between two looks that found something out, such as while the process was stopped, nobody knows what was in between.
	guardPause = 6 * guardEvery
)

// Run looks until ctx ends.
func (g *Guard) Run(ctx context.Context) {
	wait.NonSlidingUntilWithContext(ctx, func(ctx context.Context) {
		g.errors.Log(ctx, g.check(ctx), "Cannot guard the APIService, trying again", "name", Name)
	}, guardEvery)
	leaveAtLast(ctx, g.APIServices, g.Leaving)
}

func (g *Guard) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, guardPause/2)
	defer cancel()
	left, err := leave(ctx, g.APIServices, g.Leaving)
	if left {
		return err
	}
	return errors.Join(err, g.look(ctx))
}

// look withdraws the APIService if that is due.
func (g *Guard) look(ctx context.Context) error {
	now := g.Clock.Now()
	service, err := g.APIServices.Get(ctx, Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		g.since = time.Time{}
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading it: %w", err)
	}
	if service.DeletionTimestamp != nil {
		return fmt.Errorf("it is withdrawn, but something keeps it from being deleted: its finalizers %q", service.Finalizers)
	}
	asked := g.ask(ctx)
	var status apierrors.APIStatus
	if asked != nil && !errors.As(asked, &status) {
		return fmt.Errorf("asking kube-apiserver: %w", asked)
	}
	if now.Sub(g.last) > guardPause {
		g.since = time.Time{}
	}
	g.last = now
	if !unanswered(asked) || reached(service, asked) {
		g.answer.Log(ctx, asked, "Winnow answers kube-apiserver with an error", "name", Name)
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
	return g.withdraw(ctx, asked, after)
}

// withdraw withdraws the APIService, unless it has become available while kube-apiserver was asked.
func (g *Guard) withdraw(ctx context.Context, asked error, after time.Duration) error {
	service, err := g.APIServices.Get(ctx, Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading it once more: %w", err)
	}
	if reached(service, asked) {
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

// ask requests Winnow's API from kube-apiserver, which could be read just now, so that it is Winnow that hangs.
func (g *Guard) ask(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, guardEvery)
	defer cancel()
	err := g.Ask(asking)
	if asking.Err() != nil {
		return apierrors.NewTimeoutError("no answer in time", 0)
	}
	return err
}

// unanswered reports whether kube-apiserver says that nobody has answered it.
func unanswered(asked error) bool {
	return apierrors.IsServiceUnavailable(asked) || apierrors.IsTimeout(asked) || apierrors.IsServerTimeout(asked)
}
