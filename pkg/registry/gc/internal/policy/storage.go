// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/utils/clock"
	"k8s.io/utils/keymutex"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// Storage serves one kind of policy and its status.
type Storage struct {
	Policies *REST
	Status   *StatusREST
}

// NewStorage returns both over one store. The authorizer answers what authors of policies may delete themselves. The clock is for the times
// in tables. The forecast may be nil. A namespace can have at most so many policies; a negative number means no limit.
func NewStorage[P Policy, S any](kind Kind[P, S], scheme *runtime.Scheme, options generic.RESTOptionsGetter,
	authorizer authorizer.Authorizer, clock clock.PassiveClock, forecast Forecast, most int,
) (*Storage, error) {
	s := newStrategy(kind, scheme)
	resource := gc.Resource(kind.Resource)
	store := &genericregistry.Store{
		NewFunc:                   kind.NewFunc,
		NewListFunc:               kind.NewListFunc,
		PredicateFunc:             s.match,
		DefaultQualifiedResource:  resource,
		SingularQualifiedResource: gc.Resource(kind.Singular),

		CreateStrategy:      s,
		UpdateStrategy:      s,
		DeleteStrategy:      s,
		ResetFieldsStrategy: s,
		TableConvertor:      newTable(kind, clock),
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options, AttrFunc: s.attributes}); err != nil {
		return nil, err
	}
	status := *store
	status.UpdateStrategy = statusStrategy[P, S]{s}
	status.ResetFieldsStrategy = statusStrategy[P, S]{s}

	reach := func(p, old Policy) sets.Set[string] {
		before, _ := old.(P) // nil for a new policy
		return kind.Reach(p.(P), before)
	}
	return &Storage{
		Policies: &REST{
			Store: store, shortName: kind.ShortName, limit: &limit{most, kind.Name, store.List, keymutex.NewHashed(lockedAtOnce)},
			forecast: forecast,
			advise:   func(p Policy) []string { return kind.Warnings(p.(P)) },
			author:   author{authorizer, resource, kind.Name, reach, func(p Policy) *gc.CleanupPolicyStatus { return kind.Status(p.(P)) }},
		},
		Status: &StatusREST{&status},
	}, nil
}

// REST serves the policies.
type REST struct {
	*genericregistry.Store
	shortName string
	author    author
	forecast  Forecast
	advise    func(Policy) []string // returns what is valid but probably not meant
	limit     *limit
}

var _ rest.ShortNamesProvider = (*REST)(nil)

// ShortNames implements rest.ShortNamesProvider.
func (r *REST) ShortNames() []string { return []string{r.shortName} }

// Create creates a policy, if its author may delete what the policy reaches.
func (r *REST) Create(
	ctx context.Context,
	obj runtime.Object,
	validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions,
) (runtime.Object, error) {
	forecastWarnings := r.forecastWarnings(options.DryRun)
	validate, done := r.limit.onCreate(forecastWarnings.onCreate(r.author.onCreate(validate)))
	defer done()
	created, err := r.Store.Create(ctx, obj, validate, options)
	forecastWarnings.warn(ctx, err)
	return created, err
}

// Update changes a policy, or creates it by server-side apply, if its author may delete what the policy reaches.
func (r *REST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo,
	createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc,
	forceAllowCreate bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	forecastWarnings := r.forecastWarnings(options.DryRun)
	createValidation, done := r.limit.onCreate(forecastWarnings.onCreate(r.author.onCreate(createValidation)))
	defer done()
	updated, created, err := r.Store.Update(ctx, name, objInfo, createValidation,
		forecastWarnings.onUpdate(r.author.onUpdate(updateValidation)), forceAllowCreate, options)
	forecastWarnings.warn(ctx, err)
	return updated, created, err
}

// Delete deletes a policy.
func (r *REST) Delete(
	ctx context.Context,
	name string,
	validate rest.ValidateObjectFunc,
	options *metav1.DeleteOptions,
) (runtime.Object, bool, error) {
	forecastWarnings := r.forecastWarnings(options.DryRun)
	deleted, now, err := r.Store.Delete(ctx, name, forecastWarnings.onDelete(validate), options)
	forecastWarnings.warn(ctx, err)
	return deleted, now, err
}

// Get reads a policy, and warns if not all of it is understood.
func (r *REST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	policy, err := r.Store.Get(ctx, name, options)
	if err == nil {
		r.warnUnreadable(ctx, policy)
	}
	return policy, err
}

// List lists policies, and warns of those that this version does not fully understand.
func (r *REST) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	list, err := r.Store.List(ctx, options)
	if err == nil {
		r.warnUnreadable(ctx, list)
	}
	return list, err
}

func (r *REST) forecastWarnings(dryRun []string) *forecastWarnings {
	return &forecastWarnings{author: r.author, forecast: r.forecast, advise: r.advise, dryRun: dryrun.IsDryRun(dryRun)}
}

// StatusREST serves the status of the policies.
type StatusREST struct {
	store *genericregistry.Store
}

var (
	_ rest.Patcher             = (*StatusREST)(nil)
	_ rest.ResetFieldsStrategy = (*StatusREST)(nil)
	_ rest.TableConvertor      = (*StatusREST)(nil)
)

// New returns an empty policy.
func (r *StatusREST) New() runtime.Object { return r.store.New() }

// Destroy does nothing, because REST destroys the store.
func (r *StatusREST) Destroy() {}

// Get returns the policy; patches start from it.
func (r *StatusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update changes the status of an existing policy.
func (r *StatusREST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo,
	createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc,
	_ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	const forceAllowCreate = false // a status belongs to a policy
	return r.store.Update(ctx, name, objInfo, createValidation, updateValidation, forceAllowCreate, options)
}

// GetResetFields returns what a status writer cannot own.
func (r *StatusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable renders the policy as REST does.
func (r *StatusREST) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, options)
}
