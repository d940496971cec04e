// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// CronJobs are observed for what they mean for their Jobs; no policy can name them.
const CronJobs = "cronjobs.batch"

// needed are the resources that must be observed before an object of a resource may be deleted: its own kind, and those that
// may own it.
var needed = map[string][]string{
	gc.ResourceJobs: {gc.ResourceJobs, CronJobs},
	gc.ResourcePods: {gc.ResourcePods, gc.ResourceJobs},
}

// Observing takes in whether a resource can be listed and watched: why is nil when it can.
func (t *Tracker) Observing(resource string, why error, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, was := t.blind[resource]
	if why != nil {
		t.blind[resource] = why.Error()
	} else {
		delete(t.blind, resource)
	}
	if was == (why != nil) {
		return
	}
	for _, ns := range t.namespaces {
		t.judgeNamespace(ns, now)
	}
}

// blindTo is why objects of a resource cannot be judged now; empty when they can.
func (t *Tracker) blindTo(resource string) string {
	for _, r := range needed[resource] {
		if why, ok := t.blind[r]; ok {
			return r + " cannot be observed: " + why
		}
	}
	return ""
}
