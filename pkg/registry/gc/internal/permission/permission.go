// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package permission checks the permissions of the users who write objects. Otherwise everybody who may write a policy or a lifecycle could
// use the permissions of Winnow.
package permission

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

// Permission is that to a verb on a resource, as "resource.group", in a namespace; in all namespaces if that is empty. With a name it is
// that on this one object. For gc.ResourceAll it is that on all resources of all groups.
type Permission struct{ Verb, Resource, Namespace, Name string }

// What users do with objects, as errors call it.
const (
	Write  = "write"
	Delete = "delete"
)

// accounts are namespaced, whichever namespaces the permission is for.
const accounts = "serviceaccounts"

// ToUse returns the permission to have a policy act as a ServiceAccount. Without a namespace, it is for the accounts of this name
// everywhere.
func ToUse(account, namespace string) Permission {
	return Permission{Verb: VerbUse, Resource: accounts, Namespace: namespace, Name: account}
}

// VerbUse is the verb of ToUse.
const VerbUse = "use"

// ToDelete returns the permissions to list and delete all objects of resources in a namespace.
func ToDelete(resources sets.Set[string], namespace string) sets.Set[Permission] {
	all := sets.New[Permission]()
	for resource := range resources {
		for _, verb := range []string{"delete", "list"} {
			all.Insert(Permission{Verb: verb, Resource: resource, Namespace: namespace})
		}
	}
	return all
}

// Checker checks permissions for writes and deletions of objects of one resource.
type Checker struct {
	authorizer.Authorizer
	Resource schema.GroupResource
	// Noun is what errors call the object.
	Noun string
}

// Require refuses to let a user do something with an object, such as to write it, if the user lacks any of these permissions. why returns
// what the missing ones, as lines for a shell, are needed for.
func (c Checker) Require(
	ctx context.Context, do, name string, needed sets.Set[Permission], why func(user string, missing []string) string,
) error {
	if len(needed) == 0 {
		return nil
	}
	who, ok := genericapirequest.UserFrom(ctx)
	if !ok {
		return apierrors.NewInternalError(errors.New("the request has no user"))
	}
	missing, err := c.Missing(ctx, who, needed.UnsortedList())
	switch {
	case err != nil:
		return apierrors.NewInternalError(err)
	case len(missing) == 0:
		return nil
	}
	return apierrors.NewForbidden(c.Resource, name, fmt.Errorf("%q may not %s this %s: %s. To check the missing permissions: %s",
		who.GetName(), do, c.Noun, why(who.GetName(), missing), strings.Join(missing, "; ")))
}

// Missing checks all permissions concurrently and returns those that the user lacks, as sorted lines for a shell.
func (c Checker) Missing(ctx context.Context, who user.Info, permissions []Permission) ([]string, error) {
	lines := make([]string, len(permissions))
	group, ctx := errgroup.WithContext(ctx)
	for i, p := range permissions {
		group.Go(func() error {
			decision, _, err := c.Authorize(ctx, p.of(who))
			switch {
			case decision == authorizer.DecisionAllow:
			case err != nil:
				return fmt.Errorf("cannot check the permission %q of %q: %w", p, who.GetName(), err)
			default:
				lines[i] = p.String()
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

// String returns the command that asks for the permission.
func (p Permission) String() string {
	line := fmt.Sprintf("kubectl auth can-i %s %s", p.Verb, strings.ReplaceAll(p.Resource, gc.ResourceAll, "'"+gc.ResourceAll+"'"))
	if p.Name != "" {
		line += "/" + p.Name
	}
	switch {
	case p.Namespace != "":
		line += " -n " + p.Namespace
	case p.Name == "" || p.Resource == accounts:
		line += " --all-namespaces"
	}
	return line
}

func (p Permission) of(who user.Info) authorizer.Attributes {
	resource := schema.ParseGroupResource(p.Resource)
	if p.Resource == gc.ResourceAll {
		resource.Group = gc.ResourceAll
	}
	return authorizer.AttributesRecord{
		User: who, Verb: p.Verb, Namespace: p.Namespace, Name: p.Name,
		APIGroup: resource.Group, APIVersion: "*", Resource: resource.Resource, ResourceRequest: true,
	}
}

// OnCreate calls check, with a nil old, and then what follows.
func OnCreate(
	check func(ctx context.Context, object, old runtime.Object) error, then rest.ValidateObjectFunc,
) rest.ValidateObjectFunc {
	return OnDelete(func(ctx context.Context, object runtime.Object) error { return check(ctx, object, nil) }, then)
}

// OnDelete calls check and then what follows.
func OnDelete(check, then rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, object runtime.Object) error {
		if err := check(ctx, object); err != nil || then == nil {
			return err
		}
		return then(ctx, object)
	}
}

// OnUpdate calls check and then what follows.
func OnUpdate(
	check func(ctx context.Context, object, old runtime.Object) error, then rest.ValidateObjectUpdateFunc,
) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, object, old runtime.Object) error {
		if err := check(ctx, object, old); err != nil || then == nil {
			return err
		}
		return then(ctx, object, old)
	}
}
