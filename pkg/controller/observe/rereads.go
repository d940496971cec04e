// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
)

const (
	// rereadEvery is how long after a reread the next one may begin.
	rereadEvery = 10 * time.Second
	// rereadShare limits rereads to one part in so many of the time. How long a reread takes is up to the tenant with the many names.
	rereadShare = 10
)

// rereads reads the referrers of overfull namespaces again whenever that may tell something about objects of other namespaces; see
// usage.Tracker. It returns when ctx ends.
func (o *Observer) rereads(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.Tracker.NeedsReread():
		}
		begun := o.Clock.Now()
		if err := o.reread(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot list what refers to ConfigMaps and Secrets of other namespaces. Until that is known, "+
				"objects that are new are not unused")
		}
		pause := max(rereadEvery, (rereadShare-1)*o.Clock.Since(begun))
		select {
		case <-ctx.Done():
			return
		case <-o.Clock.After(pause):
		}
	}
}

// reread reads the referrers of all overfull namespaces once. The table is read after the tracker has begun: referrers of a resource that
// is added to it later are all listed afterwards.
func (o *Observer) reread(ctx context.Context) error {
	number, namespaces := o.Tracker.BeginReread()
	if number == 0 {
		return nil
	}
	for _, namespace := range namespaces {
		for _, k := range o.Tracker.Kinds().Referrers {
			if !k.Namespaced || k.Reader == nil {
				continue
			}
			err := o.Client.EachReferring(ctx, k, namespace, func(all []knowledge.Referring) { o.Tracker.Reread(all, o.Clock.Now()) })
			if err != nil {
				return explainReferrer(k, err)
			}
		}
	}
	o.Tracker.EndReread(number, o.Clock.Now())
	return nil
}
