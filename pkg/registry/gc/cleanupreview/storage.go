// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cleanupreview is the registry of CleanupReviews. They can only be created, and are answered from what the controller of this
// replica knows. Nothing is stored.
package cleanupreview

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/permission"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/policy"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/turns"
)

// Reviewer says what a draft would delete. An error that is no API status means that this replica cannot say so yet.
type Reviewer interface {
	Review(ctx context.Context, draft gc.Draft) (gc.CleanupReviewStatus, error)
}

// Policies checks drafts.
type Policies interface {
	// CheckDraft returns the stored policy of the same name, nil if there is none, and advice on what is valid but probably not meant. It
	// makes the draft the next generation of the stored policy.
	CheckDraft(ctx context.Context, p policy.Policy) (stored policy.Policy, advice []string, errs field.ErrorList, err error)
}

// REST answers reviews.
type REST struct {
	reviewer    Reviewer
	policies    Policies
	permissions permission.Checker
	queue       *turns.Queue
}

var (
	_ rest.Creater              = (*REST)(nil) //nolint:misspell // that is its name
	_ rest.Scoper               = (*REST)(nil)
	_ rest.SingularNameProvider = (*REST)(nil)
)

// NewREST serves cleanupreviews. The authorizer answers what callers may list.
func NewREST(reviewer Reviewer, policies Policies, authorizer authorizer.Authorizer) *REST {
	return &REST{reviewer, policies, permission.Checker{
		Authorizer: authorizer, Resource: gc.Resource("cleanupreviews"), Noun: "review",
	}, turns.New("review", 1)}
}

// New implements rest.Storage.
func (r *REST) New() runtime.Object { return &gc.CleanupReview{} }

// Destroy implements rest.Storage.
func (r *REST) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (r *REST) NamespaceScoped() bool { return true }

// GetSingularName implements rest.SingularNameProvider.
func (r *REST) GetSingularName() string { return "cleanupreview" }

// Create reviews a draft. The answer is about resources that the caller may list.
func (r *REST) Create(
	ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions,
) (runtime.Object, error) {
	review := obj.(*gc.CleanupReview)
	namespace := genericapirequest.NamespaceValue(ctx)
	if err := rest.EnsureObjectNamespaceMatchesRequestNamespace(namespace, review); err != nil {
		return nil, err
	}
	if validate != nil {
		if err := validate(ctx, review); err != nil {
			return nil, err
		}
	}
	who, leave, err := r.queue.EnterCaller(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	draft, advice, err := r.draftOf(ctx, review)
	if err != nil {
		return nil, err
	}
	caller := &caller{ctx: ctx, user: who, namespace: namespace, permissions: r.permissions, known: map[string]bool{}}
	draft.MayList = caller.mayList
	status, err := r.reviewer.Review(ctx, draft)
	if err := errorOf(caller.err, err); err != nil {
		return nil, err
	}
	for _, line := range slices.Concat(status.Messages, advice) {
		warning.AddWarning(ctx, "", line)
	}
	review.Status = status
	return review, nil
}

// errorOf returns the error of a review as an API status: why it is not known what the caller may list, or why there is no answer.
func errorOf(permissions, review error) error {
	switch {
	case permissions != nil:
		return apierrors.NewInternalError(permissions)
	case review != nil && apierrors.ReasonForError(review) == metav1.StatusReasonUnknown:
		return apierrors.NewServiceUnavailable(review.Error())
	}
	return review
}

// draftOf returns the policy that a review is about, and advice on it. A policy in Preview mode would delete nothing.
func (r *REST) draftOf(ctx context.Context, review *gc.CleanupReview) (draft gc.Draft, advice []string, err error) {
	after := &gc.CleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: review.Namespace, Name: review.Name, Generation: 1},
		Spec:       *review.Spec.DeepCopy(),
	}
	rest.FillObjectMetaSystemFields(after)
	after.Spec.Mode = gc.ModeEnforce
	stored, advice, errs, err := r.policies.CheckDraft(ctx, after)
	switch {
	case err != nil:
		return draft, nil, err
	case len(errs) > 0:
		return draft, nil, apierrors.NewInvalid(gc.Kind("CleanupReview"), review.Name, errs)
	}
	draft.Before, _ = stored.(*gc.CleanupPolicy)
	draft.After = after
	return draft, advice, nil
}

// caller is who asks for one review.
type caller struct {
	ctx         context.Context
	user        user.Info
	namespace   string
	permissions permission.Checker
	known       map[string]bool // by resource
	err         error
}

// mayList reports whether the caller may list a resource. After an error it is false.
func (c *caller) mayList(resource string) bool {
	if may, ok := c.known[resource]; ok {
		return may
	}
	missing, err := c.permissions.Missing(c.ctx, c.user, []permission.Permission{{Verb: "list", Resource: resource, Namespace: c.namespace}})
	if err != nil {
		c.err = err
	}
	c.known[resource] = err == nil && len(missing) == 0
	return c.known[resource]
}
