// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/cleanup"
	"github.com/winnow-dev/winnow/pkg/logonce"
	"github.com/winnow-dev/winnow/pkg/storage/cluster"
)

// storagePoll is how often Winnow checks whether an administrator has installed the storage.
const storagePoll = time.Second

// applyStorage selects the storage: the cluster's own API or, if flags name one, an etcd, which needs no Barriers. The gate that it returns
// opens once the storage is installed.
func (o *Options) applyStorage(
	ctx context.Context, generic *genericapiserver.RecommendedConfig,
) (*storageGate, *cleanup.Barriers, error) {
	if o.usesEtcd() {
		return openGate(), nil, nil // Recommended.Etcd applies itself
	}
	o.Recommended.Etcd = nil
	host, err := cluster.NewHost(generic.ClientConfig, o.Service.Namespace)
	if err != nil {
		return nil, nil, err
	}
	barriers := barriersOf(host)
	generic.RESTOptionsGetter = host.RESTOptionsGetter(storageCodec, storageVersioner, gc.MarkUnreadable)
	if !o.ManageStorage {
		config := generic.ClientConfig
		return newStorageGate(func(ctx context.Context) error { return cluster.CheckHost(ctx, config) }), barriers, nil
	}
	const whoAmI = ""
	if err := cluster.EnsureHost(ctx, generic.ClientConfig, ownName, whoAmI); err != nil {
		return nil, nil, fmt.Errorf("cannot prepare the storage in the cluster: %w", err)
	}
	return openGate(), barriers, nil
}

// storageGate is closed until the storage is installed. Until then, this replica is not ready, and its controller does not run. Once open,
// the gate stays open, because a restore of a backup may remove a part of the storage for a moment.
type storageGate struct {
	check  func(context.Context) error
	closed atomic.Pointer[error] // why the gate is closed; nil once it is open
}

func newStorageGate(check func(context.Context) error) *storageGate {
	g := &storageGate{check: check}
	unchecked := errors.New("the storage in the cluster has not been checked yet")
	g.closed.Store(&unchecked)
	return g
}

func openGate() *storageGate { return &storageGate{} }

// await returns once the gate is open, or with the error of ctx. It logs why the gate is closed whenever the reason changes.
func (g *storageGate) await(ctx context.Context) error {
	if g.closed.Load() == nil {
		return nil
	}
	var errs logonce.Errors
	return wait.PollUntilContextCancel(ctx, storagePoll, true, func(ctx context.Context) (bool, error) {
		err := g.check(ctx)
		if err == nil {
			g.closed.Store(nil)
			return true, nil
		}
		errs.Log(ctx, err, "Not ready, and deleting nothing")
		g.closed.Store(&err)
		return false, nil
	})
}

// readiness returns a readiness check that fails with the reason while the gate is closed.
func (g *storageGate) readiness() healthz.HealthChecker {
	return healthz.NamedCheck("storage-installed", func(*http.Request) error {
		if why := g.closed.Load(); why != nil {
			return *why
		}
		return nil
	})
}
