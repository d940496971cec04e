// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/apis/gc/validation"
	"github.com/winnow-dev/winnow/pkg/controller/forecast"
)

// Review returns what a draft would delete. With server, the server answers, and sends the warnings itself. Otherwise this process decides,
// and returns the warnings that the server would send.
func (c *Cluster) Review(ctx context.Context, server bool, draft *gc.CleanupPolicy) (*v1alpha1.CleanupReview, []string, error) {
	review := gc.CleanupReview{ObjectMeta: metav1.ObjectMeta{Namespace: draft.Namespace, Name: draft.Name}, Spec: draft.Spec}
	out := &v1alpha1.CleanupReview{}
	if server {
		if err := v1alpha1.Convert_gc_CleanupReview_To_v1alpha1_CleanupReview(&review, out, nil); err != nil {
			return nil, nil, err
		}
		answer, err := c.policies.CleanupReviews(draft.Namespace).Create(ctx, out, metav1.CreateOptions{})
		return answer, nil, err
	}
	s, err := c.read(ctx, draft.Namespace)
	if err != nil {
		return nil, nil, err
	}
	change := gc.PolicyChange{DryRun: true}
	after, before := s.draftOf(draft)
	if change.After = after; before != nil {
		change.Before = before
	}
	status, err := c.review(ctx, s, change)
	if err != nil {
		return nil, nil, err
	}
	review.Status = status.CleanupReviewStatus
	err = v1alpha1.Convert_gc_CleanupReview_To_v1alpha1_CleanupReview(&review, out, nil)
	return out, append(append(s.notes, status.Messages...), validation.Warnings(draft)...), err
}

// ClusterReview is like Review, for a cluster policy.
func (c *Cluster) ClusterReview(
	ctx context.Context, server bool, draft *gc.ClusterCleanupPolicy,
) (*v1alpha1.ClusterCleanupReview, []string, error) {
	review := gc.ClusterCleanupReview{ObjectMeta: metav1.ObjectMeta{Name: draft.Name}, Spec: draft.Spec}
	out := &v1alpha1.ClusterCleanupReview{}
	if server {
		if err := v1alpha1.Convert_gc_ClusterCleanupReview_To_v1alpha1_ClusterCleanupReview(&review, out, nil); err != nil {
			return nil, nil, err
		}
		answer, err := c.policies.ClusterCleanupReviews().Create(ctx, out, metav1.CreateOptions{})
		if apierrors.IsNotFound(err) {
			err = errors.New("the Winnow of this cluster, or one of its replicas, is older than this plugin and cannot review a " +
				"ClusterCleanupPolicy; upgrade it, or apply the policy with mode: Preview")
		}
		return answer, nil, err
	}
	switch may, err := c.May(ctx, "list", namespaceResource.GroupResource(), ""); {
	case err != nil:
		return nil, nil, err
	case !may:
		return nil, nil, errors.New("without Winnow in the cluster, the preview of a ClusterCleanupPolicy needs permission to list namespaces: " +
			"kubectl auth can-i list namespaces")
	}
	s, err := c.read(ctx, "")
	if err != nil {
		return nil, nil, err
	}
	change := gc.PolicyChange{DryRun: true}
	after, before := s.clusterDraftOf(draft)
	if change.After = after; before != nil {
		change.Before = before
	}
	if review.Status, err = c.review(ctx, s, change); err != nil {
		return nil, nil, err
	}
	err = v1alpha1.Convert_gc_ClusterCleanupReview_To_v1alpha1_ClusterCleanupReview(&review, out, nil)
	return out, append(append(s.notes, review.Status.Messages...), validation.ClusterWarnings(draft)...), err
}

// review decides in this process what a draft would delete of what the caller may list.
func (c *Cluster) review(ctx context.Context, s *setting, change gc.PolicyChange) (gc.ClusterCleanupReviewStatus, error) {
	now := clock.RealClock{}
	forecaster := forecast.NewPatient(forecast.Config{Tracker: s.newTrackerAt(now.Now()), Client: c.objects, Clock: now})
	return forecaster.Review(ctx, gc.Draft{PolicyChange: change, MayList: func(ctx context.Context, resource, namespace string) (bool, error) {
		listed := schema.ParseGroupResource(resource)
		if resource == gc.ResourceAll {
			listed.Group = gc.ResourceAll
		}
		return c.May(ctx, "list", listed, namespace)
	}})
}
