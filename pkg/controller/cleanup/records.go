// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/write/records"
)

// newRecords makes what stores and reads records.
func (c *Controller) newRecords(objects dynamic.Interface, listed metadata.Interface) {
	stored := records.Config{
		Client: objects, Metadata: listed, Clock: clock.RealClock{}, Doubt: c.doubtClocks, Namespaces: c.namespacesFrom,
		Retention: c.config.RecordRetention, PerNamespace: c.config.RecordsPerNamespace,
	}
	c.records, c.history = records.NewWriter(stored), &records.Reader{Config: stored}
}

// Records returns a page of records of deleted objects.
func (c *Controller) Records(ctx context.Context, q gc.RecordQuery) (gc.RecordPage, error) {
	return c.history.Records(ctx, q)
}

// namespacesFrom returns the names of the namespaces that exist, from a name on, sorted.
func (c *Controller) namespacesFrom(first string) ([]string, error) {
	if !c.Synced() {
		return nil, errNotSynced
	}
	return c.replica.NamespacesFrom(first), nil
}

// keepRecords writes records until the caller calls stop, which writes what is left. That is after the last deletion, when the Lease is
// given back.
func (c *Controller) keepRecords(ctx context.Context) (stop func()) {
	end := outlasting(ctx, c.records.Run)
	return func() {
		end()
		c.records.Flush(ctx)
	}
}
