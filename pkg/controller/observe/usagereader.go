// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/references"
)

// UsageReader reads from the API server, consistently, what refers to an object. It is asked before the object is deleted, because watches may
// be behind. It reads the referrers of the namespace of the object, and those without a namespace.
type UsageReader struct {
	Client *Client
	// Kinds returns the table that has the referrers.
	Kinds func() *kinds.Table
	Clock clock.PassiveClock

	lock     sync.Mutex
	readings map[string]*usageReading // by namespace; "" has the referrers without one
}

// usageReading are all referrers of a namespace.
type usageReading struct {
	began time.Time
	done  chan struct{} // closed when index and err are set
	index *references.Index
	err   error
}

const (
	// usageFor is how long a reading is used, since it began. It bounds how long ago something may have begun to refer to an object that is
	// deleted.
	usageFor = time.Second
	// usageTimeout bounds a reading.
	usageTimeout = 30 * time.Second
	// usageAtOnce is how many resources are listed at a time.
	usageAtOnce = 10
)

// InUse returns what refers to an object, or may; empty if nothing does. resource is that of the object.
func (r *UsageReader) InUse(ctx context.Context, resource, namespace, name string) (string, error) {
	for _, of := range []string{namespace, ""} {
		index, err := r.read(ctx, of)
		if err != nil {
			return "", err
		}
		to := kinds.ToOf(resource)
		if index.Used(to, namespace, name) != references.Unused {
			source, _, _ := index.Example(to, namespace, name)
			return "an object of " + source + " refers to it", nil
		}
	}
	return "", nil
}

// read returns the referrers of a namespace, as they were less than usageFor ago when it was called.
func (r *UsageReader) read(ctx context.Context, namespace string) (*references.Index, error) {
	now := r.Clock.Now()
	r.lock.Lock()
	for of, reading := range r.readings {
		if now.Sub(reading.began) >= usageFor || now.Before(reading.began) {
			delete(r.readings, of)
		}
	}
	reading, ok := r.readings[namespace]
	if !ok {
		reading = &usageReading{began: now, done: make(chan struct{})}
		if r.readings == nil {
			r.readings = map[string]*usageReading{}
		}
		r.readings[namespace] = reading
		go func() {
			defer close(reading.done)
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), usageTimeout) // Others may wait for it.
			defer cancel()
			reading.index, reading.err = r.list(ctx, namespace)
		}()
	}
	r.lock.Unlock()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-reading.done:
		return reading.index, reading.err
	}
}

// list lists all referrers of a namespace.
func (r *UsageReader) list(ctx context.Context, namespace string) (*references.Index, error) {
	table := r.Kinds()
	if table.Undiscovered != "" {
		return nil, errors.New(table.Undiscovered)
	}
	var lock sync.Mutex
	index := references.NewIndex()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(usageAtOnce)
	for _, k := range table.Referrers {
		if k.Namespaced != (namespace != "") {
			continue
		}
		group.Go(func() error {
			err := r.Client.EachReferring(ctx, k, namespace, func(all []engine.Referring) {
				lock.Lock()
				defer lock.Unlock()
				for _, of := range all {
					index.Source(of.Source).Set(of.Referrer, of.Keys)
				}
			})
			if err != nil {
				return fmt.Errorf("listing what may refer to it: %w", err)
			}
			return nil
		})
	}
	return index, group.Wait()
}

// EachReferring calls do with what each object of a resource refers to, in one namespace or with "" in all.
func (c *Client) EachReferring(ctx context.Context, k *kinds.Referrer, namespace string, do func([]engine.Referring)) error {
	list := pager.New(pager.ListPageFunc(selecting(c.Lister(ReferrerReading(k), namespace), k.FieldSelector)))
	return list.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		of, err := referringOf(k, object)
		if err == nil {
			do(of)
		}
		return err
	})
}
