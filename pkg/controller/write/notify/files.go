// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// files are the contents of the files that flags name.
type files struct{ token, ca, cert, key string }

// read reads the files. Kubernetes replaces the files of a Secret all at once, so cert and key fit together.
func (s *sender) read() (files, error) {
	var out files
	for _, f := range []struct {
		flag, path string
		into       *string
	}{
		{"--notify-token-file", s.TokenFile, &out.token},
		{"--notify-ca-file", s.CAFile, &out.ca},
		{"--notify-client-cert-file", s.ClientCertFile, &out.cert},
		{"--notify-client-key-file", s.ClientKeyFile, &out.key},
	} {
		if f.path == "" {
			continue
		}
		content, err := os.ReadFile(f.path)
		if err != nil {
			return files{}, fmt.Errorf("%s: %w", f.flag, err)
		}
		if *f.into = strings.TrimSpace(string(content)); *f.into == "" {
			return files{}, fmt.Errorf("%s: %s is empty", f.flag, f.path)
		}
	}
	if strings.ContainsAny(out.token, "\r\n") {
		return files{}, fmt.Errorf("--notify-token-file: %s has more than one line, want one with the token", s.TokenFile)
	}
	return out, nil
}

// refresh reads the files again, and makes a new client if authorities or certificates have changed. If a file cannot be read, it fails:
// a request must not be sent with less than it should have.
func (s *sender) refresh() error {
	now, err := s.read()
	if err != nil {
		return err
	}
	token := now.token
	if now.token = s.files.token; s.client != nil && now == s.files {
		s.files.token = token
		return nil
	}
	now.token = token
	config, err := tlsConfig(now)
	if err != nil {
		return err
	}
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
	s.files, s.client = now, newClient(config)
	return nil
}

func tlsConfig(f files) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.ca != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(f.ca)) {
			return nil, errors.New("--notify-ca-file contains no certificate in PEM")
		}
	}
	if f.cert != "" {
		pair, err := tls.X509KeyPair([]byte(f.cert), []byte(f.key))
		if err != nil {
			return nil, fmt.Errorf("--notify-client-cert-file and --notify-client-key-file: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// connectMost is how long a connection, and its handshake, may take.
const connectMost = 5 * time.Second

// newClient returns a client that follows no redirect, because credentials would follow too, and that reads no more than it must.
func newClient(config *tls.Config) *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment, // Receivers are often outside of the cluster.
			TLSClientConfig:        config,
			ForceAttemptHTTP2:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: headerMost,
			IdleConnTimeout:        90 * time.Second, // as http.DefaultTransport
			DialContext:            (&net.Dialer{Timeout: connectMost}).DialContext,
			TLSHandshakeTimeout:    connectMost,
			ResponseHeaderTimeout:  attemptMost,
			// A connection that a firewall has forgotten is noticed soon, and not after a quarter of an hour.
			HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: connectMost, WriteByteTimeout: attemptMost},
		},
	}
}
