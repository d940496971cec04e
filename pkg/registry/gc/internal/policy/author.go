// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// author checks that users do not write policies that delete what these users may not delete themselves. Otherwise everybody who may write
// a policy could use the permissions of Winnow.
type author struct {
	authorizer authorizer.Authorizer
	resource   schema.GroupResource
	kind       string
	// reach and status are as in Kind; old is nil for a new policy. deadlines returns the resources that either gives deadlines.
	reach     func(p, old Policy) sets.Set[string]
	deadlines func(p, old Policy) sets.Set[string]
	status    func(p Policy) *gc.CleanupPolicyStatus
}

// onCreate checks the author of a new policy, and then calls then.
func (a author) onCreate(then rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if err := a.check(ctx, obj.(Policy), nil); err != nil {
			return err
		}
		if then == nil {
			return nil
		}
		return then(ctx, obj)
	}
}

// onUpdate checks the author of an update, and then calls then.
func (a author) onUpdate(then rest.ValidateObjectUpdateFunc) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, obj, old runtime.Object) error {
		if err := a.check(ctx, obj.(Policy), old.(Policy)); err != nil {
			return err
		}
		if then == nil {
			return nil
		}
		return then(ctx, obj, old)
	}
}

// check requires the permissions to list and delete everything that the policy reaches, if the spec changes, to patch what it gives a
// deadline, and to approve the holds that it releases. A Preview policy needs them too, because it shows how many objects there are.
func (a author) check(ctx context.Context, p, old Policy) error {
	needed := sets.New[right]()
	if old == nil || p.GetGeneration() != old.GetGeneration() {
		reached := a.reach(p, old)
		needed = rights(reached, p.GetNamespace())
		for resource := range reached.Intersection(a.deadlines(p, old)) {
			needed.Insert(right{verb: "patch", resource: resource, namespace: p.GetNamespace()})
		}
	}
	return a.demand(ctx, p, needed.Union(a.rightsToApprove(p, old)))
}

// demand refuses a write whose user lacks any of these permissions.
func (a author) demand(ctx context.Context, p Policy, rights sets.Set[right]) error {
	if len(rights) == 0 {
		return nil
	}
	who, ok := genericapirequest.UserFrom(ctx)
	if !ok {
		return apierrors.NewInternalError(errors.New("the request has no user"))
	}
	missing, err := a.missing(ctx, who, rights.UnsortedList())
	switch {
	case err != nil:
		return apierrors.NewInternalError(err)
	case len(missing) == 0:
		return nil
	}
	why := fmt.Sprintf("it would delete objects that %q cannot list and delete", who.GetName())
	only := func(verb string) bool {
		return !slices.ContainsFunc(missing, func(line string) bool { return !strings.HasPrefix(line, "kubectl auth can-i "+verb+" ") })
	}
	switch {
	case only(verbApprove):
		why = fmt.Sprintf("approving a hold needs the verb %q", verbApprove)
	case only("patch"):
		why = fmt.Sprintf("it would set the activeDeadlineSeconds of objects that %q cannot patch", who.GetName())
	}
	return apierrors.NewForbidden(a.resource, p.GetName(), fmt.Errorf(
		"%q may not write this policy: %s. Missing permissions: %s", who.GetName(), why, strings.Join(missing, "; ")))
}

// missing checks all permissions concurrently and returns those that the user lacks, as sorted lines for a shell.
func (a author) missing(ctx context.Context, who user.Info, rights []right) ([]string, error) {
	lines := make([]string, len(rights))
	group, ctx := errgroup.WithContext(ctx)
	for i, r := range rights {
		group.Go(func() error {
			decision, _, err := a.authorizer.Authorize(ctx, r.of(who))
			switch {
			case decision == authorizer.DecisionAllow:
			case err != nil:
				return fmt.Errorf("cannot check the permission %q of %q: %w", r, who.GetName(), err)
			default:
				lines[i] = r.String()
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	slices.Sort(lines)
	return lines, nil
}

// right is the permission to a verb on a resource, as "resource.group", in a namespace; in all namespaces if that is empty. With a name it
// is the permission on this one policy. For gc.ResourceAll it is the permission on all resources of all groups.
type right struct{ verb, resource, namespace, name string }

func rights(resources sets.Set[string], namespace string) sets.Set[right] {
	all := sets.New[right]()
	for resource := range resources {
		all.Insert(right{verb: "delete", resource: resource, namespace: namespace}, right{verb: "list", resource: resource, namespace: namespace})
	}
	return all
}

// String returns the command that asks for the permission.
func (r right) String() string {
	line := fmt.Sprintf("kubectl auth can-i %s %s", r.verb, strings.ReplaceAll(r.resource, gc.ResourceAll, "'"+gc.ResourceAll+"'"))
	if r.name != "" {
		line += "/" + r.name
	}
	switch {
	case r.namespace != "":
		line += " -n " + r.namespace
	case r.name == "":
		line += " --all-namespaces"
	}
	return line
}

func (r right) of(who user.Info) authorizer.Attributes {
	resource := schema.ParseGroupResource(r.resource)
	if r.resource == gc.ResourceAll {
		resource.Group = gc.ResourceAll
	}
	return authorizer.AttributesRecord{
		User: who, Verb: r.verb, Namespace: r.namespace, Name: r.name,
		APIGroup: resource.Group, APIVersion: "*", Resource: resource.Resource, ResourceRequest: true,
	}
}
