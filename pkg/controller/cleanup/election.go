// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	componentbaseconfig "k8s.io/component-base/config"
	"k8s.io/utils/clock"
)

// sparing is a lock that renews the Lease less often than the elector of client-go asks. The elector renews its Lease as often as others
// look for a free one: Winnow wants the looks soon, and each renewal is a write to etcd.
type sparing struct {
	resourcelock.Interface
	clock clock.PassiveClock
	spare time.Duration
	// renewed is when the Lease was last written; zero if it was read since, or if the last write failed.
	renewed time.Time
	holder  string // by the last read
}

// spareOf returns for how long a renewal is enough. A leader that cannot renew stops a deadline after the elector last thought that it had,
// which is up to that much later, and must be before the Lease ends, which counts whole seconds.
func spareOf(e *componentbaseconfig.LeaderElectionConfiguration) time.Duration {
	return (e.LeaseDuration.Duration.Truncate(time.Second) - e.RenewDeadline.Duration) / 3
}

func (s *sparing) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := s.Interface.Get(ctx)
	if s.renewed, s.holder = (time.Time{}), ""; err == nil {
		s.holder = record.HolderIdentity
	}
	return record, raw, err
}

// Update writes the Lease, or does nothing if this replica wrote it a moment ago and has not read it since, as before it takes the Lease or
// gives it back. It does not give back what another replica has taken meanwhile: the elector itself would.
func (s *sparing) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	now := s.clock.Now()
	givesBack := record.HolderIdentity == ""
	if now.Sub(s.renewed) < s.spare || givesBack && s.holder != s.Identity() {
		return nil
	}
	s.renewed = time.Time{}
	err := s.Interface.Update(ctx, record)
	if err == nil {
		s.renewed = now
	}
	return err
}

// lastLed is when the lease was last renewed, by whomever; zero when there is none yet.
func (c *Controller) lastLed(ctx context.Context) (time.Time, error) {
	e := c.config.LeaderElection
	if !e.LeaderElect {
		return time.Time{}, nil
	}
	lease, err := c.cluster.CoordinationV1().Leases(e.ResourceNamespace).Get(ctx, e.ResourceName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && lease.Spec.RenewTime == nil {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	return lease.Spec.RenewTime.Time, nil
}

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
		Lock: &sparing{Interface: lock, clock: c.clock, spare: spareOf(&e)}, Name: e.ResourceName, ReleaseOnCancel: true,
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
