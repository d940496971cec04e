// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/serverdate"
)

// history has the resource versions of consistent reads that came one after the other, by collection.
type history struct {
	// newest returns the highest resource version of a collection in memory, as watches may have reported more than was read before, and how
	// often everything was observed anew.
	newest   func(freshness.Collection) (version uint64, anew int)
	wentBack func(error)

	last map[freshness.Collection]uint64
	anew int // that last is of
}

func newHistory(newest func(freshness.Collection) (version uint64, anew int), wentBack func(error)) history {
	return history{newest: newest, wentBack: wentBack, last: map[freshness.Collection]uint64{}}
}

// begin must be called before each consistent read of a collection. The read cannot be older than what is known by now. If everything was
// observed anew, older versions no longer count: that the store has gone back is known already.
func (h *history) begin(c freshness.Collection) {
	version, anew := h.newest(c)
	if anew != h.anew {
		clear(h.last)
		h.anew = anew
	}
	h.last[c] = max(h.last[c], version)
}

// follow adds the consistent read that followed the last call of begin. If it is older than what was known then, the store has gone back.
func (h *history) follow(c freshness.Collection, version string) error {
	n, before := freshness.ParseVersion(version), h.last[c]
	if _, anew := h.newest(c); n == 0 || anew != h.anew { // It is no number, or what was known then is forgotten.
		return nil
	}
	h.last[c] = n
	if n >= before {
		return nil
	}
	err := fmt.Errorf("the store of %s is at resourceVersion %d, after %d was seen: it has gone back, as when a backup is restored",
		c, n, before)
	h.wentBack(err)
	return err
}

const (
	// lookEvery is how often every replica looks at the clock of the API server, and at the history of the store.
	lookEvery   = 10 * time.Second
	lookTimeout = 5 * time.Second
)

// keepLooking runs on every replica until ctx ends. Also a replica that does not lead says whether clocks agree, and must see that the
// store has gone back.
func (c *Controller) keepLooking(ctx context.Context, seen *history) {
	ticker := c.clock.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			c.look(ctx, seen)
		}
	}
}

// look looks once. If the API server does not answer in time, clocks stay as they were, in agreement or in doubt.
func (c *Controller) look(ctx context.Context, seen *history) {
	if err := c.lookOnce(ctx, seen); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).V(2).Info("Cannot compare clocks with the API server", "err", err)
	}
}

func (c *Controller) lookOnce(ctx context.Context, seen *history) error {
	seen.begin(freshness.Namespaces)
	version, _, err := c.compareClocks(ctx)
	if err != nil {
		return err
	}
	if err := seen.follow(freshness.Namespaces, version); err != nil || c.policyStore == nil {
		return err
	}
	return c.lookAtPolicyStore(ctx, seen)
}

// lookAtPolicyStore looks at the store of policies if it is not that of the cluster. A standby reads it for no other reason.
func (c *Controller) lookAtPolicyStore(ctx context.Context, seen *history) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	collections := []freshness.Collection{freshness.Policies, freshness.ClusterPolicies} // They have the versions of one store.
	for _, collection := range collections {
		seen.begin(collection)
	}
	version, err := c.policyStore(ctx)
	if err != nil {
		return err
	}
	for _, collection := range collections {
		err = errors.Join(err, seen.follow(collection, version))
	}
	return err
}

// compareClocks compares the clock of the API server with the clock here, and returns the resource version of a consistent read. dated is
// false if the answer does not say what time it is.
func (c *Controller) compareClocks(ctx context.Context) (version string, dated bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	var date time.Time
	began := c.clock.Now()
	// A list without a resourceVersion is consistent.
	l, err := c.dated.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).
		List(serverdate.With(ctx, &date), metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", false, err
	}
	c.replica.CompareClocks(date, began, c.clock.Now())
	return l.ResourceVersion, !date.IsZero(), nil
}

// doubtClocks compares clocks, and reports whether they are in doubt. They are too if they cannot be compared.
func (c *Controller) doubtClocks(ctx context.Context) bool {
	_, dated, err := c.compareClocks(ctx)
	return err != nil || !dated || c.replica.ClockInDoubt()
}

// wentBack has everything observed anew, because the store has gone back.
func (c *Controller) wentBack(why error) {
	c.observer.StartAnew(why)
	c.kinds.StartAnew(why)
}
