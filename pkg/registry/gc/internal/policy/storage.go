// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"slices"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/utils/clock"
	"k8s.io/utils/keymutex"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/object"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/permission"
	"github.com/winnow-dev/winnow/pkg/registry/gc/schemas"
)

// Storage serves one kind of policy and its status.
type Storage struct {
	Policies *REST
	Status   *object.StatusREST
}

// Config has what the storages of both kinds need. Forecast, Approved, Served and Checker may be nil.
type Config struct {
	Scheme  *runtime.Scheme
	Options generic.RESTOptionsGetter
	// Authorizer answers what authors of policies may delete themselves.
	Authorizer authorizer.Authorizer
	// Clock is for the times in tables.
	Clock clock.PassiveClock

	Forecast Forecast
	Approved Approved
	Served   Served
	Checker  *schemas.Checker
}

// NewStorage returns both over one store. What policies name may be nil. A namespace can have at most so many policies; a negative number
// means no limit.
func NewStorage[P Policy, S any](kind Kind[P, S], c Config, named NamedResources, most int) (*Storage, error) {
	if c.Served == nil {
		c.Served = func(string) gc.ServedResource { return gc.ServedResource{} }
	}
	policies, status, err := object.NewStorage(kind.complete(), c.Scheme, c.Options, c.Clock)
	if err != nil {
		return nil, err
	}
	reach := func(p, old Policy) (sets.Set[string], error) {
		spec := kind.Spec(p.(P))
		var replaced *S // nil for a new policy
		if before, ok := old.(P); ok {
			replaced = kind.Spec(before)
		}
		reached := kind.Reached(spec, replaced)
		if named == nil || kind.ReachesNamed == nil || !kind.ReachesNamed(spec, replaced) {
			return reached, nil
		}
		others, err := named()
		return reached.Union(others), err
	}
	freed := func(p Policy) (sets.Set[string], error) {
		switch {
		case gc.Unreadable(p) != "": // It holds whatever it could select.
			return sets.New(gc.ResourceAll), nil
		case kind.Defaults(p.(P)).Mode == gc.ModePreview:
			return nil, nil
		}
		return reach(kind.NewFunc().(P), p)
	}
	deadlines := func(p, old Policy) sets.Set[string] {
		given := Deadlines(kind.Defaults(p.(P)))
		if before, ok := old.(P); ok {
			given = given.Union(Deadlines(kind.Defaults(before)))
		}
		return given
	}
	resources := namesResources{c.Served, kind.Name, func(p Policy) []NamedResource { return kind.Named(p.(P)) }}
	author := author{
		permission.Checker{Authorizer: c.Authorizer, Resource: gc.Resource(kind.Resource), Noun: "policy"},
		kind.Name, reach, freed, deadlines,
		func(p Policy) *gc.CleanupPolicyStatus { return kind.Status(p.(P)) },
		func(p Policy) sets.Set[string] { return kind.Reach(kind.Spec(p.(P))) },
		func(p Policy) string {
			if gc.Unreadable(p) != "" {
				return "" // It holds whatever it could select, also what the account may not delete.
			}
			return kind.Defaults(p.(P)).ServiceAccountName
		},
	}
	return &Storage{
		Policies: &REST{
			REST: policies, limit: &limit{most, kind.Name, policies.Store.List, keymutex.NewHashed(lockedAtOnce)},
			forecast: c.Forecast, approved: c.Approved,
			advise: func(ctx context.Context, p Policy) []string {
				misfits := c.Checker.Misfits(ctx, conditionsOf(kind.Defaults(p.(P)))...)
				rights := author.accountWarnings(ctx, p, author.named(p), deadlines(p, nil))
				return slices.Concat(kind.Warnings(p.(P)), resources.warnings(p), rights, misfits)
			},
			named:  resources,
			author: author,
		},
		Status: status,
	}, nil
}

// REST serves the policies.
type REST struct {
	*object.REST
	author   author
	forecast Forecast
	approved Approved
	advise   func(context.Context, Policy) []string // returns what is valid but probably not meant
	limit    *limit
	named    namesResources
}

// check checks the author and the resources of a policy.
func (r *REST) check(ctx context.Context, object, old runtime.Object) error {
	if err := r.author.check(ctx, object, old); err != nil {
		return err
	}
	return r.named.check(ctx, object, old)
}

// Create creates a policy, if its author may delete what the policy reaches.
func (r *REST) Create(
	ctx context.Context,
	obj runtime.Object,
	validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions,
) (runtime.Object, error) {
	forecastWarnings := r.forecastWarnings(options.DryRun)
	validate, done := r.limit.onCreate(forecastWarnings.onCreate(permission.OnCreate(r.check, validate)))
	defer done()
	created, err := r.Store.Create(ctx, obj, validate, options)
	forecastWarnings.done(ctx, err)
	return created, err
}

// Update changes a policy, or creates it by server-side apply, if its author may delete what the policy reaches.
func (r *REST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo,
	createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc,
	forceAllowCreate bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	forecastWarnings := r.forecastWarnings(options.DryRun)
	createValidation, done := r.limit.onCreate(forecastWarnings.onCreate(permission.OnCreate(r.check, createValidation)))
	defer done()
	updated, created, err := r.Store.Update(ctx, name, objInfo, createValidation,
		forecastWarnings.onUpdate(permission.OnUpdate(r.check, updateValidation)), forceAllowCreate, options)
	forecastWarnings.done(ctx, err)
	return updated, created, err
}

// Delete deletes a policy, if the user may delete what the policy keeps.
func (r *REST) Delete(
	ctx context.Context,
	name string,
	validate rest.ValidateObjectFunc,
	options *metav1.DeleteOptions,
) (runtime.Object, bool, error) {
	forecastWarnings := r.forecastWarnings(options.DryRun)
	deleted, now, err := r.Store.Delete(ctx, name, forecastWarnings.onDelete(permission.OnDelete(r.author.checkDelete, validate)), options)
	forecastWarnings.done(ctx, err)
	return deleted, now, err
}

// DeleteCollection deletes policies as Delete does, but without a forecast: a request waits for one forecast only.
func (r *REST) DeleteCollection(
	ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, list *metainternalversion.ListOptions,
) (runtime.Object, error) {
	return r.Store.DeleteCollection(ctx, permission.OnDelete(r.author.checkDelete, validate), options, list)
}

func (r *REST) forecastWarnings(dryRun []string) *forecastWarnings {
	return &forecastWarnings{author: r.author, forecast: r.forecast, advise: r.advise, approved: r.approved, dryRun: dryrun.IsDryRun(dryRun)}
}
