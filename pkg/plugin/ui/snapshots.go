// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// anyAge accepts every snapshot.
const anyAge = time.Duration(math.MaxInt64)

// The cluster is read every pauseLeast, and a page that takes long to read at most for a twentieth of the time.
const (
	pauseLeast  = 30 * time.Second
	pauseFactor = 20
)

func (s *snapshot) pause() time.Duration { return max(pauseLeast, pauseFactor*s.took) }

// snapshotsMost is how many namespaces are remembered.
const snapshotsMost = 4

// snapshots remembers what was read, so that pages of one table fit together and cost the cluster nothing. One namespace is read at a time.
type snapshots struct {
	source Source
	now    func() time.Time

	reading chan struct{} // has a token while nobody reads
	lock    sync.Mutex
	latest  map[string]*snapshot // by namespace
}

func newSnapshots(source Source, now func() time.Time) *snapshots {
	s := &snapshots{source: source, now: now, reading: make(chan struct{}, 1), latest: map[string]*snapshot{}}
	s.reading <- struct{}{}
	return s
}

// get returns a snapshot that is at most so old, or that was taken after the call. With an age of 0, the cluster is read in any case;
// otherwise, never more often than the pause allows, whatever pages ask for.
func (s *snapshots) get(ctx context.Context, namespace string, age time.Duration) (*snapshot, error) {
	asked := s.now()
	fresh := func() *snapshot {
		s.lock.Lock()
		defer s.lock.Unlock()
		got, oldest := s.latest[namespace], age
		if got != nil && age > 0 {
			oldest = max(age, got.pause())
		}
		if got != nil && asked.Sub(got.began) <= oldest {
			return got
		}
		return nil
	}
	if got := fresh(); got != nil {
		return got, nil
	}
	select {
	case <-s.reading:
		defer func() { s.reading <- struct{}{} }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if got := fresh(); got != nil {
		return got, nil
	}
	return s.read(ctx, namespace)
}

// read reads a namespace.
func (s *snapshots) read(ctx context.Context, namespace string) (*snapshot, error) {
	out, more := &snapshot{began: s.now()}, 0
	reading, err := s.source.Read(ctx, namespace, func(c *v1alpha1.CleanupCandidate, held bool) {
		if len(out.rows) == rowsMost {
			more++
			return
		}
		out.rows = append(out.rows, rowOf(c, held))
	})
	if err != nil {
		return nil, err
	}
	out.took = s.now().Sub(out.began)
	out.complete(namespace, reading, more)
	s.lock.Lock()
	defer s.lock.Unlock()
	s.latest[namespace] = out
	for len(s.latest) > snapshotsMost {
		oldest := namespace
		for other, o := range s.latest {
			if o.began.Before(s.latest[oldest].began) {
				oldest = other
			}
		}
		delete(s.latest, oldest)
	}
	return out, nil
}
