// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"os"
	"path/filepath"
	"slices"
)

// Backup copies the data of each etcd into a new folder, and waits until the cluster is ready. Each etcd stands still meanwhile.
func (c *Cluster) Backup(ctx context.Context, dir string) error {
	etcds := []string{Etcd}
	if c.options.OwnEtcd {
		etcds = append(etcds, OwnEtcd)
	}
	for _, name := range etcds {
		if err := c.StopComponent(name); err != nil {
			return err
		}
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(c.etcdDir(name))); err != nil {
			return err
		}
		if err := c.startComponent(name); err != nil {
			return err
		}
	}
	return c.waitReady(ctx, apiServerReady, namespacesReady, c.nodesReady)
}

// Restore replaces the data of these etcds by a backup, so that resourceVersions go back too, and waits until the cluster is ready. If Etcd
// is one of them, it restarts the API server, whose watch cache would otherwise keep what is gone. The caller restarts other components if
// necessary.
func (c *Cluster) Restore(ctx context.Context, dir string, etcds ...string) error {
	stopped := slices.Clone(etcds)
	if slices.Contains(etcds, Etcd) {
		stopped = append(stopped, APIServer)
	}
	for _, name := range slices.Backward(stopped) {
		if err := c.StopComponent(name); err != nil {
			return err
		}
	}
	for _, name := range etcds {
		if err := os.RemoveAll(c.etcdDir(name)); err != nil {
			return err
		}
		if err := os.CopyFS(c.etcdDir(name), os.DirFS(filepath.Join(dir, name))); err != nil {
			return err
		}
	}
	for _, name := range stopped {
		if err := c.startComponent(name); err != nil {
			return err
		}
	}
	return c.waitReady(ctx, apiServerReady, namespacesReady, c.nodesReady)
}

func (c *Cluster) etcdDir(name string) string { return filepath.Join(c.Dir, name) }
