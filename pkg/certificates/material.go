// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certificates keeps Winnow's own certificate authority and serving certificate. Both are in one Secret, which all replicas read.
// One replica renews them, long before they end, in an order in which no client meets a certificate that it does not trust:
//
//  1. A new authority is added to those that are trusted. The serving certificate stays.
//  2. Once kube-apiserver trusts the new authority, a serving certificate that it signs replaces the last one.
//  3. The old authority stays trusted until it expires, so that replicas may change over at any time. Its key is gone since step 1.
//
// Renew decides, by the time that it is given. A Keeper reads and writes the Secret, and serves.
package certificates

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"

	"github.com/winnow-dev/winnow/pkg/pki"
)

// The keys of the Secret. Authorities has the certificates of all authorities that are trusted, with the certificate for AuthorityKey
// first.
const (
	Authorities  = "ca.crt"
	AuthorityKey = "ca.key"
	Certificate  = corev1.TLSCertKey
	Key          = corev1.TLSPrivateKeyKey
)

// Material is what a Secret holds. The zero value holds nothing.
type Material struct {
	data map[string][]byte

	authorities []*x509.Certificate
	signer      *pki.Authority      // the first authority, with its key; nil if that cannot be read
	serving     *x509.Certificate   // nil if the certificate or its key cannot be read
	between     []*x509.Certificate // what comes with it: intermediate authorities
	faults      []error             // why something cannot be read
}

// Parse reads the data of a Secret. What cannot be read is left out; see Err.
func Parse(data map[string][]byte) Material {
	m := Material{data: data}
	fault := func(key string, err error) {
		m.faults = append(m.faults, fmt.Errorf("%s cannot be used: %w", key, err))
	}
	var err error
	if m.authorities, err = cert.ParseCertsPEM(data[Authorities]); err != nil {
		fault(Authorities, err)
	}
	if m.signer, err = pki.ParseAuthority(data[Authorities], data[AuthorityKey]); err != nil {
		m.signer = nil
		fault(AuthorityKey, err)
	}
	pair, err := tls.X509KeyPair(data[Certificate], data[Key])
	if err != nil {
		fault(Certificate+" with "+Key, err)
	} else {
		m.serving = pair.Leaf
		chain, _ := cert.ParseCertsPEM(data[Certificate]) // which could be read just now
		m.between = chain[1:]
	}
	return m
}

// Err says what cannot be read; nil if all can.
func (m Material) Err() error { return errors.Join(m.faults...) }

// CAPEM are the certificates of all authorities that are trusted.
func (m Material) CAPEM() []byte { return pki.EncodeBundle(m.authorities) }

// Serving is the serving certificate and its key.
func (m Material) Serving() (certPEM, keyPEM []byte) { return m.data[Certificate], m.data[Key] }

// issuer is the trusted authority that has signed the serving certificate, itself or by intermediate ones; nil if none has.
func (m Material) issuer() *x509.Certificate {
	if m.serving == nil {
		return nil
	}
	return issuerOf(m.serving, m.between, m.authorities)
}

func issuerOf(c *x509.Certificate, between, authorities []*x509.Certificate) *x509.Certificate {
	for _, a := range authorities {
		if a.Equal(c) || c.CheckSignatureFrom(a) == nil { // It may be its own authority.
			return a
		}
	}
	for i, next := range between {
		if c.CheckSignatureFrom(next) == nil {
			return issuerOf(next, slices.Delete(slices.Clone(between), i, i+1), authorities)
		}
	}
	return nil
}

// unusable says why nobody could verify the serving certificate for these names at this time; empty if they can.
func (m Material) unusable(names []string, now time.Time) string {
	issuer := m.issuer()
	switch {
	case m.serving == nil:
		return "it cannot be read"
	case issuer == nil:
		return "no authority that is trusted has signed it"
	}
	for _, name := range names {
		if err := m.serving.VerifyHostname(name); err != nil {
			return "it is not valid for " + name
		}
	}
	return cmp.Or(outside(m.serving, now), outside(issuer, now))
}

// outside says why a certificate is not valid at this time; empty if it is.
func outside(c *x509.Certificate, now time.Time) string {
	switch {
	case now.Before(c.NotBefore):
		return "it is valid only from " + c.NotBefore.Format(time.RFC3339)
	case now.After(c.NotAfter):
		return "it has expired at " + c.NotAfter.Format(time.RFC3339)
	}
	return ""
}
