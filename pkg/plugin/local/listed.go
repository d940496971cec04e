// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/observe/decode"
	"github.com/winnow-dev/winnow/pkg/controller/observe/discovery"
)

// Listed returns which resources can be listed, and why others may be missing; empty if none is.
func (c *Cluster) Listed(ctx context.Context) (all []kinds.Listed, undiscovered string, err error) {
	reader, err := c.discoverer(ctx)
	if err != nil {
		return nil, "", err
	}
	return discovery.ReadListed(ctx, reader)
}

// EachOf lists objects of a namespace, or with "" of all, and calls do with each page before it requests the next one.
func (c *Cluster) EachOf(
	ctx context.Context, r decode.Reading, namespace, fieldSelector string, do func(page runtime.Object, m metav1.ListInterface) error,
) error {
	return c.objects.EachPage(ctx, r, namespace, fieldSelector, do)
}
