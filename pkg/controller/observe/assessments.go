// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/winnow-dev/winnow/pkg/controller/observe/inorder"
	"github.com/winnow-dev/winnow/pkg/controller/rules/assessment"
	"github.com/winnow-dev/winnow/pkg/controller/write/assessments"
)

// assessmentsRetry is how long the observer waits before it tries again to list the stored assessments for the first time.
const assessmentsRetry = 10 * time.Second

// AssessmentsTracker takes in the stored assessments. Nothing is deleted while they are not available.
type AssessmentsTracker interface {
	SetAssessment(o *assessment.Object, now time.Time)
	RemoveAssessment(name string, now time.Time)
	// AssessmentsListed ends a list: all others are gone.
	AssessmentsListed(present sets.Set[string], now time.Time)
	// AssessmentUnreadable says why a stored object cannot be read.
	AssessmentUnreadable(name, resourceVersion, why string, now time.Time)
	// AssessmentsUnavailable says why assessments cannot be listed or watched; empty if they can again.
	AssessmentsUnavailable(why string, now time.Time)
}

// observedAssessment is a stored object, and why it cannot be read; empty if it can.
type observedAssessment struct {
	*assessment.Object
	unreadable string
}

// observeAssessments lists and watches the stored assessments until ctx ends.
func (o *Observer) observeAssessments(ctx context.Context, order *inorder.Order) {
	if !o.awaitAssessments(ctx) {
		return
	}
	var reflector sync.WaitGroup
	stored := o.Stored.Resource(assessments.Resource)
	calls := newListWatch(order, stored.List, func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		w, err := stored.Watch(ctx, options)
		if err == nil && options.SendInitialEvents == nil { // Otherwise it is the list that says that they are available.
			o.Assessments.AssessmentsUnavailable("", o.Clock.Now())
		}
		return w, err
	}, o.reportAssessments)
	runReflector(ctx, &reflector, assessments.Resource.Resource,
		cache.ToListWatcherWithWatchListSemantics(calls, o.Stored), &unstructured.Unstructured{}, o.assessmentsSink())
	reflector.Wait()
}

// reportAssessments tells the tracker why a list or watch has failed.
func (o *Observer) reportAssessments(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		o.Assessments.AssessmentsUnavailable(unavailable(err), o.Clock.Now())
	}
}

// unavailable says why assessments cannot be listed or watched, and what to do if somebody must do something.
func unavailable(err error) string {
	name := assessments.Resource.GroupResource().String()
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("%v. The cluster does not serve %s: apply artifacts/storage of this version", err, name)
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("%v. Winnow may not list or watch %s: apply artifacts/install of this version", err, name)
	}
	return err.Error()
}

// awaitAssessments waits until the stored assessments can be listed; false if ctx ends before that. A reflector would wait as well, but
// would log each try.
func (o *Observer) awaitAssessments(ctx context.Context) bool {
	for last := ""; ; {
		_, err := o.Stored.Resource(assessments.Resource).List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil {
			return true
		}
		o.reportAssessments(ctx, err)
		if now := err.Error(); now != last && ctx.Err() == nil {
			last = now
			klog.FromContext(ctx).Error(err, "Deleting nothing, because what is held cannot be listed", "advice", unavailable(err))
		}
		select {
		case <-ctx.Done():
			return false
		case <-o.Clock.After(assessmentsRetry):
		}
	}
}

func (o *Observer) assessmentsSink() *sink[*observedAssessment] {
	set := func(a *observedAssessment) {
		if a.unreadable != "" {
			o.Assessments.AssessmentUnreadable(a.Name, a.ResourceVersion, a.unreadable, o.Clock.Now())
			return
		}
		o.Assessments.SetAssessment(a.Object, o.Clock.Now())
	}
	return &sink[*observedAssessment]{
		reduce: func(object any) (*observedAssessment, error) {
			stored, ok := object.(*unstructured.Unstructured)
			if !ok {
				return nil, fmt.Errorf("%T is not an object that Winnow stores", object)
			}
			decoded, err := assessments.Decode(stored)
			if err != nil {
				klog.Background().Error(err, "Deleting nothing, because it is not known what is held")
				return &observedAssessment{decoded, err.Error()}, nil
			}
			return &observedAssessment{Object: decoded}, nil
		},
		upsert: set,
		remove: func(a *observedAssessment) { o.Assessments.RemoveAssessment(a.Name, o.Clock.Now()) },
		replace: func(all []*observedAssessment, _ string) {
			present := sets.New[string]()
			for _, a := range all {
				set(a)
				present.Insert(a.Name)
			}
			o.Assessments.AssessmentsListed(present, o.Clock.Now())
			o.Assessments.AssessmentsUnavailable("", o.Clock.Now())
		},
	}
}
