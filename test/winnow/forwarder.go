// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package winnow

import (
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// dialTimeout is longer than a busy machine stands still. A replica that does not run refuses connections at once.
const dialTimeout = 30 * time.Second

// forwarder passes TCP connections on to backends in turn, as a Service does to the Pods that are ready.
type forwarder struct {
	listener net.Listener

	lock     sync.Mutex
	backends []string
	next     int
	open     map[net.Conn]string // by connection, the backend that it goes to
}

func newForwarder() (*forwarder, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &forwarder{listener: listener, open: map[net.Conn]string{}}
	go f.serve()
	return f, nil
}

func (f *forwarder) port() int { return f.listener.Addr().(*net.TCPAddr).Port }

func (f *forwarder) add(backend string) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if !slices.Contains(f.backends, backend) {
		f.backends = append(f.backends, backend)
	}
}

// drain opens no new connection to the backend, and keeps those that there are.
func (f *forwarder) drain(backend string) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.backends = slices.DeleteFunc(f.backends, func(b string) bool { return b == backend })
}

// remove also cuts the connections to the backend.
func (f *forwarder) remove(backend string) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.backends = slices.DeleteFunc(f.backends, func(b string) bool { return b == backend })
	for conn, b := range f.open {
		if b == backend {
			_ = conn.Close()
		}
	}
}

func (f *forwarder) close() error {
	err := f.listener.Close()
	f.lock.Lock()
	defer f.lock.Unlock()
	for conn := range f.open {
		_ = conn.Close()
	}
	return err
}

func (f *forwarder) serve() {
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return // closed
		}
		go f.forward(conn)
	}
}

func (f *forwarder) forward(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, backend := f.dial()
	for server != nil && !f.track(server, backend) {
		_ = server.Close()
		server, backend = f.dial()
	}
	if server == nil {
		return
	}
	defer func() { _ = server.Close() }()
	defer f.forget(server)
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
}

// dial tries every backend once, beginning with the next in turn.
func (f *forwarder) dial() (net.Conn, string) {
	f.lock.Lock()
	backends := slices.Clone(f.backends)
	f.next++
	first := f.next
	f.lock.Unlock()
	for i := range backends {
		backend := backends[(first+i)%len(backends)]
		if conn, err := net.DialTimeout("tcp", backend, dialTimeout); err == nil {
			return conn, backend
		}
	}
	return nil, ""
}

// track is false when the backend was removed meanwhile.
func (f *forwarder) track(conn net.Conn, backend string) bool {
	f.lock.Lock()
	defer f.lock.Unlock()
	if !slices.Contains(f.backends, backend) {
		return false
	}
	f.open[conn] = backend
	return true
}

func (f *forwarder) forget(conn net.Conn) {
	f.lock.Lock()
	defer f.lock.Unlock()
	delete(f.open, conn)
}
