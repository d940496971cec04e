// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// NewStorage serves the objects of a kind and their status over one store. The clock is for the times in tables.
func NewStorage[O Object, Spec, Status any](kind Kind[O, Spec, Status], scheme *runtime.Scheme, options generic.RESTOptionsGetter,
	clock clock.PassiveClock,
) (*REST, *StatusREST, error) {
	s := newStrategy(kind, scheme)
	store := &genericregistry.Store{
		NewFunc:                   kind.NewFunc,
		NewListFunc:               kind.NewListFunc,
		PredicateFunc:             s.match,
		DefaultQualifiedResource:  gc.Resource(kind.Resource),
		SingularQualifiedResource: gc.Resource(kind.Singular),

		CreateStrategy:      s,
		UpdateStrategy:      s,
		DeleteStrategy:      s,
		ResetFieldsStrategy: s,
		TableConvertor:      NewTable(kind.Columns, clock),
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options, AttrFunc: s.attributes}); err != nil {
		return nil, nil, err
	}
	status := *store
	status.UpdateStrategy = statusStrategy[O, Spec, Status]{s}
	status.ResetFieldsStrategy = statusStrategy[O, Spec, Status]{s}
	return &REST{store, kind.ShortName}, &StatusREST{&status}, nil
}

// REST serves the objects of a kind.
type REST struct {
	*genericregistry.Store
	shortName string
}

var _ rest.ShortNamesProvider = (*REST)(nil)

// ShortNames implements rest.ShortNamesProvider.
func (r *REST) ShortNames() []string { return []string{r.shortName} }

// Get reads an object, and warns if not all of it is understood.
func (r *REST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	object, err := r.Store.Get(ctx, name, options)
	if err == nil {
		r.warnUnreadable(ctx, object)
	}
	return object, err
}

// List lists objects, and warns of those that this version does not fully understand.
func (r *REST) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	list, err := r.Store.List(ctx, options)
	if err == nil {
		r.warnUnreadable(ctx, list)
	}
	return list, err
}

// StatusREST serves the status of the objects.
type StatusREST struct {
	store *genericregistry.Store
}

var (
	_ rest.Patcher             = (*StatusREST)(nil)
	_ rest.ResetFieldsStrategy = (*StatusREST)(nil)
	_ rest.TableConvertor      = (*StatusREST)(nil)
)

// New returns an empty object.
func (r *StatusREST) New() runtime.Object { return r.store.New() }

// Destroy does nothing, because REST destroys the store.
func (r *StatusREST) Destroy() {}

// Get returns the object; patches start from it.
func (r *StatusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update changes the status of an existing object.
func (r *StatusREST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo,
	createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc,
	_ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	const forceAllowCreate = false // a status belongs to an object
	return r.store.Update(ctx, name, objInfo, createValidation, updateValidation, forceAllowCreate, options)
}

// GetResetFields returns what a status writer cannot own.
func (r *StatusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable renders the object as REST does.
func (r *StatusREST) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, options)
}
