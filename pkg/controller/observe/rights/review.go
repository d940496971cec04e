// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// review asks the API server.
func (a *Asker) review(ctx context.Context, q question) (bool, error) {
	resource := schema.ParseGroupResource(q.resource)
	attributes := &authorizationv1.ResourceAttributes{
		Namespace: q.namespace, Verb: q.verb, Group: resource.Group, Resource: resource.Resource, Name: q.name,
	}
	reviews := a.cluster.AuthorizationV1()
	if q.account == "" {
		review, err := reviews.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes},
		}, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		return review.Status.Allowed, nil
	}
	review, err := reviews.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			ResourceAttributes: attributes, User: serviceaccount.MakeUsername(q.namespace, q.account),
			Groups: append(serviceaccount.MakeGroupNames(q.namespace), user.AllAuthenticated),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}
