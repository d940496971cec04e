// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed assets
var embedded embed.FS

// contentSecurityPolicy allows the page its own files and answers, and nothing else: no script or style in the markup, and no markup from
// strings.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Limits of requests. Answers have no limit, because to read a large cluster takes long.
const (
	bodyMost   = 1 << 20
	headerMost = 16 << 10
	readWithin = 10 * time.Second
	idleMost   = 2 * time.Minute
)

// Server serves the page and its answers below a path that only the caller knows. Other users of the machine reach the port, and so does
// every web page that the caller's browser shows: hence the token, and the checks of where a request comes from.
type Server struct {
	token string
	hosts []string
	mux   *http.ServeMux
}

// New returns a server for the listener's port.
func New(source Source, listener net.Listener) (*Server, error) {
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return nil, err
	}
	assets, err := fs.Sub(embedded, "assets")
	if err != nil {
		return nil, err
	}
	s := &Server{token: rand.Text(), mux: http.NewServeMux()} // It has at least 128 random bits.
	for _, host := range []string{"127.0.0.1", "localhost", "::1"} {
		withPort := net.JoinHostPort(host, port)
		s.hosts = append(s.hosts, withPort)
		if port == "80" { // Browsers leave it out.
			s.hosts = append(s.hosts, strings.TrimSuffix(withPort, ":80"))
		}
	}
	s.mux.Handle("GET /", typed(http.FileServerFS(assets)))
	(&api{source: source, snapshots: newSnapshots(source, time.Now)}).register(s.mux)
	return s, nil
}

// contentTypes are the content types of the files. The table of the machine may have others, with which a browser would not run the
// scripts.
var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

func typed(files http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if kind := contentTypes[path.Ext(r.URL.Path)]; kind != "" {
			w.Header().Set("Content-Type", kind)
		}
		files.ServeHTTP(w, r)
	})
}

// URL is the address of the page.
func (s *Server) URL() string { return fmt.Sprintf("http://%s/%s/", s.hosts[0], s.token) }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	below, status, message := s.check(r)
	if status != 0 {
		http.Error(w, message, status)
		return
	}
	if r.Body != nil {
		r.Body = http.MaxBytesReader(w, r.Body, bodyMost)
	}
	inner := r.Clone(r.Context())
	inner.URL.Path, inner.URL.RawPath = below, ""
	s.mux.ServeHTTP(w, inner)
}

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer") // The address has the token.
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// check returns the path below the token, or with which status and message the request is refused.
func (s *Server) check(r *http.Request) (below string, status int, message string) {
	if !slices.Contains(s.hosts, r.Host) { // Another name that leads here may belong to a web page of somebody else.
		return "", http.StatusForbidden, "This page is served only to a browser on the same machine, at " + s.hosts[0] + "."
	}
	token, below, found := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if !found || subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 {
		return "", http.StatusNotFound, "Nothing is here. Use the whole address that kubectl winnow ui has printed."
	}
	below = "/" + below
	if !sameSite(r, below) {
		return "", http.StatusForbidden, "Requests of other sites are refused."
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return below, 0, ""
	case http.MethodPost:
	default:
		return "", http.StatusMethodNotAllowed, "Use GET or POST."
	}
	if origin := r.Header.Get("Origin"); origin != "http://"+r.Host {
		return "", http.StatusForbidden, "Requests of other origins are refused."
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return "", http.StatusUnsupportedMediaType, "The body must be application/json."
	}
	return below, 0, ""
}

// sameSite reports whether the browser says that this page has sent the request, or that the caller has opened the page. A program that is
// no browser says nothing.
func sameSite(r *http.Request, below string) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin":
		return true
	}
	return below == "/" && r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// Serve serves until the context ends.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := newHTTPServer(ctx, handler)
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func newHTTPServer(ctx context.Context, handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, MaxHeaderBytes: headerMost, ReadHeaderTimeout: readWithin, ReadTimeout: readWithin, IdleTimeout: idleMost,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
}

// Listen listens on a port of this machine; 0 is a free one.
func Listen(ctx context.Context, port uint16) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
}
