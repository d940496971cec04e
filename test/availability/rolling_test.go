// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/winnow-dev/winnow/test/winnow"
)

// TestRollingRestart: every replica is replaced, as an update of the Deployment does, and then each ends before another one replaces it, as when
// nodes are drained. A client sees no request fail, and every change in a watch.
func TestRollingRestart(t *testing.T) {
	const (
		learned = time.Second       // what a Service needs to learn that a replica is not ready
		grace   = 150 * time.Second // of artifacts/install
		delay   = "--shutdown-delay-duration=95s"
	)
	s := start(t, 2, delay)
	var leaving errgroup.Group
	leave := func(r *winnow.Replica) { leaving.Go(func() error { return r.Leave(learned, grace) }) }
	add := func(flags ...string) {
		_, err := s.AddReplica(whole, flags...)
		must(t, err)
	}
	underLoad(t, func() {
		for _, old := range s.Replicas[:2] {
			add()
			leave(old)
		}
		for _, drained := range s.Replicas[2:] {
			leave(drained)
			add("--shutdown-delay-duration=0s") // It ends with the test.
		}
		must(t, leaving.Wait())
	})
}
