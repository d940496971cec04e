// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"io"
	"math"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

const (
	// pageBytes is how many bytes of a page are read at most, unless the page has one object only. A page takes a few times as much memory
	// while it is decoded.
	pageBytes = 8 << 20
	// firstPage is how many objects the first page has at most, because nothing is known about their sizes. growth is by how much the next
	// page may have more.
	firstPage, growth = 16, 8
	// pagesAtOnce is how many pages a Client reads at the same time, whoever needs them.
	pagesAtOnce = 4
)

// boundedList lists pages that are bounded by bytes: the API server counts only objects, each of which may have more than a megabyte. It
// returns fewer objects than the caller asks for if they are large. A page that turns out too large is not read to its end, and requested
// again with fewer objects.
type boundedList struct {
	list cache.ListWithContextFunc

	lock sync.Mutex
	most int64 // objects of the next page
}

func bounded(list cache.ListWithContextFunc) cache.ListWithContextFunc {
	return (&boundedList{list: list, most: firstPage}).call
}

// call implements cache.ListWithContextFunc. It leaves a list without a limit as it is, and one from the watch cache, which ignores limits.
func (b *boundedList) call(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.Limit == 0 || options.ResourceVersion == "0" {
		return b.list(ctx, options)
	}
	for wanted := options.Limit; ; {
		options.Limit = min(wanted, b.limit())
		answer := &answerSize{most: pageBytes}
		if options.Limit == 1 {
			answer.most = math.MaxInt64
		}
		page, err := b.list(context.WithValue(ctx, answerSizeKey{}, answer), options)
		read, exceeded := answer.get()
		switch {
		case exceeded: // Whatever was decoded is not the whole page.
			b.setLimit(options.Limit / growth)
			continue
		case err != nil:
			return nil, err
		}
		b.setLimit(nextPage(options.Limit, read, meta.LenList(page)))
		return page, nil
	}
}

// nextPage returns how many objects may follow a page of at most so many, which has these bytes and objects: as many as probably need half
// of what may be read.
func nextPage(limit, read int64, objects int) int64 {
	if objects == 0 {
		return limit
	}
	each := max(1, read/int64(objects))
	return min(limit*growth, pageBytes/2/each)
}

func (b *boundedList) limit() int64 {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.most
}

func (b *boundedList) setLimit(n int64) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.most = max(1, n)
}

// answerSize measures the answer to a request, and ends it where it exceeds a size. It travels in the context of the request.
type answerSize struct {
	most int64

	lock     sync.Mutex
	read     int64
	exceeded bool
}

type answerSizeKey struct{}

// get returns how many bytes were read, and whether there were more than may be.
func (a *answerSize) get() (read int64, exceeded bool) {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.read, a.exceeded
}

// start begins to measure the body of a response. Only the last response to a request counts.
func (a *answerSize) start(body io.ReadCloser) io.ReadCloser {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.read, a.exceeded = 0, false
	return &measuredBody{body, a}
}

type measuredBody struct {
	io.ReadCloser
	size *answerSize
}

// Read implements io.Reader. It ends the body without an error where it is too large, because client-go logs errors.
func (m *measuredBody) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	m.size.lock.Lock()
	defer m.size.lock.Unlock()
	if m.size.read += int64(n); m.size.read > m.size.most {
		m.size.exceeded = true
		return 0, io.EOF
	}
	return n, err
}

// measure measures the body of a response, if the context of the request asks for it.
func measure(r *http.Request, body io.ReadCloser) io.ReadCloser {
	if size, ok := r.Context().Value(answerSizeKey{}).(*answerSize); ok {
		return size.start(body)
	}
	return body
}

// pageSlots bounds how many pages are in memory at the same time.
type pageSlots chan struct{}

func newPageSlots(n int) pageSlots { return make(pageSlots, n) }

// take waits until another page may be read. The caller must call done when it does not need the page any more.
func (s pageSlots) take(ctx context.Context) (done func(), err error) {
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
