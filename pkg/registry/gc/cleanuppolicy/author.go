// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanuppolicy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// author keeps people from having deleted by a policy what they may not delete themselves, as the rights of Winnow would
// otherwise be borrowed by everybody who may write a policy.
type author struct {
	authorizer authorizer.Authorizer
}

// onCreate checks the author of a new policy, and then what came with the request.
func (a author) onCreate(then rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if err := a.check(ctx, obj.(*gc.CleanupPolicy)); err != nil {
			return err
		}
		if then == nil {
			return nil
		}
		return then(ctx, obj)
	}
}

// onUpdate checks whoever changes a spec; labels and annotations decide nothing about what goes.
func (a author) onUpdate(then rest.ValidateObjectUpdateFunc) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, obj, old runtime.Object) error {
		policy := obj.(*gc.CleanupPolicy)
		if policy.Generation != old.(*gc.CleanupPolicy).Generation {
			if err := a.check(ctx, policy); err != nil {
				return err
			}
		}
		if then == nil {
			return nil
		}
		return then(ctx, obj, old)
	}
}

// check demands the rights to list and to delete all that the policy covers. A Preview policy shows how many there are.
func (a author) check(ctx context.Context, policy *gc.CleanupPolicy) error {
	user, ok := genericapirequest.UserFrom(ctx)
	if !ok {
		return apierrors.NewInternalError(errors.New("the request has no user"))
	}
	var missing []string
	for _, resource := range sets.List(covered(&policy.Spec)) {
		gr := schema.ParseGroupResource(resource)
		for _, verb := range []string{"list", "delete"} {
			decision, _, err := a.authorizer.Authorize(ctx, authorizer.AttributesRecord{
				User: user, Verb: verb, Namespace: policy.Namespace,
				APIGroup: gr.Group, APIVersion: "*", Resource: gr.Resource, ResourceRequest: true,
			})
			switch {
			case decision == authorizer.DecisionAllow:
			case err != nil:
				return apierrors.NewInternalError(fmt.Errorf("cannot tell whether %q may %s %s in %s: %w", user.GetName(), verb, resource, policy.Namespace, err))
			default:
				missing = append(missing, fmt.Sprintf("kubectl auth can-i %s %s -n %s", verb, resource, policy.Namespace))
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return apierrors.NewForbidden(gc.Resource("cleanuppolicies"), policy.Name, fmt.Errorf(
		"%q cannot have deleted by a policy what they cannot list and delete themselves; the answer is no to: %s",
		user.GetName(), strings.Join(missing, "; ")))
}

// covered are the resources of which the policy may delete something.
func covered(spec *gc.CleanupPolicySpec) sets.Set[string] {
	resources := sets.New[string]()
	if spec.TTLAfterFinished != nil {
		resources.Insert(gc.ResourceJobs, gc.ResourcePods)
	}
	for i := range spec.Rules {
		if len(spec.Rules[i].Resources) == 0 {
			resources.Insert(gc.ResourceJobs, gc.ResourcePods)
		}
		resources.Insert(spec.Rules[i].Resources...)
	}
	return resources
}
