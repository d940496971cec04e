// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/winnow-dev/winnow/pkg/controller/freshness"
)

// history has the resource versions of consistent reads that came one after the other, by collection. The zero value has none.
type history struct {
	last     map[string]uint64
	wentBack func(error)
}

// follow adds a consistent read that began after the one before it had ended. If it is older, the store has gone back.
func (h *history) follow(collection, version string) error {
	n, before := freshness.ParseVersion(version), h.last[collection]
	if n == 0 { // It is no number.
		return nil
	}
	if h.last == nil {
		h.last = map[string]uint64{}
	}
	h.last[collection] = n
	if n >= before {
		return nil
	}
	err := fmt.Errorf("the store of %s is at resourceVersion %d, after %d was read: it has gone back, as when a backup is restored",
		collection, n, before)
	h.wentBack(err)
	return err
}

const (
	// lookEvery is how often every replica looks at the clock of the API server, and at the history of the store.
	lookEvery   = 10 * time.Second
	lookTimeout = 5 * time.Second
)

// look runs on every replica until ctx ends. Also a replica that does not lead says whether clocks agree, and must see that the store has
// gone back.
func (c *Controller) look(ctx context.Context) {
	ticker := c.clock.NewTicker(lookEvery)
	defer ticker.Stop()
	seen := history{wentBack: c.wentBack}
	for {
		if err := c.lookOnce(ctx, &seen); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).V(2).Info("Cannot compare clocks with the API server", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

func (c *Controller) lookOnce(ctx context.Context, seen *history) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	var date time.Time
	began := c.clock.Now()
	// A list without a resourceVersion is consistent.
	l, err := c.dated.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).
		List(withDate(ctx, &date), metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	c.replica.CompareClocks(date, began, c.clock.Now())
	return seen.follow("namespaces", l.ResourceVersion)
}

// wentBack has everything observed anew, because the store has gone back.
func (c *Controller) wentBack(why error) {
	c.observer.StartAnew(why)
	c.kinds.StartAnew(why)
}
