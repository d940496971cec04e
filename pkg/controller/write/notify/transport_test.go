// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// TestExpiredCertificate: the error says so, with the same text each time.
func TestExpiredCertificate(t *testing.T) {
	ours := authority(t)
	old := client("receiver")
	old.NotBefore, old.NotAfter = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	old.IPAddresses, old.ExtKeyUsage = []net.IP{net.IPv4(127, 0, 0, 1)}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	certPEM, keyPEM, err := ours.Issue(old)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }))
	r.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	r.StartTLS()
	t.Cleanup(r.Close)
	a := newSender(Config{URL: r.URL, CAFile: write(t, "ca.crt", string(ours.CertPEM()))}).send(t.Context(), []byte("[]"))
	want := "the certificate of the receiver has expired, or is not valid yet: it is for 2026-01-01T00:00:00Z to 2026-02-01T00:00:00Z. " +
		"Renew it, or correct the clock of the node"
	if a.err == nil || a.err.Error() != want || a.refused || a.suspect {
		t.Errorf("got %+v", a)
	}
}

// TestTransport: a connection that is broken in a way that this host does not notice is not used for ever.
func TestTransport(t *testing.T) {
	var mu sync.Mutex
	connections := map[string]bool{}
	r := newReceiver(t, func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		connections[r.RemoteAddr] = true
	})
	s := newSender(Config{URL: r.URL, CAFile: r.caFile})
	for range 2 { // Connections are used again,
		if a := s.send(t.Context(), []byte("[]")); a.err != nil {
			t.Fatal(a.err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if a := s.send(ended, []byte("[]")); a.err == nil { // but not after an attempt without an answer.
		t.Fatal("it was sent")
	}
	if a := s.send(t.Context(), []byte("[]")); a.err != nil {
		t.Fatal(a.err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(connections) != 2 {
		t.Errorf("%d connections, want 2", len(connections))
	}
	transport := s.client.Transport.(*http.Transport)
	if h := transport.HTTP2; h == nil || h.SendPingTimeout == 0 || h.PingTimeout == 0 || h.WriteByteTimeout == 0 {
		t.Errorf("HTTP/2 without pings: %+v", h)
	}
	if transport.TLSHandshakeTimeout == 0 || transport.ResponseHeaderTimeout == 0 || transport.DialContext == nil {
		t.Error("a timeout is missing")
	}
}
