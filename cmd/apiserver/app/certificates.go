// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

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
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const day = 24 * time.Hour

// newCertificatesCommand returns the command that creates a serving certificate.
func newCertificatesCommand() *cobra.Command {
	var folder string
	var days int
	cmd := &cobra.Command{
		Use:   "certificates NAME...",
		Short: "Create a certificate authority and a serving certificate that it signs",
		Long: `Creates a certificate authority, and a serving certificate for some DNS names that it signs: ca.crt, tls.crt and tls.key.
Nobody can sign another certificate with the authority, because its key is never written.`,
		Example: `  # For a server that the aggregator reaches through the Service winnow:
  winnow-apiserver certificates winnow.winnow-system.svc`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, names []string) error {
			if days < 1 {
				return fmt.Errorf("--days=%d: must be at least 1", days)
			}
			return writeCertificates(folder, names, time.Now(), time.Duration(days)*day)
		},
	}
	cmd.Flags().StringVar(&folder, "dir", ".", "folder for ca.crt, tls.crt and tls.key")
	cmd.Flags().IntVar(&days, "days", 3650, "number of days that both certificates are valid for")
	return cmd
}

// writeCertificates writes ca.crt, tls.crt and tls.key into a folder. Both certificates are valid from now on. names are DNS names.
func writeCertificates(folder string, names []string, now time.Time, valid time.Duration) error {
	serving := &x509.Certificate{
		Subject: pkix.Name{CommonName: names[0]}, DNSNames: names, NotBefore: now, NotAfter: now.Add(valid),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	authority := &x509.Certificate{
		Subject: pkix.Name{CommonName: "winnow-ca"}, NotBefore: now, NotAfter: now.Add(valid),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	authorityKey, authorityPEM, err := sign(authority, nil, nil)
	if err != nil {
		return err
	}
	key, servingPEM, err := sign(serving, authority, authorityKey)
	if err != nil {
		return err
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	return errors.Join(
		cert.WriteCert(filepath.Join(folder, "ca.crt"), authorityPEM),
		cert.WriteCert(filepath.Join(folder, "tls.crt"), servingPEM),
		keyutil.WriteKey(filepath.Join(folder, "tls.key"), keyPEM),
	)
}

// sign returns the certificate of a new key. It is signed by an authority, or by the key itself if there is none.
func sign(template, authority *x509.Certificate, authorityKey crypto.Signer) (crypto.Signer, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if authority == nil {
		authority, authorityKey = template, key
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority, key.Public(), authorityKey)
	return key, pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), err
}
