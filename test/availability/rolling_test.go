// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"testing"
	"time"
)

// TestRollingRestart: every replica is replaced, as an update of the Deployment does, and then each ends in turn and comes back, as when nodes
// are drained. A client sees no request fail, and every change in a watch.
func TestRollingRestart(t *testing.T) {
	const learned = time.Second // what a Service needs to learn that a replica is not ready
	s := start(t, 2, "--shutdown-delay-duration=3s")
	underLoad(t, func() {
		for _, old := range s.Replicas[:2] {
			_, err := s.AddReplica(whole)
			must(t, err)
			must(t, old.Leave(learned))
		}
		for _, drained := range s.Replicas[2:] {
			must(t, drained.Leave(learned))
			must(t, drained.Start(whole))
		}
	})
}
