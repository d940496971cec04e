// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/winnow-dev/winnow/pkg/pki"
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
	authority, err := pki.NewAuthority("winnow-ca", now, now.Add(valid))
	if err != nil {
		return err
	}
	certPEM, keyPEM, err := authority.Issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: names[0]}, DNSNames: names, NotBefore: now, NotAfter: now.Add(valid),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return err
	}
	return errors.Join(
		cert.WriteCert(filepath.Join(folder, "ca.crt"), authority.CertPEM()),
		cert.WriteCert(filepath.Join(folder, "tls.crt"), certPEM),
		keyutil.WriteKey(filepath.Join(folder, "tls.key"), keyPEM),
	)
}
