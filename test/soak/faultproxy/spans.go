// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"slices"
	"sync"
	"time"
)

const (
	// Everything stands for all resources.
	Everything = "*"
	// settle is how long after a watch goes on its reader knows what it has missed.
	settle = 10 * time.Second
	// keepFor is how long a span is remembered after it ended.
	keepFor = 10 * time.Minute
)

// Spans are the times in which who reads through a proxy may not have known the newest state of a resource.
type Spans struct {
	lock sync.Mutex
	all  []*span
}

type span struct {
	resource    string
	from, until time.Time // until is zero while it lasts
}

// Begin begins a span of a resource, or of Everything, which lasts until end is called.
func (s *Spans) Begin(resource string, from time.Time) (end func(time.Time)) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.all = slices.DeleteFunc(s.all, func(old *span) bool { return !old.until.IsZero() && from.Sub(old.until) > keepFor })
	begun := &span{resource: resource, from: from}
	s.all = append(s.all, begun)
	return func(until time.Time) {
		s.lock.Lock()
		defer s.lock.Unlock()
		if begun.until.IsZero() {
			begun.until = until
		}
	}
}

// Behind returns how old the knowledge of the resources may have been at a time; 0 if it was new. Without a resource it is that of all.
func (s *Spans) Behind(at time.Time, resources ...string) time.Duration {
	s.lock.Lock()
	defer s.lock.Unlock()
	var most time.Duration
	for _, x := range s.all {
		concerned := len(resources) == 0 || x.resource == Everything || slices.Contains(resources, x.resource)
		if concerned && !x.from.After(at) && (x.until.IsZero() || x.until.Add(settle).After(at)) {
			most = max(most, at.Sub(x.from))
		}
	}
	return most
}

// Within reports whether there was a time between two times at which the knowledge of the resources may not have been new.
func (s *Spans) Within(from, until time.Time, resources ...string) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return slices.ContainsFunc(s.all, func(x *span) bool {
		concerned := len(resources) == 0 || x.resource == Everything || slices.Contains(resources, x.resource)
		return concerned && !x.from.After(until) && (x.until.IsZero() || x.until.Add(settle).After(from))
	})
}
