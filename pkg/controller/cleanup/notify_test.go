// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestNotificationsDelayNobody: while a receiver is down, objects are deleted, and a replica that ends gives the Lease back before it has
// given up on the receiver.
func TestNotificationsDelayNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer()
		s.job("a")
		stop := start(t, s.controller(t, "replica-1", func(c *Config) {
			c.Notify.URL, c.Notify.CAFile = "https://receiver.invalid", "missing" // so that it opens no connection
		}))
		passes(5 * time.Second)
		s.expect(t, 1, "replica-1")
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			stop()
		}()
		passes(time.Second)
		s.expect(t, 1, "")
		select {
		case <-ended:
			t.Error("it did not try to send what is queued")
		default:
		}
		<-ended
	})
}
