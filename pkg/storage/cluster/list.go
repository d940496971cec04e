// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// maxPage bounds the size of the pages that are read from the host, so that a list of many objects takes little memory beside the objects.
const maxPage = 500

// GetList implements storage.Interface. The host applies label selectors. The rest of the predicate is applied here, and as many pages of
// the host are read as it takes to fill one.
func (s *store) GetList(ctx context.Context, key string, opts storage.ListOptions, listObject runtime.Object) error {
	at, err := s.locate(key, opts.Recursive)
	if err != nil {
		return err
	}
	items, err := itemsOf(listObject)
	if err != nil {
		return err
	}
	query, err := s.listQuery(at, opts)
	if err != nil {
		return err
	}
	page, err := s.fill(ctx, at, query, opts, items)
	if err != nil {
		return err
	}
	return s.finish(at, opts, page, listObject)
}

// pageResult is the metadata of a page after it is full or the list has ended.
type pageResult struct {
	revision  uint64
	lastKey   string
	more      bool
	remaining *int64 // how many objects the host still has; nil if unknown
}

// fill appends matching objects to items until there are enough or no more.
func (s *store) fill(ctx context.Context, at target, query listQuery, opts storage.ListOptions, items reflect.Value) (pageResult, error) {
	var page pageResult
	before := s.timeline.Now()
	for first := true; ; first = false {
		list, err := s.table.list(ctx, query)
		if err != nil {
			return page, s.translateList(ctx, err, at, opts, first)
		}
		if first {
			if page.revision, err = s.revisionOf(list, query, before); err != nil {
				return page, err
			}
		}
		if at.neverExists {
			return page, nil
		}
		taken, err := s.appendMatching(at, list.Items, opts.Predicate, items)
		if err != nil {
			return page, err
		}
		if taken > 0 {
			page.lastKey = at.keyOf(&list.Items[taken-1])
		}
		page.more = taken < len(list.Items) || list.Continue != ""
		page.remaining = remaining(list, taken)
		if list.Continue == "" || isFull(items, opts.Predicate) {
			return page, nil
		}
		query = query.next(list.Continue)
	}
}

// revisionOf returns the resourceVersion of a list that began at a time. It fails if the list shows that the cluster has gone back.
func (s *store) revisionOf(list *storedList, query listQuery, before uint64) (uint64, error) {
	revision, err := s.versioner.ParseResourceVersion(list.ResourceVersion)
	if err != nil {
		return 0, storage.NewInternalError(err)
	}
	if query.consistent() {
		err = s.timeline.Read(before, revision)
	}
	return revision, err
}

// appendMatching appends the decoded objects that match, until the page is full. It returns how many of stored it has checked.
func (s *store) appendMatching(at target, stored []storedObject, predicate storage.SelectionPredicate, items reflect.Value) (int, error) {
	for i := range stored {
		if isFull(items, predicate) {
			return i, nil
		}
		item := reflect.New(items.Type().Elem())
		object, ok := item.Interface().(runtime.Object)
		if !ok {
			return i, fmt.Errorf("items of a list of %s are no API objects but %v", s.groupResource, item.Type())
		}
		if err := s.decode(&stored[i], at.keyOf(&stored[i]), object); err != nil {
			return i, err
		}
		if matches, err := predicate.Matches(object); err == nil && matches {
			items.Set(reflect.Append(items, item.Elem()))
		}
	}
	return len(stored), nil
}

// finish sets the list's metadata. The continue token has the format of the host's, but is relative to the served key.
func (s *store) finish(at target, opts storage.ListOptions, page pageResult, listObject runtime.Object) error {
	var count int64
	if page.remaining != nil {
		count = *page.remaining + opts.Predicate.Limit
	}
	token, remainingItems, err := storage.PrepareContinueToken(page.lastKey, at.key, int64(page.revision), count, page.more, opts)
	if err != nil {
		return storage.NewInternalError(err)
	}
	if page.remaining == nil {
		remainingItems = nil
	}
	if err := s.versioner.UpdateList(listObject, page.revision, token, remainingItems); err != nil {
		return err
	}
	opts.Predicate.SetShardInfoOnList(listObject)
	return nil
}

// listQuery translates the options of a list for the host.
func (s *store) listQuery(at target, opts storage.ListOptions) (listQuery, error) {
	exactly, _, err := storage.ValidateListOptions(at.key, s.versioner, opts)
	if err != nil {
		return listQuery{}, err
	}
	query := listQuery{location: at.location, labels: labelSelector(opts.Predicate), limit: opts.Predicate.Limit}
	switch {
	case opts.Recursive && opts.Predicate.Continue != "":
		query.continueToken = opts.Predicate.Continue // names its resourceVersion itself
	case exactly > 0:
		query.resourceVersion, query.match = strconv.FormatInt(exactly, 10), metav1.ResourceVersionMatchExact
	case opts.ResourceVersion != "":
		query.resourceVersion, query.match = opts.ResourceVersion, opts.ResourceVersionMatch
	}
	if at.neverExists { // only the resourceVersion is of interest
		query.limit = 1
	}
	return query.paged(), nil
}

// consistent reports whether the host answers with its newest state.
func (q listQuery) consistent() bool { return q.resourceVersion == "" && q.continueToken == "" }

// paged bounds the size of a page. With a resourceVersion and no match, a limit would mean exactly this resourceVersion.
func (q listQuery) paged() listQuery {
	if q.limit > maxPage || q.limit == 0 && (q.resourceVersion == "" || q.match != "") {
		q.limit = maxPage
	}
	return q
}

// next returns the query for the next page, which is larger because this one did not contain enough matching objects.
func (q listQuery) next(token string) listQuery {
	q.continueToken, q.resourceVersion, q.match = token, "", ""
	if q.limit > 0 {
		q.limit = max(q.limit, min(2*q.limit, maxPage))
	}
	return q
}

// translateList translates the error that the client's continue token or resourceVersion has expired. For a token, the error contains a new
// one, which continues with the newest state.
func (s *store) translateList(ctx context.Context, err error, at target, opts storage.ListOptions, first bool) error {
	var status apierrors.APIStatus
	if first && opts.Predicate.Continue != "" && apierrors.IsResourceExpired(err) && errors.As(err, &status) {
		expired := apierrors.NewResourceExpired(continueExpired)
		expired.ErrStatus.Continue = status.Status().Continue
		return expired
	}
	return s.translate(ctx, err, at)
}

func labelSelector(predicate storage.SelectionPredicate) string {
	if predicate.Label == nil || predicate.Label.Empty() {
		return ""
	}
	return predicate.Label.String()
}

// remaining returns how many objects the host has after the first items of this page; nil if unknown, which it is with selectors.
func remaining(list *storedList, taken int) *int64 {
	left := int64(len(list.Items) - taken)
	switch {
	case list.RemainingItemCount != nil:
		left += *list.RemainingItemCount
	case list.Continue != "":
		return nil
	}
	return &left
}

func isFull(items reflect.Value, predicate storage.SelectionPredicate) bool {
	return predicate.Limit > 0 && int64(items.Len()) >= predicate.Limit
}

// itemsOf returns the settable slice of a list, empty but not nil.
func itemsOf(listObject runtime.Object) (reflect.Value, error) {
	pointer, err := meta.GetItemsPtr(listObject)
	if err != nil {
		return reflect.Value{}, err
	}
	items, err := conversion.EnforcePtr(pointer)
	if err != nil || items.Kind() != reflect.Slice {
		return reflect.Value{}, fmt.Errorf("%T has no slice of items", listObject)
	}
	if items.IsNil() {
		items.Set(reflect.MakeSlice(items.Type(), 0, 0))
	}
	return items, nil
}
