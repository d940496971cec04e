// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package winnow

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is what a watch has reported of one object, as the API server has sent it.
type event []byte

// Events are what each watch of one resource has reported, in this order. Watches may differ in the form of their objects.
type Events struct {
	resource string
	of       map[*watchBody][]event
}

// Reported returns what the open watches of a resource have reported so far of objects in whose events this text stands, such as a name.
func (p *Proxy) Reported(resource, text string) Events {
	p.lock.Lock()
	defer p.lock.Unlock()
	out := Events{resource, map[*watchBody][]event{}}
	for w := range p.watches {
		for _, e := range w.reported {
			if w.resource == resource && bytes.Contains(e, []byte(text)) {
				out.of[w] = append(out.of[w], e)
			}
		}
	}
	return out
}

// Replay has each watch report its events once more, and returns after the replica was sent them. It fails if there are none, or if a watch
// has ended meanwhile.
func (e Events) Replay() error {
	if len(e.of) == 0 {
		return fmt.Errorf("no watch has reported any of these events of %s", e.resource)
	}
	for w, events := range e.of {
		for _, again := range events {
			if _, err := w.out.Write(again); err != nil {
				return fmt.Errorf("replaying events of %s: %w", e.resource, err)
			}
		}
	}
	return nil
}

// watchBody is what a watch reports, event by event.
type watchBody struct {
	*io.PipeReader
	out *io.PipeWriter // a write is one whole event
	*body
	ctx  context.Context // of the request
	next func(*bufio.Reader) (event, error)

	reported []event // guarded by the lock of the proxy
}

// openWatch returns the body of a watch that can be frozen and replayed.
func (p *Proxy) openWatch(ctx context.Context, of *body, contentType string) io.ReadCloser {
	w := &watchBody{body: of, ctx: ctx, next: nextLine}
	if strings.Contains(contentType, "protobuf") {
		w.next = nextFrame
	}
	w.PipeReader, w.out = io.Pipe()
	p.lock.Lock()
	defer p.lock.Unlock()
	p.watches[w] = true
	go w.run()
	return w
}

// run passes on events until the watch ends.
func (w *watchBody) run() {
	from, p := bufio.NewReader(w.body), w.proxy
	var err error
	for err == nil {
		var e event
		if e, err = w.next(from); err != nil {
			break
		}
		p.lock.Lock()
		w.reported = append(w.reported, e)
		frozen := p.frozen[w.resource]
		p.lock.Unlock()
		if frozen != nil {
			select {
			case <-frozen:
			case <-w.ctx.Done():
			}
		}
		_, err = w.out.Write(e)
	}
	p.lock.Lock()
	delete(p.watches, w)
	p.lock.Unlock()
	_ = w.out.CloseWithError(err)
}

// Read implements io.Reader.
func (w *watchBody) Read(into []byte) (int, error) { return w.PipeReader.Read(into) }

// Close implements io.Closer.
func (w *watchBody) Close() error {
	_ = w.PipeReader.Close() // It always returns nil.
	return w.body.Close()
}

// nextLine reads an event in JSON.
func nextLine(from *bufio.Reader) (event, error) { return from.ReadBytes('\n') }

// nextFrame reads an event in protobuf, which follows its length in four bytes.
func nextFrame(from *bufio.Reader) (event, error) {
	length := make([]byte, 4)
	if _, err := io.ReadFull(from, length); err != nil {
		return nil, err
	}
	message := make([]byte, binary.BigEndian.Uint32(length))
	_, err := io.ReadFull(from, message)
	return slices.Concat(length, message), err
}
