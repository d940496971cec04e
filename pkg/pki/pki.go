// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pki makes certificate authorities, and the certificates that they sign.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Authority signs certificates.
type Authority struct {
	Certificate *x509.Certificate
	key         crypto.Signer
}

// NewAuthority returns an authority of this name with a new key.
func NewAuthority(name string, notBefore, notAfter time.Time) (*Authority, error) {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: notBefore, NotAfter: notAfter,
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	der, err := sign(template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return &Authority{certificate, key}, err
}

// ParseAuthority returns the authority of its CertPEM and KeyPEM.
func ParseAuthority(certPEM, keyPEM []byte) (*Authority, error) {
	certificates, err := cert.ParseCertsPEM(certPEM)
	if err != nil {
		return nil, fmt.Errorf("the certificate of the authority: %w", err)
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	if err != nil {
		return nil, fmt.Errorf("the key of the authority: %w", err)
	}
	key, ok := parsed.(crypto.Signer)
	public, comparesKeys := certificates[0].PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !comparesKeys || !public.Equal(key.Public()) {
		return nil, fmt.Errorf("the key of the authority %q does not belong to its certificate", certificates[0].Subject.CommonName)
	}
	return &Authority{certificates[0], key}, nil
}

// CertPEM is the certificate, for those who are to trust the authority.
func (a *Authority) CertPEM() []byte { return encode(a.Certificate.Raw) }

// KeyPEM is the key, with which everybody can sign what those who trust the authority trust.
func (a *Authority) KeyPEM() ([]byte, error) { return keyutil.MarshalPrivateKeyToPEM(a.key) }

// Issue signs a certificate for a new key. The template says for what and how long it is valid; its serial number and usage of the key are
// set.
func (a *Authority) Issue(template *x509.Certificate) (certPEM, keyPEM []byte, err error) {
	template.KeyUsage = x509.KeyUsageDigitalSignature
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	der, err := sign(template, a.Certificate, key.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key)
	return encode(der), keyPEM, err
}

// Unexpired returns the certificates that have not expired.
func Unexpired(certificates []*x509.Certificate, now time.Time) []*x509.Certificate {
	return slices.DeleteFunc(slices.Clone(certificates), func(c *x509.Certificate) bool { return now.After(c.NotAfter) })
}

// EncodeBundle returns the certificates in PEM.
func EncodeBundle(certificates []*x509.Certificate) []byte {
	bundle, _ := cert.EncodeCertificates(certificates...) // Writing into memory does not fail.
	return bundle
}

func newKey() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// sign gives the certificate a serial number that no other one has.
func sign(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) (der []byte, err error) {
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, err
	}
	return x509.CreateCertificate(rand.Reader, template, parent, public, key)
}

func encode(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
}
