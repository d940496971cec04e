// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
)

// leaseCheck confirms that the Lease names this replica. It is not safe for concurrent use.
type leaseCheck struct {
	clock clock.PassiveClock
	// read fails if the Lease, read consistently, does not name this replica.
	read  func(context.Context) error
	began time.Time // when the last read began that did not fail
	// err is why the last read has failed, and failed when.
	err    error
	failed time.Time
}

// leaseFailedFor is for how long a read that has failed stands for others, so that ten writes do not wait for ten reads.
const leaseFailedFor = 100 * time.Millisecond

// confirm fails unless a read that began less than freshness.For ago has seen that the Lease names this replica.
func (l *leaseCheck) confirm(ctx context.Context) error {
	switch {
	case l.valid(l.began):
		return nil
	case l.err != nil && l.clock.Since(l.failed) < leaseFailedFor:
		return l.err
	}
	began := l.clock.Now()
	if l.err = wrap("lease", l.see(ctx, began)); l.err != nil {
		l.failed = l.clock.Now()
		return l.err
	}
	l.began = began
	return nil
}

// see reads, and fails if that has taken so long that it confirms nothing.
func (l *leaseCheck) see(ctx context.Context, began time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := l.read(ctx); err != nil {
		return err
	}
	if !l.valid(began) {
		return errSlow
	}
	return nil
}

func (l *leaseCheck) valid(began time.Time) bool { return l.clock.Since(began) < freshness.For }

// sendOnce has client-go send a request no second time, however the server answers: what was confirmed for the first may no longer be true.
func sendOnce(c *rest.Config) *rest.Config {
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return once{next} })
	return c
}

type once struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper. client-go waits as long as this header says, and sends the request again.
func (o once) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := o.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Header.Del("Retry-After")
	}
	return response, err
}
