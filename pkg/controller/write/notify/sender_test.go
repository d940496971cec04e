// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/pki"
)

// receiver is an HTTPS server on this host.
type receiver struct {
	*httptest.Server
	caFile string
}

func newReceiver(t *testing.T, handle http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{Server: httptest.NewUnstartedServer(handle)}
	r.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	r.StartTLS()
	t.Cleanup(r.Close)
	r.caFile = write(t, "ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})))
	return r
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	rewrite(t, path, content)
	return path
}

func rewrite(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestAnswers: what each answer of the receiver means.
func TestAnswers(t *testing.T) {
	elsewhere := newReceiver(t, func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") })
	answers := func(code int, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, "in words")
		}
	}
	endless := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			for {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return // The sender does not read on.
				}
			}
		}
	}
	for name, c := range map[string]struct {
		handle http.HandlerFunc
		want   string // part of the error; "" for none
		refuse bool
		// suspect: the events may be the reason.
		suspect bool
		wait    string
	}{
		"200":                    {handle: answers(200)},
		"202":                    {handle: answers(202)},
		"204":                    {handle: answers(204)},
		"an endless 200":         {handle: endless(200)},
		"400":                    {handle: answers(400), want: "the receiver answered 400 Bad Request", refuse: true},
		"413":                    {handle: answers(413), want: "413", refuse: true},
		"422":                    {handle: answers(422), want: "422", refuse: true},
		"405":                    {handle: answers(405), want: "405", refuse: true},
		"a wrong path":           {handle: answers(404), want: "404 Not Found: check the path of --notify-url"},
		"a wrong host":           {handle: answers(421), want: "421 Misdirected Request: check the host of --notify-url"},
		"a proxy":                {handle: answers(407), want: "407 Proxy Authentication Required: check the proxy"},
		"too early":              {handle: answers(425), want: "425 Too Early: check whether a proxy"},
		"a wrong token":          {handle: answers(401), want: "401 Unauthorized: check --notify-token-file and --notify-client-cert-file"},
		"forbidden":              {handle: answers(403), want: "check --notify-token-file"},
		"408":                    {handle: answers(408), want: "408", suspect: true},
		"429":                    {handle: answers(429, "Retry-After", "30"), want: "429 Too Many Requests", wait: "30"},
		"500":                    {handle: answers(500), want: "the receiver answered 500 Internal Server Error", suspect: true},
		"503":                    {handle: answers(503, "Retry-After", "7"), want: "503", wait: "7", suspect: true},
		"an endless 500":         {handle: endless(500), want: "500", suspect: true},
		"a status of its own":    {handle: answers(599), want: "the receiver answered 599", suspect: true},
		"redirected elsewhere":   {handle: answers(307, "Location", elsewhere.URL+"/?secret=hunter2"), want: "redirects to " + elsewhere.URL + ". Winnow follows no redirect"},
		"redirected on its host": {handle: answers(302, "Location", "/login"), want: "redirects to https://127.0.0.1:"},
		"redirected to nowhere":  {handle: answers(301), want: "redirects to nowhere"},
		"cut off":                {handle: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, want: "EOF", suspect: true},
		"a header without end": {
			handle: answers(200, "X-Long", strings.Repeat("x", 2*headerMost)), want: "exceeded", suspect: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReceiver(t, c.handle)
			// HTTP/1.1, as most receivers have behind their proxies.
			s := newSender(Config{URL: r.URL + "/?secret=hunter2", CAFile: r.caFile})
			a := s.send(t.Context(), []byte("[]"))
			if (a.err == nil) != (c.want == "") || a.err != nil && !strings.Contains(a.err.Error(), c.want) {
				t.Fatalf("got %v, want %q", a.err, c.want)
			}
			if a.refused != c.refuse || a.suspect != c.suspect || a.wait != c.wait {
				t.Errorf("got %+v", a)
			}
			if a.err != nil && (strings.Contains(a.err.Error(), "hunter2") || strings.Contains(a.err.Error(), "in words")) {
				t.Errorf("got %+v", a)
			}
		})
	}
}

// TestRequest: what a receiver gets.
func TestRequest(t *testing.T) {
	got := make(chan *http.Request, 1)
	body := make(chan string, 1)
	r := newReceiver(t, func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got <- r
		body <- string(b)
	})
	s := newSender(Config{URL: r.URL + "/a?b=c", CAFile: r.caFile, TokenFile: write(t, "token", "secret\n"), UserAgent: "winnow/v1"})
	if a := s.send(t.Context(), []byte(`[{"id":"1"}]`)); a.err != nil {
		t.Fatal(a.err)
	}
	request := <-got
	if request.Method != http.MethodPost || request.URL.String() != "/a?b=c" || <-body != `[{"id":"1"}]` {
		t.Errorf("%s %s", request.Method, request.URL)
	}
	for header, want := range map[string]string{
		"Content-Type": "application/cloudevents-batch+json", "Authorization": "Bearer secret", "User-Agent": "winnow/v1", "Idempotency-Key": "",
	} {
		if got := request.Header.Get(header); got != want {
			t.Errorf("%s: %s, want %q", header, got, want)
		}
	}
}

// TestDead: nobody listens.
func TestDead(t *testing.T) {
	r := newReceiver(t, nil)
	r.Close()
	a := newSender(Config{URL: r.URL + "/hunter2"}).send(t.Context(), nil)
	if a.err == nil || a.refused || a.suspect || !strings.Contains(a.err.Error(), "refused") || strings.Contains(a.err.Error(), "hunter2") {
		t.Errorf("got %+v", a)
	}
}

// TestSlow: a receiver that does not answer, or does not end its answer, is given up.
func TestSlow(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(http.ResponseWriter){
		"without an answer": func(http.ResponseWriter) {},
		"within the header": func(w http.ResponseWriter) { w.WriteHeader(http.StatusEarlyHints) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				begin(w)
				<-r.Context().Done()
				panic(http.ErrAbortHandler) // To return would answer 200, which the sender may still read while it closes the connection.
			})
			s := newSender(Config{URL: r.URL, CAFile: r.caFile})
			s.timeout = 5 * time.Second // A busy machine takes long to connect.
			if a := s.send(t.Context(), []byte("[]")); a.err == nil || a.refused || !strings.Contains(a.err.Error(), "did not answer within 5s") {
				t.Errorf("got %+v", a)
			}
		})
	}
}

// TestSlowBody: the status says enough, so the body is not waited for without end.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	s := newSender(Config{URL: r.URL, CAFile: r.caFile})
	s.timeout = 5 * time.Second // The body takes all of it.
	if a := s.send(t.Context(), []byte("[]")); a.err != nil {
		t.Errorf("got %v", a.err)
	}
}

// TestWrongCertificate: the error says what to do, and the request is repeated. Nothing is sent, and the token least of all.
func TestWrongCertificate(t *testing.T) {
	r := newReceiver(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
	other := authority(t)
	byName := strings.Replace(r.URL, "127.0.0.1", "localhost", 1)
	for name, c := range map[string]struct{ url, caFile, want string }{
		"signed by an unknown authority": {r.URL, "", "signed by unknown authority. If a private authority signed it, set --notify-ca-file"},
		"signed by another authority":    {r.URL, write(t, "ca.crt", string(other.CertPEM())), "--notify-ca-file must contain the authority that signed it"},
		"of another host":                {byName, r.caFile, "not localhost"},
		"none, but http":                 {strings.Replace(httpServer(t), "http:", "https:", 1), "", "server gave HTTP response to HTTPS client"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newSender(Config{URL: c.url, CAFile: c.caFile, TokenFile: write(t, "token", "secret")}).send(t.Context(), []byte("[]"))
			if a.err == nil || a.refused || a.suspect || !strings.Contains(a.err.Error(), c.want) {
				t.Errorf("got %+v, want %q", a, c.want)
			}
		})
	}
}

func httpServer(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }))
	t.Cleanup(s.Close)
	return s.URL
}

func authority(t *testing.T) *pki.Authority {
	t.Helper()
	a, err := pki.NewAuthority("test", time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestRenewedFiles: token, authorities and client certificate are read again, as Kubernetes replaces them in a running Pod.
func TestRenewedFiles(t *testing.T) {
	var mu sync.Mutex
	var tokens, clients []string
	r := newReceiver(t, func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		tokens = append(tokens, r.Header.Get("Authorization"))
		clients = append(clients, r.TLS.PeerCertificates[0].Subject.CommonName)
	})
	ours := authority(t)
	token, caFile := write(t, "token", "old"), write(t, "ca.crt", string(ours.CertPEM()))
	cert, key := write(t, "tls.crt", ""), write(t, "tls.key", "")
	issue := func(name string) {
		certPEM, keyPEM, err := ours.Issue(client(name))
		if err != nil {
			t.Fatal(err)
		}
		rewrite(t, cert, string(certPEM))
		rewrite(t, key, string(keyPEM))
	}
	s := newSender(Config{URL: r.URL, CAFile: caFile, TokenFile: token, ClientCertFile: cert, ClientKeyFile: key})
	send := func(want string) {
		t.Helper()
		if a := s.send(t.Context(), []byte("[]")); (a.err == nil) != (want == "") || a.err != nil && (a.refused || !strings.Contains(a.err.Error(), want)) {
			t.Errorf("got %+v, want %q", a, want)
		}
	}
	send("--notify-client-cert-file: " + cert + " is empty")
	issue("first")
	send("not trusted")
	content, err := os.ReadFile(r.caFile)
	if err != nil {
		t.Fatal(err)
	}
	rewrite(t, caFile, string(content))
	send("")
	rewrite(t, token, "new\n")
	send("")
	issue("second")
	send("")
	rewrite(t, token, "two\nlines")
	send("more than one line")
	rewrite(t, token, "  ")
	send("--notify-token-file: " + token + " is empty")
	if err := os.Remove(token); err != nil {
		t.Fatal(err)
	}
	send("--notify-token-file: open " + token)
	rewrite(t, token, "new")
	rewrite(t, key, "no key")
	send("--notify-client-cert-file and --notify-client-key-file: ")
	rewrite(t, caFile, "no certificate")
	send("--notify-ca-file contains no certificate in PEM")
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"Bearer old", "Bearer new", "Bearer new"}; !slices.Equal(tokens, want) {
		t.Errorf("tokens %q, want %q", tokens, want)
	}
	if want := []string{"first", "first", "second"}; !slices.Equal(clients, want) {
		t.Errorf("clients %q, want %q", clients, want)
	}
}

func client(name string) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

// TestEnded: what is not sent before the process ends is no timeout of the receiver.
func TestEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a := newSender(Config{URL: "https://127.0.0.1:1"}).send(ctx, nil); a.err == nil || strings.Contains(a.err.Error(), "did not answer") {
		t.Errorf("got %v", a.err)
	}
}
