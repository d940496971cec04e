// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanupreview

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/policy"
)

// kind is a kind of reviews.
type kind interface {
	// New implements rest.Storage.
	New() runtime.Object
	// NamespaceScoped implements rest.Scoper.
	NamespaceScoped() bool
	// GetSingularName implements rest.SingularNameProvider.
	GetSingularName() string
	kindName() string
	// draftOf returns the policy that a review is about, without its namespace. A policy in Preview mode would delete nothing, so it is in
	// Enforce mode.
	draftOf(review runtime.Object) policy.Policy
	answer(review runtime.Object, status gc.ClusterCleanupReviewStatus)
}

// namespaced are CleanupReviews.
type namespaced struct{}

func (namespaced) New() runtime.Object     { return &gc.CleanupReview{} }
func (namespaced) NamespaceScoped() bool   { return true }
func (namespaced) GetSingularName() string { return "cleanupreview" }
func (namespaced) kindName() string        { return "CleanupReview" }

func (namespaced) draftOf(review runtime.Object) policy.Policy {
	r := review.(*gc.CleanupReview)
	p := &gc.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: r.Name, Generation: 1}, Spec: *r.Spec.DeepCopy()}
	p.Spec.Mode = gc.ModeEnforce
	return p
}

func (namespaced) answer(review runtime.Object, status gc.ClusterCleanupReviewStatus) {
	review.(*gc.CleanupReview).Status = status.CleanupReviewStatus
}

// ofCluster are ClusterCleanupReviews.
type ofCluster struct{}

func (ofCluster) New() runtime.Object     { return &gc.ClusterCleanupReview{} }
func (ofCluster) NamespaceScoped() bool   { return false }
func (ofCluster) GetSingularName() string { return "clustercleanupreview" }
func (ofCluster) kindName() string        { return "ClusterCleanupReview" }

func (ofCluster) draftOf(review runtime.Object) policy.Policy {
	r := review.(*gc.ClusterCleanupReview)
	p := &gc.ClusterCleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: r.Name, Generation: 1}, Spec: *r.Spec.DeepCopy()}
	p.Spec.Mode = gc.ModeEnforce
	return p
}

func (ofCluster) answer(review runtime.Object, status gc.ClusterCleanupReviewStatus) {
	review.(*gc.ClusterCleanupReview).Status = status
}
