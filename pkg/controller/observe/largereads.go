// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"io"
	"net/http"
	"sync"
)

// largeReads reads bodies in larger pieces than a watch does, which reads one object at a time. Over HTTP/2, each read may send a
// WINDOW_UPDATE frame to the server, which costs more than decoding the object.
type largeReads struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l largeReads) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = measure(r, &readAhead{ReadCloser: resp.Body})
	}
	return resp, err
}

// readSize is how much of a body is read ahead at most. A read returns what has arrived, and does not wait for more.
const readSize = 64 << 10

// readBuffers contain what was read ahead.
var readBuffers = sync.Pool{New: func() any { return new([readSize]byte) }}

// readAhead is a body that is read ahead. It has a buffer only while something is in it, because there may be hundreds of watches, which
// mostly wait.
type readAhead struct {
	io.ReadCloser
	more   bool            // the last read has filled all that it could, so there may be more
	buffer *[readSize]byte // nil if nothing was read ahead
	unread []byte          // of buffer
	err    error           // after unread
}

// Read implements io.Reader.
func (r *readAhead) Read(p []byte) (int, error) {
	if r.buffer == nil && !r.more {
		n, err := r.ReadCloser.Read(p)
		r.more = n == len(p)
		return n, err
	}
	if r.buffer == nil {
		r.buffer = readBuffers.Get().(*[readSize]byte)
		var n int
		n, r.err = r.ReadCloser.Read(r.buffer[:])
		r.unread = r.buffer[:n]
	}
	n := copy(p, r.unread)
	if r.unread = r.unread[n:]; len(r.unread) > 0 {
		return n, nil
	}
	readBuffers.Put(r.buffer)
	r.buffer, r.unread, r.more = nil, nil, false // An empty unread would keep the buffer alive, too.
	return n, r.err
}
