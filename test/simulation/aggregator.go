// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/winnow-dev/winnow/pkg/pki"
)

// aggregator forwards requests of users to a replica, as kube-apiserver does.
type aggregator struct {
	client *http.Client
}

func newAggregator(proxies *pki.Authority, r *replica) (*aggregator, error) {
	certPEM, keyPEM, err := proxies.Issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "proxy"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(30, 0, 0),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	return &aggregator{&http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return r.pipe.DialContext(ctx) },
		// The certificate of the replica is not what is simulated.
		TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true}, //nolint:gosec // see above
	}}}, nil
}

// do sends a request as a user.
func (a *aggregator) do(ctx context.Context, user, method, path string, object any) (int, []byte, error) {
	var body []byte
	if object != nil {
		var err error
		if body, err = json.Marshal(object); err != nil {
			return 0, nil, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, "https://winnow.winnow-system.svc"+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("X-Remote-User", user)
	r.Header.Set("X-Remote-Group", "system:authenticated")
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	out, err := a.client.Do(r)
	if err != nil {
		return 0, nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	data, err := io.ReadAll(out.Body)
	return out.StatusCode, data, errors.Join(err, out.Body.Close())
}
