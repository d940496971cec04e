// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import "time"

// Follow tells the engine that this replica is not the leader, so that nobody takes its reports.
func (e *Engine) Follow() {
	e.following = true
	clear(e.dirty)
	clear(e.urgent)
}

// Lead tells the engine that this replica is the leader from now on. All reports that changed while it followed are dirty then.
func (e *Engine) Lead() {
	e.following = false
	e.markDirty("")
	for _, ns := range e.namespaces {
		if ns.dirty {
			e.markDirty(ns.name)
		}
	}
}

// Leading reports whether this replica is the leader.
func (e *Engine) Leading() bool {
	return !e.following
}

// SetLastRun takes in when a controller was last seen to run. It must be called first. If more objects were due by then than the status of
// policies counts, an unseen change made them due: labels and quotas can change while no controller runs.
func (e *Engine) SetLastRun(last time.Time) {
	e.lastRun = last
}
