// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/pki"
	"github.com/winnow-dev/winnow/test/winnow"
)

// TestRotatedFiles: somebody else renews the certificate in files, each time with another authority, while a client sends requests, and none
// fails.
func TestRotatedFiles(t *testing.T) {
	v := newVolume(t)
	v.renew(t)
	before := field(t, secret, "{.metadata.resourceVersion}")
	s := startWith(t, winnow.Options{Replicas: 2, CertDir: v.path})
	underLoad(t, func() {
		for range 3 {
			authority := v.renew(t)
			for _, r := range s.Replicas {
				eventually(t, r.Name+" serves with the new certificate", func() bool {
					return string(servedBy(t, r).AuthorityKeyId) == string(authority.SubjectKeyId)
				})
			}
		}
	})
	if now := field(t, secret, "{.metadata.resourceVersion}"); now != before {
		t.Error("Winnow has written the Secret, though its certificates are in files")
	}
}

// servedBy is the certificate that a replica serves with.
func servedBy(t *testing.T, r *winnow.Replica) *x509.Certificate {
	t.Helper()
	// Whether kube-apiserver trusts it, the requests of the client show.
	c, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", r.Port), &tls.Config{ServerName: winnow.ServerName, InsecureSkipVerify: true})
	must(t, err)
	defer func() { _ = c.Close() }()
	return c.ConnectionState().PeerCertificates[0]
}

// volume changes like a Secret's volume: a link leads to a folder with the files, and is replaced together with it.
type volume struct {
	path    string // the link
	renewed int
}

func newVolume(t *testing.T) *volume {
	return &volume{path: filepath.Join(t.TempDir(), "certificates")}
}

// renew puts a certificate of a new authority into the volume.
func (v *volume) renew(t *testing.T) (authority *x509.Certificate) {
	t.Helper()
	now := time.Now()
	a, err := pki.NewAuthority("files-ca", now.Add(-time.Minute), now.Add(time.Hour))
	must(t, err)
	certPEM, keyPEM, err := a.Issue(&x509.Certificate{
		DNSNames: []string{winnow.ServerName}, NotBefore: now.Add(-time.Minute), NotAfter: now.Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	must(t, err)
	v.renewed++
	last, next := fmt.Sprintf("%s-%d", v.path, v.renewed-1), fmt.Sprintf("%s-%d", v.path, v.renewed)
	must(t, os.Mkdir(next, 0o700))
	for name, content := range map[string][]byte{"tls.crt": certPEM, "tls.key": keyPEM, "ca.crt": a.CertPEM()} {
		must(t, os.WriteFile(filepath.Join(next, name), content, 0o600))
	}
	must(t, os.Symlink(next, next+"-link"))
	must(t, os.Rename(next+"-link", v.path))
	must(t, os.RemoveAll(last))
	return a.Certificate
}
