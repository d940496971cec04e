// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
)

// TestCertificates: a client that trusts the authority trusts a server with the certificate, under its names and for its time alone.
func TestCertificates(t *testing.T) {
	const name = "winnow.winnow-system.svc"
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	dir := t.TempDir()
	if err := writeCertificates(dir, []string{name, "localhost"}, now, 30*day); err != nil {
		t.Fatal(err)
	}
	pool, err := cert.NewPool(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		name string
		at   time.Time
		want bool
	}{
		"the first name":  {name, now, true},
		"the second name": {"localhost", now.Add(30 * day), true},
		"another name":    {"kubernetes.default.svc", now, false},
		"too early":       {name, now.Add(-time.Second), false},
		"expired":         {name, now.Add(30*day + time.Second), false},
	} {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: c.name, Roots: pool, CurrentTime: c.at})
		if (err == nil) != c.want {
			t.Errorf("%s: %v, want valid %v", what, err, c.want)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 3 {
		t.Errorf("wrote %v, %v", files, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "tls.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v", info.Mode(), err)
	}
}

func TestCertificatesCommand(t *testing.T) {
	for want, args := range map[string][]string{
		"requires at least 1 arg(s), only received 0": {},
		"--days=0: must be at least 1":                {"--days=0", "a"},
	} {
		cmd := newCertificatesCommand()
		cmd.SetArgs(args)
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		if err := cmd.Execute(); err == nil || err.Error() != want {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}
