// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newAuthority(t *testing.T) *Authority {
	t.Helper()
	a, err := NewAuthority("ca", now, now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func issue(t *testing.T, a *Authority) tls.Certificate {
	t.Helper()
	certPEM, keyPEM, err := a.Issue(&x509.Certificate{
		DNSNames: []string{"winnow"}, NotBefore: now, NotAfter: now.Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// TestTrust: who trusts an authority trusts what it signs, also after it was stored, and for as long as both are valid. Who trusts another
// one of the same name does not.
func TestTrust(t *testing.T) {
	a := newAuthority(t)
	keyPEM, err := a.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	stored, err := ParseAuthority(a.CertPEM(), keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	first, second := issue(t, a), issue(t, stored)
	if first.Leaf.SerialNumber.Cmp(second.Leaf.SerialNumber) == 0 {
		t.Error("two certificates have the same serial number")
	}
	for what, c := range map[string]struct {
		trusted *Authority
		leaf    *x509.Certificate
		name    string
		at      time.Time
		want    bool
	}{
		"signed by the authority":     {a, first.Leaf, "winnow", now, true},
		"signed once it was stored":   {a, second.Leaf, "winnow", now.Add(time.Hour), true},
		"another name":                {a, first.Leaf, "other", now, false},
		"expired":                     {a, first.Leaf, "winnow", now.Add(time.Hour + time.Second), false},
		"another authority like this": {newAuthority(t), first.Leaf, "winnow", now, false},
	} {
		pool, err := cert.NewPoolFromBytes(c.trusted.CertPEM())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.leaf.Verify(x509.VerifyOptions{DNSName: c.name, Roots: pool, CurrentTime: c.at}); (err == nil) != c.want {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestIssuedIsNoAuthority: nobody can sign with what an authority has signed.
func TestIssuedIsNoAuthority(t *testing.T) {
	leaf := issue(t, newAuthority(t)).Leaf
	if leaf.IsCA || leaf.KeyUsage != x509.KeyUsageDigitalSignature {
		t.Errorf("CA %v, usage %v", leaf.IsCA, leaf.KeyUsage)
	}
}

func TestParseAuthority(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	keyPEM, err := a.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string][2][]byte{
		"the certificate of the authority: ":                       {[]byte("x"), keyPEM},
		"the key of the authority: ":                               {a.CertPEM(), []byte("x")},
		`the key of the authority "ca" does not belong to its cer`: {other.CertPEM(), keyPEM},
	} {
		if _, err := ParseAuthority(c[0], c[1]); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
