// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/winnow-dev/winnow/test/cluster"
)

// pageStarts is how long the page may take until it has an address.
const pageStarts = time.Minute

// prepareHints starts the page, prepares a second terminal, and says how to use them.
func prepareHints(ctx context.Context, c *cluster.Cluster, o options) ([]string, error) {
	address, err := startPage(ctx, c, filepath.Join(o.programs, "kubectl-winnow"))
	if err != nil {
		return nil, err
	}
	if _, _, err := c.Kubectl(ctx, "config", "set-context", "--current", "--namespace", namespace); err != nil {
		return nil, err
	}
	file := o.env
	if file == "" {
		file = filepath.Join(c.Dir, "env")
	}
	env := fmt.Sprintf("export KUBECONFIG='%s'\nexport PATH='%s:%s':\"$PATH\"\n", c.Kubeconfig(), o.programs, filepath.Dir(c.KubectlPath()))
	return []string{
		"In a second terminal:  source " + file,
		"                       " + why,
		"In a browser:          " + address,
	}, os.WriteFile(file, []byte(env), 0o600)
}

// startPage starts the page, which ends with the cluster, and returns its address.
func startPage(ctx context.Context, c *cluster.Cluster, plugin string) (string, error) {
	page, err := c.Run(ctx, "page", plugin, []string{"ui", "--kubeconfig", c.Kubeconfig(), "--namespace", namespace}, nil)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, pageStarts)
	defer cancel()
	ticker := time.NewTicker(tick / 10)
	defer ticker.Stop()
	for {
		log, err := os.ReadFile(page.LogFile)
		if err != nil {
			return "", err
		}
		if address, _, whole := strings.Cut(string(log), "\n"); whole && strings.HasPrefix(address, "http://") {
			return address, nil
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("kubectl winnow ui: %w", ctx.Err())
		case <-page.Done():
			return "", fmt.Errorf("kubectl winnow ui has ended: %s", log)
		case <-ticker.C:
		}
	}
}
