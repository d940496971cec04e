// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cleanupreview is the registry of CleanupReviews and ClusterCleanupReviews. They can only be created, and are answered from what
// the controller of this replica knows. Nothing is stored.
package cleanupreview

import (
	"context"
	"errors"
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
	Review(ctx context.Context, draft gc.Draft) (gc.ClusterCleanupReviewStatus, error)
}

// Policies checks drafts.
type Policies interface {
	// CheckDraft returns the stored policy of the same name, nil if there is none, and advice on what is valid but probably not meant. It
	// makes the draft the next generation of the stored policy.
	CheckDraft(ctx context.Context, p policy.Policy) (stored policy.Policy, advice []string, errs field.ErrorList, err error)
}

// Storage serves the reviews of both kinds of policies.
type Storage struct {
	Reviews, ClusterReviews *REST
}

// NewStorage serves cleanupreviews and clustercleanupreviews. The authorizer answers what callers may list. Both take the same turns,
// because each review may need much memory.
func NewStorage(reviewer Reviewer, policies, clusterPolicies Policies, authorizer authorizer.Authorizer) *Storage {
	queue := turns.New("review", 1)
	return &Storage{
		Reviews: &REST{
			kind: namespaced{}, reviewer: reviewer, policies: policies, queue: queue, permissions: permission.Checker{
				Authorizer: authorizer, Resource: gc.Resource("cleanupreviews"), Noun: "review",
			},
		},
		ClusterReviews: &REST{
			kind: ofCluster{}, reviewer: reviewer, policies: clusterPolicies, queue: queue, permissions: permission.Checker{
				Authorizer: authorizer, Resource: gc.Resource("clustercleanupreviews"), Noun: "review",
			},
		},
	}
}

// REST answers the reviews of one kind.
type REST struct {
	kind
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

// Destroy implements rest.Storage.
func (r *REST) Destroy() {}

// Create reviews a draft. The answer is about objects that the caller may list.
func (r *REST) Create(
	ctx context.Context, review runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions,
) (runtime.Object, error) {
	draft := r.draftOf(review)
	if r.NamespaceScoped() {
		meta := review.(metav1.Object)
		if err := rest.EnsureObjectNamespaceMatchesRequestNamespace(genericapirequest.NamespaceValue(ctx), meta); err != nil {
			return nil, err
		}
		draft.SetNamespace(meta.GetNamespace())
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
	change, advice, err := r.check(ctx, draft)
	if err != nil {
		return nil, err
	}
	status, err := r.reviewer.Review(ctx, gc.Draft{PolicyChange: change, MayList: r.mayList(who)})
	if err != nil {
		return nil, errorOf(err)
	}
	for _, line := range slices.Concat(status.Messages, advice) {
		warning.AddWarning(ctx, "", line)
	}
	r.answer(review, status)
	return review, nil
}

// permissionError says why it is not known what the caller may list.
type permissionError struct{ error }

// errorOf returns the error of a review as an API status: why it is not known what the caller may list, or why there is no answer.
func errorOf(err error) error {
	var permissions permissionError
	switch {
	case errors.As(err, &permissions):
		return apierrors.NewInternalError(permissions.error)
	case apierrors.ReasonForError(err) == metav1.StatusReasonUnknown:
		return apierrors.NewServiceUnavailable(err.Error())
	}
	return err
}

// check returns what the draft of a review would change, and advice on it.
func (r *REST) check(ctx context.Context, draft policy.Policy) (change gc.PolicyChange, advice []string, err error) {
	rest.FillObjectMetaSystemFields(draft)
	stored, advice, errs, err := r.policies.CheckDraft(ctx, draft)
	switch {
	case err != nil:
		return change, nil, err
	case len(errs) > 0:
		return change, nil, apierrors.NewInvalid(gc.Kind(r.kindName()), draft.GetName(), errs)
	}
	change = gc.PolicyChange{After: draft, DryRun: true}
	if stored != nil {
		change.Before = stored
	}
	return change, advice, nil
}

// mayList returns what reports whether a user may list a resource in a namespace.
func (r *REST) mayList(who user.Info) func(ctx context.Context, resource, namespace string) (bool, error) {
	return func(ctx context.Context, resource, namespace string) (bool, error) {
		list := permission.Permission{Verb: "list", Resource: resource, Namespace: namespace}
		missing, err := r.permissions.Missing(ctx, who, []permission.Permission{list})
		if err != nil {
			return false, permissionError{err}
		}
		return len(missing) == 0, nil
	}
}
