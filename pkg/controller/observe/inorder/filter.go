// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package inorder

import (
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// Filter returns a watch that passes each event of w to pass before its reader gets the event that pass returns; none if pass returns
// false. Unlike watch.Filter, it ends when its reader stops it. Up to ahead events wait for the reader, so that the next ones are decoded
// while it takes in objects.
func Filter(w watch.Interface, ahead int, pass func(watch.Event) (watch.Event, bool)) watch.Interface {
	out := &filtered{Interface: w, events: make(chan watch.Event, ahead), stopped: make(chan struct{})}
	go func() {
		defer close(out.events)
		for e := range w.ResultChan() {
			if out.ended() {
				return
			}
			e, ok := pass(e)
			if !ok {
				continue
			}
			select {
			case out.events <- e:
			case <-out.stopped:
				return
			}
		}
	}()
	return out
}

type filtered struct {
	watch.Interface
	events  chan watch.Event
	stopped chan struct{}
	once    sync.Once
}

// ResultChan implements watch.Interface.
func (w *filtered) ResultChan() <-chan watch.Event { return w.events }

// Stop implements watch.Interface.
func (w *filtered) Stop() {
	w.once.Do(func() { close(w.stopped) })
	w.Interface.Stop()
}

func (w *filtered) ended() bool {
	select {
	case <-w.stopped:
		return true
	default:
		return false
	}
}
