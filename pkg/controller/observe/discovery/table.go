// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"

	"k8s.io/klog/v2"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
)

// ReadTable returns the table of kinds as of now, with these lifecycles. It is for readers that do not follow changes.
func ReadTable(ctx context.Context, r Reader, lifecycles []*v1alpha1.ResourceLifecycle) (*kinds.Table, error) {
	catalog, err := kinds.NewCatalog()
	if err != nil {
		return nil, fmt.Errorf("the built-in lifecycles: %w", err)
	}
	found, err := r.read(ctx, nil)
	if err != nil {
		return nil, err
	}
	users := convertAll(ctx, lifecycles, convert)
	return catalog.Table(found.served, users, kinds.Builtin()).
		WithReferrers(catalog.Referrers(found.listed, users, nil), found.undiscovered()), nil
}

// ReadListed returns which resources can be listed and watched as of now, and why others may be missing; empty if none is.
func ReadListed(ctx context.Context, r Reader) (all []kinds.Listed, undiscovered string, err error) {
	found, err := r.read(ctx, nil)
	if err != nil {
		return nil, "", err
	}
	return found.listed, found.undiscovered(), nil
}

// convertAll returns lifecycles by name. Those that cannot be converted are unreadable.
func convertAll(
	ctx context.Context, all []*v1alpha1.ResourceLifecycle, convert func(*v1alpha1.ResourceLifecycle) (*gc.ResourceLifecycle, error),
) map[string]*gc.ResourceLifecycle {
	out := map[string]*gc.ResourceLifecycle{}
	for _, stored := range all {
		l, err := convert(stored)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Cannot convert a ResourceLifecycle", "name", stored.Name)
			l = unreadable(stored, err)
		}
		out[l.Name] = l
	}
	return out
}
