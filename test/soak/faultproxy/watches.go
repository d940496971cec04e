// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"
)

var errCut = errors.New("the connection was cut")

// watch is the answer to one, which is read as it comes.
type watch struct {
	body        io.ReadCloser
	proxy       *Proxy
	ctx         context.Context // of the request
	resource    string
	noBookmarks bool

	// These are guarded by the lock of the proxy.
	frozen chan struct{} // closed when it goes on; nil if it goes on
	end    error         // what the client reads once it is over
}

// Read implements io.Reader. What arrives while the watch is frozen is held back.
func (w *watch) Read(into []byte) (int, error) {
	n, err := w.body.Read(into)
	for {
		frozen, end := w.state()
		switch {
		case end != nil:
			return 0, end
		case frozen == nil:
			return n, err
		}
		select {
		case <-frozen:
		case <-w.ctx.Done():
			return 0, w.ctx.Err()
		}
	}
}

func (w *watch) state() (frozen chan struct{}, end error) {
	w.proxy.lock.Lock()
	defer w.proxy.lock.Unlock()
	return w.frozen, w.end
}

// Close implements io.Closer.
func (w *watch) Close() error {
	w.proxy.closed(w)
	return w.body.Close()
}

// opened follows a watch that the API server has accepted.
func (p *Proxy) opened(w *watch) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.watches = append(p.watches, w)
	for _, end := range p.gaps[w.resource] {
		end(time.Now())
	}
	delete(p.gaps, w.resource)
}

func (p *Proxy) closed(w *watch) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.thaw(w)
	if i := slices.Index(p.watches, w); i >= 0 {
		p.watches = slices.Delete(p.watches, i, i+1)
		p.gaps[w.resource] = append(p.gaps[w.resource], p.Spans.Begin(w.resource, time.Now()))
	}
}

// thaw is called with the lock.
func (p *Proxy) thaw(w *watch) {
	if w.frozen != nil {
		close(w.frozen)
		w.frozen = nil
	}
}

// cut ends a watch with an error, or with io.EOF as the API server does after some minutes. It is called with the lock.
func (p *Proxy) cut(w *watch, err error) {
	w.end = err
	p.thaw(w)
	go func() { _ = w.body.Close() }() // It ends the Read that waits. It may wait for the lock.
}

// picked are the watches that are open and that a fault concerns. It is called with the lock.
func (p *Proxy) picked(pick int) (out []*watch) {
	var resources []string
	for _, w := range p.watches {
		resources = append(resources, w.resource)
	}
	slices.Sort(resources)
	resources = slices.Compact(resources)
	for _, w := range p.watches {
		if w.end == nil && w.frozen == nil && (pick == 0 || w.resource == resources[pick%len(resources)]) {
			out = append(out, w)
		}
	}
	return out
}

// disturb does to the watches what a fault says.
func (p *Proxy) disturb(f Fault) {
	p.lock.Lock()
	defer p.lock.Unlock()
	watches := p.picked(f.Pick)
	for _, w := range watches {
		p.counts[f.Kind]++
		switch f.Kind {
		case CutWatch:
			p.cut(w, errCut)
		case EndedWatch:
			p.cut(w, io.EOF)
		default:
			w.frozen = make(chan struct{})
			end := p.Spans.Begin(w.resource, time.Now())
			time.AfterFunc(f.For, func() { p.goOn(w, f.Kind, end) })
		}
	}
}

// goOn ends the freezing of a watch.
func (p *Proxy) goOn(w *watch, k Kind, end func(time.Time)) {
	p.lock.Lock()
	defer p.lock.Unlock()
	end(time.Now())
	if w.frozen == nil {
		return
	}
	if k == RewoundWatch {
		p.cut(w, errCut)
	} else {
		p.thaw(w)
	}
}

// dropParameter removes a parameter from a query and leaves the rest as it is.
func dropParameter(query, name string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(query, "&"), func(s string) bool { return strings.HasPrefix(s, name+"=") }), "&")
}
