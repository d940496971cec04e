// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/observe/decode"
)

// Page is a part of a list, for readers that list once and do not watch.
type Page struct {
	Facts []*facts.Compact
	// Sizes are how many bytes the API server has sent for each of Facts. Where it sends objects as it stores them, that is what they take in
	// etcd. It is nil if only metadata was requested.
	Sizes []int
	// Remaining is how many objects follow; 0 if the API server does not say so.
	Remaining int64
}

// largePage is how many objects Pages lists at a time: with pages of pageSize, the API server needs twice the time for 100,000 Jobs.
const largePage = 2000

// Pages lists the objects of a namespace, or of all namespaces, page by page. It skips objects that cannot be read.
func (c *Client) Pages(ctx context.Context, r decode.Reading, namespace string, add func(Page)) error {
	var sizes []int
	sized := func(ctx context.Context, options metav1.ListOptions) (list runtime.Object, err error) {
		list, sizes, err = c.listSized(ctx, r, namespace, options)
		return list, err
	}
	return eachPage(ctx, c.pages, bounded(sized), largePage, func(list runtime.Object, m metav1.ListInterface) error {
		page, at := Page{Remaining: ptr.Deref(m.GetRemainingItemCount(), 0)}, -1
		err := meta.EachListItem(list, func(object runtime.Object) error {
			at++
			k, err := decode.Fact(r.Kind, object)
			if err != nil {
				skipped(object, err)
				return nil
			}
			if page.Facts = append(page.Facts, k); at < len(sizes) {
				page.Sizes = append(page.Sizes, sizes[at])
			}
			return nil
		})
		if err == nil {
			add(page)
		}
		return err
	})
}

// listSized lists like Lister, and returns the size of each object as it was sent.
func (c *Client) listSized(
	ctx context.Context, r decode.Reading, namespace string, options metav1.ListOptions,
) (runtime.Object, []int, error) {
	if !r.Whole() {
		list, err := c.lister(r, namespace)(ctx, options)
		return list, nil, err
	}
	client, err := c.restFor(r, "")
	if err != nil {
		return nil, nil, err
	}
	answer := get(client, r.Kind, namespace, options).Do(ctx)
	list, err := answer.Get()
	if err != nil {
		return nil, nil, err
	}
	raw, err := answer.Raw()
	if err != nil {
		return nil, nil, err
	}
	return list, decode.ItemSizes(raw), nil
}
