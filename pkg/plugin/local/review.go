// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/apis/gc/validation"
	"github.com/winnow-dev/winnow/pkg/controller/forecast"
)

// Review returns what a draft would delete, as a CleanupReview that the server answers, and what would be warnings there.
func (c *Cluster) Review(ctx context.Context, draft *gc.CleanupPolicy) (*v1alpha1.CleanupReview, []string, error) {
	s, err := c.read(ctx, draft.Namespace)
	if err != nil {
		return nil, nil, err
	}
	now := clock.RealClock{}
	after, before := s.draftOf(draft)
	known := map[string]bool{}
	var failed error
	mayList := func(resource string) bool {
		may, ok := known[resource]
		if !ok {
			if may, err = c.May(ctx, "list", schema.ParseGroupResource(resource), draft.Namespace); err != nil {
				failed = err
			}
			known[resource] = may
		}
		return may
	}
	forecaster := forecast.NewPatient(forecast.Config{Tracker: s.newTrackerAt(now.Now()), Client: c.objects, Clock: now})
	status, err := forecaster.Review(ctx, gc.Draft{Before: before, After: after, MayList: mayList})
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, nil, err
	}
	answer := gc.CleanupReview{
		ObjectMeta: metav1.ObjectMeta{Namespace: draft.Namespace, Name: draft.Name}, Spec: draft.Spec, Status: status,
	}
	out := &v1alpha1.CleanupReview{}
	if err := v1alpha1.Convert_gc_CleanupReview_To_v1alpha1_CleanupReview(&answer, out, nil); err != nil {
		return nil, nil, err
	}
	return out, append(append(s.notes, status.Messages...), validation.Warnings(draft)...), nil
}

// ServerReview asks the server for a review. The server sends warnings itself.
func (c *Cluster) ServerReview(ctx context.Context, draft *gc.CleanupPolicy) (*v1alpha1.CleanupReview, error) {
	in := &v1alpha1.CleanupReview{}
	asked := gc.CleanupReview{ObjectMeta: metav1.ObjectMeta{Namespace: draft.Namespace, Name: draft.Name}, Spec: draft.Spec}
	if err := v1alpha1.Convert_gc_CleanupReview_To_v1alpha1_CleanupReview(&asked, in, nil); err != nil {
		return nil, err
	}
	return c.policies.CleanupReviews(draft.Namespace).Create(ctx, in, metav1.CreateOptions{})
}

// ReviewBy asks the server, or decides in this process. Then the warnings are those that the server would send itself.
func (c *Cluster) ReviewBy(ctx context.Context, server bool, draft *gc.CleanupPolicy) (*v1alpha1.CleanupReview, []string, error) {
	if !server {
		return c.Review(ctx, draft)
	}
	review, err := c.ServerReview(ctx, draft)
	return review, nil, err
}
