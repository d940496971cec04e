// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

// Watch is a watch under way. What it has not been sent yet waits until it is sent.
type Watch struct {
	store   *Store
	table   *table
	request *Request
	body    *body
	sent    int64 // the revision up to which it has all changes
	initial []*Object
	started bool // whether the initial events are over
	// ready is called when there is something to send, once until it is sent.
	ready   func()
	waiting bool
}

// Resource is what is watched.
func (w *Watch) Resource() schema.GroupResource { return w.table.GroupResource() }

// Request is the request of the watch.
func (w *Watch) Request() *Request { return w.request }

// pump has the watch say that it has something to send. It is called with the lock of the store.
func (w *Watch) pump() {
	if !w.waiting && w.has() {
		w.waiting = true
		w.ready()
	}
}

func (w *Watch) has() bool {
	if !w.started {
		return true
	}
	return w.table.after(w.sent) < len(w.table.log)
}

// Send sends what comes next: initial events, or one change.
func (w *Watch) Send() {
	w.store.lock.Lock()
	defer w.store.lock.Unlock()
	w.waiting = false
	if w.body.isClosed() {
		w.close()
		return
	}
	if w.started {
		w.next()
	} else {
		w.begin()
	}
	w.pump()
}

// begin writes the initial events, or a page of them.
func (w *Watch) begin() {
	page := w.initial
	if most := w.store.PageMost; most > 0 {
		page = page[:min(len(page), most)]
	}
	for _, o := range page {
		w.write(watch.Added, o)
	}
	if w.initial = w.initial[len(page):]; len(w.initial) > 0 {
		return
	}
	w.started = true
	if w.request.sendsInitial() {
		w.bookmark(true)
	}
}

// Begins reports whether there are initial events that were not sent.
func (w *Watch) Begins() bool { return !w.started }

// next writes the next change of what the watch selects.
func (w *Watch) next() {
	for _, e := range w.table.log[w.table.after(w.sent):] {
		w.sent = e.Revision
		is := e.Type != watch.Deleted && w.request.selects(e.Object)
		was := e.Before != nil && w.request.selects(e.Before)
		switch {
		case is && was:
			w.write(watch.Modified, e.Object)
		case is:
			w.write(watch.Added, e.Object)
		case was:
			w.write(watch.Deleted, e.Object)
		default:
			continue
		}
		return
	}
}

// Bookmark sends a bookmark, if the watch is up to date.
func (w *Watch) Bookmark() {
	w.store.lock.Lock()
	defer w.store.lock.Unlock()
	if w.started && !w.has() && w.request.Options.AllowWatchBookmarks && !w.body.isClosed() {
		w.sent = w.store.revision
		w.bookmark(false)
	}
}

// Replay sends again what has changed since a revision, as an API server does that is behind the one before it.
func (w *Watch) Replay(since int64) {
	w.store.lock.Lock()
	defer w.store.lock.Unlock()
	if w.started && !w.body.isClosed() {
		w.sent = min(w.sent, since)
		w.pump()
	}
}

// Cut ends the watch, as the API server does from time to time, or with an error.
func (w *Watch) Cut(err error) {
	w.store.lock.Lock()
	defer w.store.lock.Unlock()
	w.body.end(err)
	w.close()
}

// close forgets the watch.
func (w *Watch) close() {
	for i, other := range w.table.watchers {
		if other == w {
			w.table.watchers = append(w.table.watchers[:i:i], w.table.watchers[i+1:]...)
			return
		}
	}
}

func (w *Watch) bookmark(initial bool) {
	o := &Object{Meta: metav1.ObjectMeta{ResourceVersion: strconv.FormatInt(w.sent, 10)}, Revision: w.sent}
	metadata := map[string]any{"resourceVersion": o.Meta.ResourceVersion}
	if initial {
		metadata["annotations"] = map[string]any{metav1.InitialEventsAnnotationKey: "true"}
		o.Meta.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	o.JSON, _ = json.Marshal(map[string]any{"apiVersion": w.table.GroupVersion().String(), "kind": w.table.Kind, "metadata": metadata})
	w.write(watch.Bookmark, o)
}

func (w *Watch) write(change watch.EventType, o *Object) {
	var out bytes.Buffer
	event := metav1.WatchEvent{Type: string(change)}
	var err error
	if w.request.protobuf {
		event.Object.Raw = o.encoded(w.table.gvk())
		err = streaming.NewEncoder(protobufInfo.StreamSerializer.Framer.NewFrameWriter(&out),
			scheme.Codecs.EncoderForVersion(protobufInfo.StreamSerializer.Serializer, schema.GroupVersion{Version: "v1"})).Encode(&event)
	} else {
		event.Object = runtime.RawExtension{Raw: w.request.render(o)}
		err = json.NewEncoder(&out).Encode(&event)
	}
	if err != nil {
		panic(err)
	}
	w.body.add(out.Bytes())
}

// body is the body of an answer that is not over. Whoever reads it waits in a way that a bubble of synctest knows.
type body struct {
	context.Context

	lock   sync.Mutex
	data   []byte
	err    error
	closed bool
	more   chan struct{}
}

func newBody(ctx context.Context) *body { return &body{Context: ctx, more: make(chan struct{}, 1)} }

func (b *body) wake() {
	select {
	case b.more <- struct{}{}:
	default:
	}
}

func (b *body) add(data []byte) {
	b.lock.Lock()
	b.data = append(b.data, data...)
	b.lock.Unlock()
	b.wake()
}

func (b *body) end(err error) {
	b.lock.Lock()
	if b.err == nil {
		b.err = err
	}
	b.lock.Unlock()
	b.wake()
}

func (b *body) isClosed() bool {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.closed || b.Err() != nil
}

func (b *body) Read(p []byte) (int, error) {
	for {
		b.lock.Lock()
		n := copy(p, b.data)
		b.data = b.data[n:]
		err := b.err
		if b.closed {
			err = io.ErrClosedPipe
		}
		b.lock.Unlock()
		switch {
		case n > 0:
			return n, nil
		case err != nil:
			return 0, err
		}
		select {
		case <-b.more:
		case <-b.Done():
			return 0, b.Err()
		}
	}
}

func (b *body) Close() error {
	b.lock.Lock()
	b.closed = true
	b.lock.Unlock()
	b.wake()
	return nil
}
