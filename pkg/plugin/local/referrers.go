// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/tracker"
)

// listReferrers lists what refers to ConfigMaps and Secrets. Without the permission for a resource it is not known what is unused.
func (w *World) listReferrers(ctx context.Context, from source) error {
	w.referring, w.unreferred = map[*kinds.Referrer][]knowledge.Referring{}, map[*kinds.Referrer]error{}
	var lock sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(listsAtOnce)
	for _, k := range w.kinds.Referrers {
		group.Go(func() error {
			namespace := w.options.Namespace
			if !k.Namespaced {
				namespace = ""
			}
			var all []knowledge.Referring
			err := from.EachReferring(ctx, k, namespace, func(of []knowledge.Referring) { all = append(all, of...) })
			lock.Lock()
			defer lock.Unlock()
			switch {
			case apierrors.IsForbidden(err):
				w.unreferred[k] = errMayNotList
			case err != nil:
				return fmt.Errorf("listing %s: %w", k.Resource(), err)
			}
			w.referring[k] = all
			return nil
		})
	}
	return group.Wait()
}

// addReferrers adds what refers to ConfigMaps and Secrets, if it was listed.
func (w *World) addReferrers(t *tracker.Tracker) {
	if w.referring == nil {
		return
	}
	now := w.options.Now
	long := now.Add(-time.Hour) // As if it had failed for long, so that nothing waits for it.
	var sources []string
	for _, k := range w.kinds.Referrers {
		sources = append(sources, k.Sources()...)
	}
	for _, at := range []time.Time{long, now} {
		t.SetReferrerSources(sources, w.kinds.Undiscovered, at)
	}
	for _, k := range w.kinds.Referrers {
		for _, source := range k.Sources() {
			if err := w.unreferred[k]; err != nil {
				t.ObservingReferrers(source, err, long)
				t.ObservingReferrers(source, err, now)
				continue
			}
			t.BeginReferrers(source, now)
		}
		if w.unreferred[k] != nil {
			continue
		}
		t.SetReferring(w.referring[k], now)
		for _, source := range k.Sources() {
			t.EndReferrers(source, now)
		}
	}
}
