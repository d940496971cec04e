// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/winnow-dev/winnow/pkg/pki"
)

// authority is a CA that stands in a folder as NAME.crt and NAME.key.
type authority struct {
	*pki.Authority
	certFile string
	certPEM  []byte
}

// validFor is how long a CA is valid, and what it signs.
const validFor = 10 * 365 * 24 * time.Hour

// loadAuthority reads the CA, or creates it when the folder does not have it yet.
func loadAuthority(dir, name string) (*authority, error) {
	certFile, keyFile := filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	if !exists(certFile) {
		now := time.Now()
		ca, err := pki.NewAuthority("winnow-test-"+name, now, now.Add(validFor))
		if err != nil {
			return nil, err
		}
		keyPEM, err := ca.KeyPEM()
		if err != nil {
			return nil, err
		}
		err = errors.Join(keyutil.WriteKey(keyFile, keyPEM), cert.WriteCert(certFile, ca.CertPEM()))
		return &authority{ca, certFile, ca.CertPEM()}, err
	}
	certPEM, err := os.ReadFile(certFile)
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, err
	}
	ca, err := pki.ParseAuthority(certPEM, keyPEM)
	return &authority{ca, certFile, certPEM}, err
}

// issue signs a certificate for client and server use, valid as long as the CA. A user is its subject: common
// name and organizations are user name and groups. Servers are always good for localhost as well.
func (a *authority) issue(subject pkix.Name, dnsNames ...string) (certPEM, keyPEM []byte, err error) {
	return a.Issue(&x509.Certificate{
		Subject:     subject,
		NotBefore:   a.Certificate.NotBefore,
		NotAfter:    a.Certificate.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		DNSNames:    append([]string{"localhost"}, dnsNames...),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
}

// issueFiles is issue into NAME.crt and NAME.key of a folder.
func (a *authority) issueFiles(dir, name string, subject pkix.Name, dnsNames ...string) (certFile, keyFile string, err error) {
	certPEM, keyPEM, err := a.issue(subject, dnsNames...)
	if err != nil {
		return "", "", err
	}
	certFile, keyFile = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	return certFile, keyFile, errors.Join(cert.WriteCert(certFile, certPEM), keyutil.WriteKey(keyFile, keyPEM))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}
