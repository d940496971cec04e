// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package top reads again and again what policies decide, counts it by namespace, and lays it out for a window.
package top

import (
	"context"
	"slices"
	"time"

	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/pkg/plugin/session"
)

const (
	// sampleMost is how many candidates of a namespace are read for its limits, and othersMost if no status counts some of them.
	sampleMost, othersMost = 20, 250
	// readingMost is how long a reading may take, so that the screen says soon that nobody answers.
	readingMost = 30 * time.Second
)

// Reader makes readings.
type Reader struct {
	statuses  *local.StatusReader
	namespace string
	said      *session.Collected
	history   history
	samples   map[string]sample
}

// NewReader returns a reader of a namespace, or with "" of all. said are the warnings of the servers that statuses asks.
func NewReader(statuses *local.StatusReader, namespace string, said *session.Collected) *Reader {
	return &Reader{statuses: statuses, namespace: namespace, said: said, samples: map[string]sample{}}
}

// sample is what a namespace had when a sample of it was taken last.
type sample struct {
	at       time.Time
	capacity *fullness
}

// Read makes a reading, and takes samples of at most so many namespaces among the first rows.
func (r *Reader) Read(ctx context.Context, now time.Time, rowsShown, most int) (*Document, error) {
	ctx, cancel := context.WithTimeout(ctx, readingMost)
	defer cancel()
	r.said.Reset()
	statuses, err := r.statuses.Read(ctx)
	if err != nil {
		return nil, err
	}
	d := &Document{Time: now.UTC().Truncate(time.Second), Namespace: r.namespace, Rows: usagesOf(statuses)}
	if r.namespace != "" {
		err = r.readNamespace(ctx, d)
	} else {
		sortUsages(d.Rows)
		err = r.takeSamples(ctx, now, d.Rows[:min(rowsShown, len(d.Rows))], most)
	}
	if err != nil {
		return nil, err
	}
	for i := range d.Rows {
		if s, ok := r.samples[d.Rows[i].Namespace]; ok && r.namespace == "" && d.Rows[i].ClusterPolicy == "" {
			d.Rows[i].sampled, d.Rows[i].Capacity = true, s.capacity
		}
	}
	d.backlog = r.history.add(now, statuses, d.Rows)
	d.Total = total(d.Rows)
	d.Incomplete = append(slices.Clone(r.statuses.Notes()), slices.Compact(slices.Sorted(slices.Values(r.said.Texts())))...)
	return d, nil
}

// readNamespace completes the only row.
func (r *Reader) readNamespace(ctx context.Context, d *Document) error {
	if !r.statuses.MaySample() {
		return nil
	}
	candidates, more, err := r.statuses.Sample(ctx, r.namespace, othersMost)
	if err != nil {
		return err
	}
	if len(d.Rows) == 0 {
		d.Rows = []usage{{Namespace: r.namespace}}
	}
	u := &d.Rows[0]
	u.addSample(candidates)
	if u.addOthers(candidates, more); u.Candidates == 0 && len(u.policies) == 0 {
		d.Rows = []usage{}
	}
	return nil
}

// takeSamples looks for limits where that is the longest time ago.
func (r *Reader) takeSamples(ctx context.Context, now time.Time, rows []usage, most int) error {
	if !r.statuses.MaySample() {
		return nil
	}
	var names []string
	for i := range rows {
		if rows[i].ClusterPolicy == "" {
			names = append(names, rows[i].Namespace)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return r.samples[a].at.Compare(r.samples[b].at) })
	for _, name := range names[:min(most, len(names))] {
		candidates, _, err := r.statuses.Sample(ctx, name, sampleMost)
		if err != nil {
			return err
		}
		var u usage
		u.addSample(candidates)
		r.samples[name] = sample{now, u.Capacity}
	}
	return nil
}
