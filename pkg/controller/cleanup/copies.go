// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/write/copies"
)

// newCopies makes what stores and reads copies. They are removed in the budget of records.
func (c *Controller) newCopies(objects dynamic.Interface, listed metadata.Interface) {
	stored := copies.Config{
		Client: objects, Metadata: listed, Clock: clock.RealClock{}, Doubt: c.doubtClocks, Budget: c.records.Budget(),
		PerNamespace: c.config.CopiesPerNamespace, BytesPerNamespace: c.config.CopyBytesPerNamespace, BytesTotal: c.config.CopyBytesTotal,
	}
	c.copies, c.copied = copies.NewWriter(stored), &copies.Reader{Config: stored}
}

// Copies returns a page of copies of deleted objects, without their contents.
func (c *Controller) Copies(ctx context.Context, q gc.CopyQuery) (gc.CopyPage, error) {
	return c.copied.Copies(ctx, q)
}

// Copy returns a copy of a deleted object, without its content.
func (c *Controller) Copy(ctx context.Context, namespace, name string) (*gc.CleanupCopy, error) {
	return c.copied.Copy(ctx, namespace, name)
}

// CopyContent returns a copy of a deleted object with its content.
func (c *Controller) CopyContent(ctx context.Context, namespace, name string) (*gc.CleanupCopy, error) {
	return c.copied.Content(ctx, namespace, name)
}
