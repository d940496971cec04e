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

// CheckDraft checks a policy that is not to be written as Create or Update would, except for the permissions of its author and the number
// of policies in the namespace. It returns the stored policy of the same name, nil if there is none, and advice on what is valid but
// probably not meant. If there is one, p becomes its next generation, with its metadata.
func (r *REST) CheckDraft(ctx context.Context, p Policy) (stored Policy, advice []string, errs field.ErrorList, err error) {
	switch object, err := r.Store.Get(ctx, p.GetName(), &metav1.GetOptions{}); {
	case err == nil:
		stored = object.(Policy)
		replace(p, stored)
		errs = rest.ValidateUpdate(ctx, p, stored, r.Store.UpdateStrategy)
	case apierrors.IsNotFound(err), p.GetName() == "": // The validation requires a name.
		errs = rest.ValidateCreate(ctx, p, r.Store.CreateStrategy)
	default:
		return nil, nil, nil, err
	}
	if len(errs) == 0 {
		errs = r.named.refused(p, stored)
	}
	if len(errs) > 0 {
		return nil, nil, errs, nil
	}
	return stored, r.advise(ctx, p), nil, nil
}

// replace makes p the next generation of a policy.
func replace(p, stored Policy) {
	p.SetUID(stored.GetUID())
	p.SetResourceVersion(stored.GetResourceVersion())
	p.SetCreationTimestamp(stored.GetCreationTimestamp())
	p.SetLabels(stored.GetLabels())
	p.SetAnnotations(stored.GetAnnotations())
	p.SetGeneration(stored.GetGeneration() + 1)
}
