// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// authority is a CA that stands in a folder as NAME.crt and NAME.key.
type authority struct {
	cert     *x509.Certificate
	key      crypto.Signer
	certFile string
	certPEM  []byte
}

// loadAuthority reads the CA, or creates it when the folder does not have it yet.
func loadAuthority(dir, name string) (*authority, error) {
	a := &authority{certFile: filepath.Join(dir, name+".crt")}
	keyFile := filepath.Join(dir, name+".key")
	if _, _, err := keyutil.LoadOrGenerateKeyFile(keyFile); err != nil {
		return nil, err
	}
	key, err := keyutil.PrivateKeyFromFile(keyFile)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s: a %T cannot sign", keyFile, key)
	}
	a.key = signer
	if !exists(a.certFile) {
		if a.cert, err = cert.NewSelfSignedCACert(cert.Config{CommonName: "winnow-test-" + name}, signer); err != nil {
			return nil, err
		}
		if a.certPEM, err = cert.EncodeCertificates(a.cert); err != nil {
			return nil, err
		}
		return a, cert.WriteCert(a.certFile, a.certPEM)
	}
	certs, err := cert.CertsFromFile(a.certFile)
	if err != nil {
		return nil, err
	}
	a.cert = certs[0]
	a.certPEM, err = os.ReadFile(a.certFile)
	return a, err
}

// issue signs a certificate for client and server use, valid as long as the CA. A user is its subject: common
// name and organizations are user name and groups. Servers are always good for localhost as well.
func (a *authority) issue(subject pkix.Name, dnsNames ...string) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		Subject:      subject,
		SerialNumber: serial,
		NotBefore:    a.cert.NotBefore,
		NotAfter:     a.cert.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		DNSNames:     append([]string{"localhost"}, dnsNames...),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key)
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), keyPEM, err
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
