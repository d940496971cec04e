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

// Restore replaces the data of etcd by a backup, so that resourceVersions go back too, and waits until the cluster is ready. It restarts
// the API server, whose watch cache would otherwise keep what is gone. The caller restarts other components if necessary.
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
