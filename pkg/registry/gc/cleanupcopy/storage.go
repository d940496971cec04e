// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cleanupcopy is the registry of CleanupCopies. The controller stores them as internal objects, and this replica reads them for
// each request. They can be neither watched nor deleted, so the garbage collector, quotas and the deletion of namespaces ignore them.
package cleanupcopy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/permission"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/turns"
)

// Reader reads copies.
type Reader interface {
	// Copies returns a page of copies, without their contents.
	Copies(ctx context.Context, q gc.CopyQuery) (gc.CopyPage, error)
	// Copy returns a copy without its content, or an error that says that there is none.
	Copy(ctx context.Context, namespace, name string) (*gc.CleanupCopy, error)
	// CopyContent returns a copy with its content.
	CopyContent(ctx context.Context, namespace, name string) (*gc.CleanupCopy, error)
}

var resource = gc.Resource("cleanupcopies")

const (
	// maxPage is how many copies a page may have. The API server reads whole copies for it, of up to 700 kB each.
	maxPage = 50
	// mostReads is how many requests read at once, or send a content. A content has up to some megabytes.
	mostReads = 4
)

// REST serves the copies.
type REST struct {
	rest.TableConvertor
	reader      Reader
	permissions permission.Checker
	queue       *turns.Queue
}

var (
	_ rest.Getter               = (*REST)(nil)
	_ rest.Lister               = (*REST)(nil)
	_ rest.Scoper               = (*REST)(nil)
	_ rest.ShortNamesProvider   = (*REST)(nil)
	_ rest.SingularNameProvider = (*REST)(nil)
)

// NewREST serves cleanupcopies. The authorizer answers what callers may list and get.
func NewREST(reader Reader, authorizer authorizer.Authorizer, clock clock.PassiveClock) *REST {
	return &REST{
		TableConvertor: newTable(clock), reader: reader,
		permissions: permission.Checker{Authorizer: authorizer, Resource: resource, Noun: "copy"},
		queue:       turns.New("read", mostReads),
	}
}

// New implements rest.Storage.
func (r *REST) New() runtime.Object { return &gc.CleanupCopy{} }

// Destroy implements rest.Storage.
func (r *REST) Destroy() {}

// NewList implements rest.Lister.
func (r *REST) NewList() runtime.Object { return &gc.CleanupCopyList{} }

// NamespaceScoped implements rest.Scoper.
func (r *REST) NamespaceScoped() bool { return true }

// GetSingularName implements rest.SingularNameProvider.
func (r *REST) GetSingularName() string { return "cleanupcopy" }

// ShortNames implements rest.ShortNamesProvider.
func (r *REST) ShortNames() []string { return []string{"ccopy"} }

// Get returns a copy with its content, if the caller may get the object by its name. The content is read only after that is known.
func (r *REST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	who, leave, err := r.queue.EnterCaller(ctx)
	if err != nil {
		return nil, err
	}
	out, err := r.get(ctx, who, name)
	if err != nil {
		leave()
		return nil, err
	}
	context.AfterFunc(ctx, leave) // When the response is sent: until then, it takes memory.
	return out, nil
}

func (r *REST) get(ctx context.Context, who user.Info, name string) (runtime.Object, error) {
	namespace := genericapirequest.NamespaceValue(ctx)
	found, err := r.reader.Copy(ctx, namespace, name)
	if err != nil {
		return nil, served(err)
	}
	object := found.Status.Object
	if object.Resource == "" || object.Name == "" { // Nobody knows who may see it.
		return nil, apierrors.NewNotFound(resource, name)
	}
	missing, err := r.permissions.Missing(ctx, who, []permission.Permission{
		{Verb: "get", Resource: object.Resource, Namespace: namespace, Name: object.Name},
	})
	switch {
	case err != nil:
		return nil, apierrors.NewInternalError(err)
	case len(missing) > 0: // The name of the object is not theirs to know.
		return nil, apierrors.NewForbidden(resource, name, fmt.Errorf(
			"you may not get the object that was copied: kubectl auth can-i get %s -n %s", object.Resource, namespace))
	}
	content, err := r.reader.CopyContent(ctx, namespace, name)
	switch {
	case err != nil:
		return nil, served(err)
	case content.Status.Object.Resource != object.Resource, content.Status.Object.Name != object.Name:
		return nil, apierrors.NewConflict(resource, name, errors.New("the copy was replaced at the same time; try again"))
	}
	return content, nil
}

// List returns the copies of objects of resources that the caller may list, without their contents.
func (r *REST) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	q, err := queryOf(ctx, options)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	who, leave, err := r.queue.EnterCaller(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	listed := r.permissions.NewListed(who, q.Namespace)
	q.MayList = func(ctx context.Context, resource string) (bool, error) {
		if resource == "" {
			return false, nil
		}
		return listed.May(ctx, resource)
	}
	page, err := r.reader.Copies(ctx, q)
	if err != nil {
		return nil, served(err)
	}
	if options.Limit == 0 && page.Continue != "" {
		warning.AddWarning(ctx, "", fmt.Sprintf(
			"the list has the copies among the first %d only; use limit and continue for the others", q.Limit))
	}
	if denied := listed.Denied(); denied != "" {
		warning.AddWarning(ctx, "", "hidden copies: you may not list their resources: "+denied)
	}
	return &gc.CleanupCopyList{ListMeta: page.ListMeta, Items: page.Items}, nil
}

// served returns the error that callers get for an error of the reader. Only errors about copies, and about the page, are theirs.
func served(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsResourceExpired(err) || apierrors.IsBadRequest(err) {
		return err
	}
	return apierrors.NewServiceUnavailable(err.Error())
}

// queryOf returns the query for the options of a request. Its errors are for the caller.
func queryOf(ctx context.Context, options *metainternalversion.ListOptions) (gc.CopyQuery, error) {
	q := gc.CopyQuery{
		Namespace: genericapirequest.NamespaceValue(ctx), Fields: fields.Everything(), Limit: maxPage, Continue: options.Continue,
	}
	if options.Limit > 0 {
		q.Limit = min(options.Limit, maxPage)
	}
	if options.LabelSelector != nil && !options.LabelSelector.Empty() {
		return q, errors.New("copies have no labels; use a field selector: " + strings.Join(gc.CopyFields, ", "))
	}
	if options.FieldSelector != nil {
		q.Fields = options.FieldSelector
	}
	return q, nil
}
