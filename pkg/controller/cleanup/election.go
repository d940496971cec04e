// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// elect leads once: it waits for the lease, leads for as long as it holds it, and returns when it has lost it or ctx has
// ended. The lease is given back only after the last request has ended. A lost lease does not end the process, which serves
// the API too: everything under way has stopped when elect returns, and no delete starts without a reading that has seen the
// lease in our name.
func (c *Controller) elect(ctx context.Context) error {
	e := c.config.LeaderElection
	config := client(c.config.Cluster, c.config.UserAgent, "")
	config.Timeout = e.RenewDeadline.Duration / 2 // One hung request must not cost the lease.
	leases, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, e.ResourceNamespace, e.ResourceName,
		leases.CoreV1(), leases.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: c.config.Instance})
	if err != nil {
		return err
	}
	electing, stopElecting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopElecting()
	// alone calls one function at a time. A sync.Mutex would stop the time of package synctest.
	turn := make(chan struct{}, 1)
	alone := func(call func()) {
		turn <- struct{}{}
		defer func() { <-turn }()
		call()
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: e.ResourceName, ReleaseOnCancel: true,
		LeaseDuration: e.LeaseDuration.Duration, RenewDeadline: e.RenewDeadline.Duration, RetryPeriod: e.RetryPeriod.Duration,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(elected context.Context) {
				elected, stop := context.WithCancel(elected)
				defer stop()
				defer context.AfterFunc(ctx, stop)()
				alone(func() {
					if elected.Err() == nil {
						c.lead(elected)
					}
				})
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { alone(stopElecting) })()
	elector.Run(electing)
	alone(func() {}) // until it no longer leads
	return nil
}
