// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faultproxy has a proxy that stands between a client and an API server, and lets go wrong whatever it is told to.
package faultproxy

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Proxy passes requests on, except those that a fault concerns. It has the rights of its transport, whoever asks.
type Proxy struct {
	// Spans are when the client may not have known the newest state.
	Spans Spans

	name    string
	pass    *httputil.ReverseProxy
	server  *http.Server
	stopped chan struct{} // closed once faults are over

	lock       sync.Mutex
	random     *rand.Rand
	armed      []*armed
	offset     time.Duration // of the Date of answers
	offUntil   time.Time
	operations int64
	counts     map[Kind]int
	watches    []*watch                     // that are open
	gaps       map[string][]func(time.Time) // by resource, the spans that begin with the end of a watch
	conns      map[net.Conn]bool            // that are open
	sent       map[string]*Sent             // by audit ID
}

// Sent is a DELETE.
type Sent struct {
	// At is when the client sent it.
	At time.Time
	// Disturbed says that the client did not get the answer right away.
	Disturbed bool
}

// armed is a fault that waits for requests.
type armed struct {
	Fault
	until time.Time
}

// exchange is a request that is under way, and what goes wrong with it.
type exchange struct {
	info  *request.RequestInfo
	kind  Kind // empty if nothing does
	delay time.Duration
	after int // seconds, for Retry-After
	sent  *Sent
}

type exchangeKey struct{}

// New returns a proxy that lets nothing go wrong yet. Audit IDs of its requests begin with its name.
func New(name string, target *url.URL, transport http.RoundTripper, seed uint64) *Proxy {
	p := &Proxy{
		name: name, random: rand.New(rand.NewPCG(seed, 1)), counts: map[Kind]int{}, gaps: map[string][]func(time.Time){},
		conns: map[net.Conn]bool{}, sent: map[string]*Sent{}, stopped: make(chan struct{}),
	}
	p.pass = &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { p.rewrite(r, target) },
		Transport:      transport,
		FlushInterval:  -1, // Watches are read as they come.
		ModifyResponse: p.answered,
		ErrorLog:       log.New(io.Discard, "", 0),
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // The client loses its connection, too.
	}
	return p
}

// Serve answers requests over TLS until Close.
func (p *Proxy) Serve(listener net.Listener, certificate tls.Certificate) {
	p.server = &http.Server{
		Handler: p, ConnState: p.track, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
	}
	go func() { _ = p.server.ServeTLS(listener, "", "") }()
}

// Close cuts all connections.
func (p *Proxy) Close() error { return p.server.Close() }

// Inject lets something go wrong.
func (p *Proxy) Inject(f Fault) {
	switch f.Kind {
	case FrozenWatch, RewoundWatch, CutWatch, EndedWatch:
		p.disturb(f)
		return
	case CutConnections:
		p.cutConnections()
		return
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	until := time.Now().Add(f.For)
	if f.Kind != WrongClock {
		p.armed = append(p.armed, &armed{f, until})
		return
	}
	p.counts[f.Kind]++
	p.offset, p.offUntil = -clockOff, until
	if f.Ahead {
		p.offset = clockOff
	}
}

// Stop ends all faults for good. Watches without bookmarks end, so that they begin again with them.
func (p *Proxy) Stop() {
	p.lock.Lock()
	defer p.lock.Unlock()
	close(p.stopped)
	p.armed, p.offUntil = nil, time.Time{}
	for _, w := range p.watches {
		p.thaw(w)
		if w.noBookmarks && w.end == nil {
			p.cut(w, io.EOF)
		}
	}
}

// Counts returns how many requests there were, and how many requests, watches and connections each kind of fault concerned.
func (p *Proxy) Counts() (operations int64, faults map[Kind]int) {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.operations, maps.Clone(p.counts)
}

// Sent returns the DELETE with an audit ID.
func (p *Proxy) Sent(auditID string) (Sent, bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if s := p.sent[auditID]; s != nil {
		return *s, true
	}
	return Sent{}, false
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := p.admit(r)
	switch x.kind {
	case LostRequest:
		panic(http.ErrAbortHandler)
	case SlowRequest:
		p.pause(r.Context(), x)
	default:
		if refusal := x.refusal(); refusal != nil {
			refuse(w, refusal)
			return
		}
	}
	p.pass.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x)))
}

// admit counts a request, and says what goes wrong with it.
func (p *Proxy) admit(r *http.Request) *exchange {
	x := &exchange{info: infoOf(r)}
	now, query := time.Now(), r.URL.Query()
	p.lock.Lock()
	defer p.lock.Unlock()
	p.operations++
	r.Header.Set("Audit-ID", p.name+"-"+strconv.FormatInt(p.operations, 10))
	if r.Method == http.MethodDelete {
		x.sent = &Sent{At: now}
		p.sent[r.Header.Get("Audit-ID")] = x.sent
	}
	p.armed = slices.DeleteFunc(p.armed, func(a *armed) bool { return a.Requests == 0 || now.After(a.until) })
	for _, a := range p.armed {
		if a.concerns(x.info, query) {
			a.Requests--
			p.counts[a.Kind]++
			x.kind, x.delay, x.after = a.Kind, time.Duration(p.random.Int64N(int64(SlowMost))), 1+p.random.IntN(5)
			if x.sent != nil {
				x.sent.Disturbed = true
			}
			break
		}
	}
	return x
}

// pause delays a request or its answer.
func (p *Proxy) pause(ctx context.Context, x *exchange) {
	if x.info.IsResourceRequest {
		end := p.Spans.Begin(x.info.Resource, time.Now())
		defer func() { end(time.Now()) }()
	}
	select {
	case <-ctx.Done():
	case <-p.stopped:
	case <-time.After(x.delay):
	}
}

func (p *Proxy) rewrite(r *httputil.ProxyRequest, target *url.URL) {
	r.SetURL(target)
	x := r.In.Context().Value(exchangeKey{}).(*exchange)
	if x.info.Verb == "watch" { // Compressed, it would not come as it is sent.
		r.Out.Header.Set("Accept-Encoding", "identity")
	}
	if x.kind == NoBookmarks {
		r.Out.URL.RawQuery = dropParameter(r.Out.URL.RawQuery, "allowWatchBookmarks")
	}
}

// answered changes an answer, or loses it.
func (p *Proxy) answered(response *http.Response) error {
	r := response.Request
	x := r.Context().Value(exchangeKey{}).(*exchange)
	switch x.kind {
	case LostAnswer:
		return errCut
	case SlowAnswer:
		p.pause(r.Context(), x)
	}
	p.shiftDate(response)
	if x.info.Verb == "watch" && response.StatusCode == http.StatusOK {
		w := &watch{
			body: response.Body, proxy: p, ctx: r.Context(), resource: x.info.Resource, noBookmarks: x.kind == NoBookmarks,
		}
		response.Body = w
		p.opened(w)
	}
	return nil
}

func (p *Proxy) shiftDate(response *http.Response) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if at, err := http.ParseTime(response.Header.Get("Date")); err == nil && time.Now().Before(p.offUntil) {
		response.Header.Set("Date", at.Add(p.offset).UTC().Format(http.TimeFormat))
	}
}

// refusal is the error that the API server answers with, nil for none.
func (x *exchange) refusal() *apierrors.StatusError {
	switch x.kind {
	case TooMany, TooManyWait:
		err := apierrors.NewTooManyRequestsError("too many requests, please try again later")
		if x.kind == TooManyWait {
			err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(x.after)}
		}
		return err
	case Unavailable, UnavailableWait:
		err := apierrors.NewServiceUnavailable("apiserver is shutting down")
		if x.kind == UnavailableWait {
			err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(x.after)}
		}
		return err
	case NoDiscovery:
		return apierrors.NewServiceUnavailable("no discovery")
	case InternalError:
		return apierrors.NewInternalError(errors.New("etcdserver: request timed out"))
	case ExpiredPage:
		return apierrors.NewResourceExpired("the provided continue parameter is too old to display a consistent list result")
	case ExpiredWatch:
		return apierrors.NewResourceExpired("too old resource version")
	}
	return nil
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, refusal *apierrors.StatusError) {
	status := refusal.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(status.Details.RetryAfterSeconds))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status) // The client may be gone.
}

// track follows connections.
func (p *Proxy) track(conn net.Conn, state http.ConnState) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if state == http.StateNew {
		p.conns[conn] = true
	}
	if state == http.StateClosed {
		delete(p.conns, conn)
	}
}

func (p *Proxy) cutConnections() {
	p.lock.Lock()
	conns := slices.Collect(maps.Keys(p.conns))
	p.counts[CutConnections] += len(conns)
	for _, s := range p.sent {
		s.Disturbed = s.Disturbed || time.Since(s.At) < SlowMost
	}
	p.lock.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
	}
}
