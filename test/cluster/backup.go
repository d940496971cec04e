// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"os"
	"path/filepath"
)

// Backup copies the data of etcd into a new folder, and waits until the cluster is ready. etcd stands still meanwhile.
func (c *Cluster) Backup(ctx context.Context, dir string) error {
	if err := c.StopComponent(Etcd); err != nil {
		return err
	}
	if err := os.CopyFS(dir, os.DirFS(c.etcdDir())); err != nil {
		return err
	}
	return c.StartComponent(ctx, Etcd)
}

// Restore puts a backup in the place of the data of etcd, so that resourceVersions go back too, and waits until the cluster is ready. The
// API server starts again: its watch cache would go on with what is no more. Of the other components that remember what they have seen, the
// caller decides.
func (c *Cluster) Restore(ctx context.Context, dir string) error {
	for _, name := range []string{APIServer, Etcd} {
		if err := c.StopComponent(name); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(c.etcdDir()); err != nil {
		return err
	}
	if err := os.CopyFS(c.etcdDir(), os.DirFS(dir)); err != nil {
		return err
	}
	if err := c.startComponent(Etcd); err != nil {
		return err
	}
	return c.StartComponent(ctx, APIServer)
}

func (c *Cluster) etcdDir() string { return filepath.Join(c.Dir, "etcd") }
