// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
)

// CheckDraft checks a policy that is not to be written, as Create does, except for the permissions of its author. It returns the stored
// policy of the same name, nil if there is none, and advice on what is valid but probably not meant.
func (r *REST) CheckDraft(ctx context.Context, p Policy) (stored Policy, advice []string, errs field.ErrorList, err error) {
	if errs = rest.ValidateCreate(ctx, p, r.Store.CreateStrategy); len(errs) > 0 {
		return nil, nil, errs, nil
	}
	switch object, err := r.Store.Get(ctx, p.GetName(), &metav1.GetOptions{}); {
	case err == nil:
		stored, _ = object.(Policy)
	case !apierrors.IsNotFound(err):
		return nil, nil, nil, err
	}
	if errs = r.named.refused(p, stored); len(errs) > 0 {
		return nil, nil, errs, nil
	}
	return stored, r.advise(ctx, p), nil, nil
}
