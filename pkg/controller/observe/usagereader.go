// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/references"
	"github.com/winnow-dev/winnow/pkg/controller/observe/decode"
)

// UsageReader reads from the API server, consistently, what refers to an object. It is asked before the object is deleted, because watches
// may be behind. It reads the referrers of the namespace of the object, and those without a namespace.
type UsageReader struct {
	Client *Client
	// Kinds returns the table that has the referrers.
	Kinds func() *kinds.Table
	Clock clock.PassiveClock

	lock     sync.Mutex
	readings map[string]*usageReading // by namespace; "" has the referrers without one
}

// usageReading are all referrers of a namespace, and those without one. Both are read at the same time, and can be used for as long: if one
// of two slow readings had to begin again whenever the other has ended, none of them could ever be used.
type usageReading struct {
	done    chan struct{} // closed when everything else is set
	ended   time.Time
	indexes []*references.Index
	err     error
}

const (
	// usageFor is how long a reading is used after it has ended. While it lasts, it is used by all who ask. So something may have begun to
	// refer to an object that is deleted as long ago as the reading took, and usageFor.
	usageFor = time.Second
	// usageTimeout bounds a reading.
	usageTimeout = 30 * time.Second
	// usageAtOnce is how many resources are listed at a time.
	usageAtOnce = 10
)

// InUse returns what refers to an object, or may; empty if nothing does. resource is the object's resource.
func (r *UsageReader) InUse(ctx context.Context, resource, namespace, name string) (string, error) {
	indexes, err := r.read(ctx, namespace)
	if err != nil {
		return "", err
	}
	to := kinds.ToOf(resource)
	for _, index := range indexes {
		r.lock.Lock() // An index remembers examples.
		source, example, _ := index.Example(to, namespace, name)
		r.lock.Unlock()
		switch {
		case source == "":
		case strings.HasPrefix(source, references.Exemptions):
			return example.Name, nil
		case index.Used(to, namespace, name) == references.Used:
			return "an object of " + source + " refers to it", nil
		default:
			return "an object of " + source + " may refer to it", nil
		}
	}
	return "", nil
}

// read returns the referrers of a namespace.
func (r *UsageReader) read(ctx context.Context, namespace string) ([]*references.Index, error) {
	reading := r.reading(ctx, namespace)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-reading.done:
		return reading.indexes, reading.err
	}
}

// reading returns the reading of a namespace that is under way or can still be used, and begins one if there is none.
func (r *UsageReader) reading(ctx context.Context, namespace string) *usageReading {
	r.lock.Lock()
	defer r.lock.Unlock()
	now := r.Clock.Now()
	maps.DeleteFunc(r.readings, func(_ string, reading *usageReading) bool {
		return !reading.ended.IsZero() && (now.Sub(reading.ended) >= usageFor || now.Before(reading.ended))
	})
	if r.readings == nil {
		r.readings = map[string]*usageReading{}
	}
	return r.begin(ctx, namespace)
}

// begin is reading under the lock.
func (r *UsageReader) begin(ctx context.Context, namespace string) *usageReading {
	if reading, ok := r.readings[namespace]; ok {
		return reading
	}
	reading, others := &usageReading{done: make(chan struct{})}, (*usageReading)(nil)
	r.readings[namespace] = reading
	if namespace != "" {
		others = r.begin(ctx, "")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), usageTimeout) // Others may wait for it.
	go func() {
		defer cancel()
		index, err := r.list(ctx, namespace)
		indexes := []*references.Index{index}
		if others != nil {
			<-others.done
			indexes, err = append(indexes, others.indexes...), cmp.Or(err, others.err)
		}
		r.lock.Lock()
		defer r.lock.Unlock()
		reading.indexes, reading.err, reading.ended = indexes, err, r.Clock.Now()
		close(reading.done)
	}()
	return reading
}

// list lists all referrers of a namespace.
func (r *UsageReader) list(ctx context.Context, namespace string) (*references.Index, error) {
	table := r.Kinds()
	if table.Undiscovered != "" {
		return nil, errors.New(table.Undiscovered)
	}
	var lock sync.Mutex
	index := references.NewIndex(references.MaxKeys)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(usageAtOnce)
	for _, k := range table.Referrers {
		if k.Namespaced != (namespace != "") {
			continue
		}
		sources := map[string]*references.Source{}
		for _, name := range k.Sources() {
			sources[name] = index.Source(name)
		}
		group.Go(func() error {
			err := r.Client.EachReferring(ctx, k, namespace, func(all []knowledge.Referring) {
				lock.Lock()
				defer lock.Unlock()
				for _, of := range all {
					sources[of.Source].Set(of.Referrer, of.Keys)
				}
				index.Finish()
			})
			if err != nil {
				return fmt.Errorf("the %s that may refer to it cannot be listed: %w", k.Resource(), explainReferrer(k, err))
			}
			return nil
		})
	}
	return index, group.Wait()
}

// EachReferring calls do with what each object of a resource refers to, in one namespace or with "" in all.
func (c *Client) EachReferring(ctx context.Context, k *kinds.Referrer, namespace string, do func([]knowledge.Referring)) error {
	unstructuredOf := decode.UnstructuredFrom(k)
	return c.EachPage(ctx, decode.ReferrerReading(k), namespace, k.FieldSelector, func(page runtime.Object, _ metav1.ListInterface) error {
		return meta.EachListItem(page, func(object runtime.Object) error {
			u, err := unstructuredOf(object)
			if err != nil {
				return err
			}
			all, _ := decode.ReferringOf(k, u)
			do(all)
			return nil
		})
	})
}
