// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"context"
	"crypto/x509"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/pki"
)

const (
	// filesEvery is how often Files looks whether clients trust a new certificate.
	filesEvery = time.Second
	// filesSettling is how long they must have trusted its authority: all servers of the cluster must have heard of it.
	filesSettling = 15 * time.Second
)

// Files serves with a certificate that somebody else renews in files, and changes to a new one only once clients have trusted its authority
// for a while.
type Files struct {
	provider dynamiccertificates.CertKeyContentProvider
	caPEM    func() []byte
	names    []string
	trusted  func(*x509.Certificate) bool
	clock    clock.PassiveClock

	served
	trust trust // in the authority that has signed what is in the files, if that is new
}

var (
	_ dynamiccertificates.CertKeyContentProvider = &Files{}
	_ dynamiccertificates.ControllerRunner       = &Files{}
)

// NewFiles returns what serves with the certificate of a provider, which it runs if it can. CAPEM returns the authorities that have signed
// it, and trusted reports whether clients trust one of them.
func NewFiles(
	provider dynamiccertificates.CertKeyContentProvider, caPEM func() []byte, names []string, trusted func(*x509.Certificate) bool,
	c clock.PassiveClock,
) *Files {
	f := &Files{provider: provider, caPEM: caPEM, names: names, trusted: trusted, clock: c}
	f.look(context.Background())
	return f
}

// CAPEM are the authorities that clients should trust: the authorities in the files, and the authorities of the certificate that is served.
func (f *Files) CAPEM() []byte {
	f.lock.Lock()
	defer f.lock.Unlock()
	return append(bytes.Clone(f.caPEM()), f.serving.CAPEM()...)
}

// ServingCAPEM are the authorities of what is served.
func (f *Files) ServingCAPEM() []byte {
	f.lock.Lock()
	defer f.lock.Unlock()
	if issuer := f.serving.issuer(); issuer != nil {
		return pki.EncodeBundle([]*x509.Certificate{issuer})
	}
	return f.serving.CAPEM() // None of them has signed it.
}

// Name implements dynamiccertificates.CertKeyContentProvider.
func (f *Files) Name() string { return f.provider.Name() }

// RunOnce implements dynamiccertificates.ControllerRunner.
func (f *Files) RunOnce(ctx context.Context) error {
	if runner, ok := f.provider.(dynamiccertificates.ControllerRunner); ok {
		return runner.RunOnce(ctx)
	}
	return nil
}

// Run follows the files until ctx ends.
func (f *Files) Run(ctx context.Context, workers int) {
	if runner, ok := f.provider.(dynamiccertificates.ControllerRunner); ok {
		go runner.Run(ctx, workers)
	}
	wait.NonSlidingUntilWithContext(ctx, f.look, filesEvery)
}

// look takes over a new certificate, unless the clients do not trust it yet and can still use the last one.
func (f *Files) look(ctx context.Context) {
	certPEM, keyPEM := f.provider.CurrentCertKeyContent()
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.serves(certPEM, keyPEM) {
		return
	}
	m := Parse(map[string][]byte{Authorities: f.caPEM(), Certificate: certPEM, Key: keyPEM})
	now, issuer := f.clock.Now(), m.issuer()
	f.trust.observe(issuer, f.trusted, now)
	if f.serving.unusable(f.names, now) == "" && !f.trust.settled(issuer, filesSettling, now) {
		return
	}
	f.serve(ctx, m)
}
