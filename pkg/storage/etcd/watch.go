// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/winnow-dev/winnow/pkg/storage/cached"
)

// watcher passes the events of a watch on, until the store goes back.
type watcher struct {
	ctx     context.Context
	stop    context.CancelFunc
	expired chan struct{} // closed once by the timeline
	result  chan watch.Event
	store   *store
}

// Expire implements cached.Watch.
func (w *watcher) Expire() { close(w.expired) }

// Stop implements watch.Interface.
func (w *watcher) Stop() { w.stop() }

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

func (w *watcher) run(from watch.Interface) {
	defer close(w.result)
	defer w.stop()
	defer from.Stop()
	defer w.store.timeline.Leave(w)
	for {
		select {
		case <-w.expired:
			status := cached.ErrExpired.Status()
			w.send(watch.Event{Type: watch.Error, Object: &status})
			return
		case event, open := <-from.ResultChan():
			if !open {
				return
			}
			if revision, err := w.store.Versioner().ObjectResourceVersion(event.Object); err == nil {
				w.store.timeline.Saw(w, revision)
			}
			w.send(event)
		}
	}
}

// send waits until the event is taken or nobody wants it any more.
func (w *watcher) send(event watch.Event) {
	select {
	case w.result <- event:
	case <-w.ctx.Done():
	}
}
