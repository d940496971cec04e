// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/winnow-dev/winnow/test/platforms"
)

// crds installs the custom resources with these names.
func crds(ctx context.Context, names []string) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	all := platforms.All()
	for _, name := range names {
		i := slices.IndexFunc(all, func(r platforms.Resource) bool { return r.Name() == name })
		if i < 0 {
			return fmt.Errorf("package platforms has no resource %q", name)
		}
		if err := platforms.Install(ctx, client, all[i]); err != nil {
			return err
		}
	}
	return nil
}
