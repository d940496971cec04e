// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cleanuprecord is the registry of CleanupRecords. The controller stores them as internal objects, and this replica reads them for
// each request. They can be neither watched nor deleted, so the garbage collector, quotas and the deletion of namespaces ignore them.
package cleanuprecord

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/continuetoken"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/permission"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/turns"
)

// Reader reads records.
type Reader interface {
	// Records returns a page of records.
	Records(ctx context.Context, q gc.RecordQuery) (gc.RecordPage, error)
}

var resource = gc.Resource("cleanuprecords")

const (
	// maxPage is how many records a page may have. Requests for more get that many and a token for the rest.
	maxPage = 1000
	// mostReads is how many requests read at once. Each reads up to some megabytes from the cluster.
	mostReads = 4
	// defaultPage is how many records a request without a limit gets.
	defaultPage = 500
)

// REST serves the records.
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

// NewREST serves cleanuprecords. The authorizer answers what callers may list.
func NewREST(reader Reader, authorizer authorizer.Authorizer, clock clock.PassiveClock) *REST {
	return &REST{
		TableConvertor: newTable(clock), reader: reader,
		permissions: permission.Checker{Authorizer: authorizer, Resource: resource, Noun: "record"},
		queue:       turns.New("read", mostReads),
	}
}

// New implements rest.Storage.
func (r *REST) New() runtime.Object { return &gc.CleanupRecord{} }

// Destroy implements rest.Storage.
func (r *REST) Destroy() {}

// NewList implements rest.Lister.
func (r *REST) NewList() runtime.Object { return &gc.CleanupRecordList{} }

// NamespaceScoped implements rest.Scoper.
func (r *REST) NamespaceScoped() bool { return true }

// GetSingularName implements rest.SingularNameProvider.
func (r *REST) GetSingularName() string { return "cleanuprecord" }

// ShortNames implements rest.ShortNamesProvider.
func (r *REST) ShortNames() []string { return []string{"crec"} }

// Get returns the record of an object, by its UID.
func (r *REST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	options := &metainternalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name), Limit: 1}
	for {
		l, err := r.List(ctx, options)
		if err != nil {
			return nil, err
		}
		list := l.(*gc.CleanupRecordList)
		if len(list.Items) > 0 { // The newest, if the object was deleted twice.
			return &list.Items[0], nil
		}
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	warning.AddWarning(ctx, "", fmt.Sprintf("the name of a record is the UID of the deleted object; to ask by the name of the object: "+
		"kubectl get %s -n %s --field-selector %s=jobs.batch/NAME", resource, genericapirequest.NamespaceValue(ctx), gc.FieldObject))
	return nil, apierrors.NewNotFound(resource, name)
}

// List returns the records of resources that the caller may list.
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
	q.MayList = listed.May
	page, err := r.reader.Records(ctx, q)
	if err != nil {
		return nil, apierrors.NewServiceUnavailable(err.Error())
	}
	if options.Limit == 0 && page.Next != nil {
		warning.AddWarning(ctx, "", fmt.Sprintf("the list has the first %d records; use limit and continue for the others", len(page.Items)))
	}
	if denied := listed.Denied(); denied != "" {
		warning.AddWarning(ctx, "", gc.HiddenRecords(denied))
	}
	for _, message := range page.Missing {
		warning.AddWarning(ctx, "", message)
	}
	out := &gc.CleanupRecordList{Items: page.Items}
	if page.Next != nil {
		out.Continue = continuetoken.Encode(*page.Next)
	}
	return out, nil
}

// queryOf returns the query for the options of a request. Its errors are for the caller.
func queryOf(ctx context.Context, options *metainternalversion.ListOptions) (gc.RecordQuery, error) {
	q := gc.RecordQuery{Namespace: genericapirequest.NamespaceValue(ctx), Fields: fields.Everything(), Limit: defaultPage}
	if options.Limit > 0 {
		q.Limit = int(min(options.Limit, maxPage))
	}
	if options.LabelSelector != nil && !options.LabelSelector.Empty() {
		return q, errors.New("records have no labels; use a field selector: " + strings.Join(gc.RecordFields, ", "))
	}
	if options.FieldSelector != nil {
		q.Fields = options.FieldSelector
	}
	for _, r := range q.Fields.Requirements() {
		if r.Field != gc.FieldSince {
			continue
		}
		since, err := time.Parse(time.RFC3339Nano, r.Value)
		if err != nil || r.Operator == selection.NotEquals {
			return q, fmt.Errorf("the field selector must be %s=TIME with a time such as 2006-01-02T15:04:05Z, not %s%s%s",
				gc.FieldSince, r.Field, r.Operator, r.Value)
		}
		q.Since = since
	}
	var err error
	q.After, err = continuetoken.Decode[gc.RecordPosition](options.Continue, "records")
	return q, err
}
