// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/util/keyutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/winnow-dev/winnow/pkg/pki"
)

// pair is a provider of what is in files.
type pair struct{ m Material }

func (p *pair) Name() string                                    { return "files" }
func (p *pair) CurrentCertKeyContent() (certPEM, keyPEM []byte) { return p.m.Serving() }
func (p *pair) AddListener(dynamiccertificates.Listener)        {}

// TestFiles: a new certificate is served once clients trust its authority, or when the last one has expired.
func TestFiles(t *testing.T) {
	for name, c := range map[string]struct {
		trust    bool
		complete bool // whether the file with the authorities has the new certificate's authority
		after    time.Duration
		want     bool
	}{
		"trusted for long enough":  {true, true, filesSettling, true},
		"trusted just now":         {true, true, filesSettling - 1, false},
		"not trusted yet":          {false, true, filesSettling, false},
		"authorities are not new":  {true, false, filesSettling, false},
		"not trusted, but expired": {false, true, 8 * day, true},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := first(t), first(t)
			files, caPEM, trust := &pair{before}, before.CAPEM(), true
			clock := clocktesting.NewFakeClock(noon)
			f := NewFiles(files, func() []byte { return caPEM }, names, func(*x509.Certificate) bool { return trust }, clock)
			if string(f.ServingCAPEM()) != string(before.CAPEM()) {
				t.Error("other authorities than the one that signed what is served")
			}
			told := &replica{}
			f.AddListener(told)
			serves := func(m Material) bool {
				certPEM, keyPEM := f.CurrentCertKeyContent()
				wantCert, wantKey := m.Serving()
				return bytes.Equal(certPEM, wantCert) && bytes.Equal(keyPEM, wantKey)
			}
			if f.look(quiet); !serves(before) || told.wakes != 0 {
				t.Fatal("does not serve with what is there")
			}
			files.m, trust = after, c.trust
			if c.complete {
				caPEM = after.CAPEM()
			}
			f.look(quiet)
			clock.Step(c.after)
			for _, needed := range []Material{before, after} {
				if want := needed.CAPEM(); (c.complete || string(want) == string(before.CAPEM())) && !bytes.Contains(f.CAPEM(), want) {
					t.Error("clients are not told of all authorities")
				}
			}
			if f.look(quiet); serves(after) != c.want || (told.wakes == 1) != c.want {
				t.Errorf("serves with the new one: %v; told %d times", serves(after), told.wakes)
			}
		})
	}
}

// TestIssuer: the authority of a certificate is found by way of intermediate ones, and if it is its own.
func TestIssuer(t *testing.T) {
	root, rootKey := make509(t, "root", true, nil, nil)
	between, betweenKey := make509(t, "between", true, root, rootKey)
	leaf, leafKey := make509(t, "leaf", false, between, betweenKey)
	alone, aloneKey := make509(t, "alone", false, nil, nil)
	for name, c := range map[string]struct {
		chain   []*x509.Certificate
		key     *ecdsa.PrivateKey
		trusted *x509.Certificate
		want    bool
	}{
		"by an intermediate authority": {[]*x509.Certificate{leaf, between}, leafKey, root, true},
		"with its root":                {[]*x509.Certificate{leaf, root, between}, leafKey, root, true},
		"trusted itself":               {[]*x509.Certificate{leaf}, leafKey, between, true},
		"the intermediate is missing":  {[]*x509.Certificate{leaf}, leafKey, root, false},
		"its own":                      {[]*x509.Certificate{alone}, aloneKey, alone, true},
		"of somebody else":             {[]*x509.Certificate{alone}, aloneKey, root, false},
	} {
		keyPEM, err := keyutil.MarshalPrivateKeyToPEM(c.key)
		if err != nil {
			t.Fatal(err)
		}
		m := Parse(map[string][]byte{
			Certificate: pki.EncodeBundle(c.chain), Key: keyPEM, Authorities: pki.EncodeBundle([]*x509.Certificate{c.trusted}),
		})
		if got := m.issuer(); (got != nil) != c.want || c.want && !got.Equal(c.trusted) {
			t.Errorf("%s: found %v", name, got != nil)
		}
		if why := m.unusable(names, noon); (why == "") != c.want {
			t.Errorf("%s: unusable: %q", name, why)
		}
	}
}

// make509 makes a certificate, signed by itself if there is no parent.
func make509(
	t *testing.T, name string, isCA bool, parent *x509.Certificate, parentKey *ecdsa.PrivateKey,
) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: names, NotBefore: noon, NotAfter: noon.Add(day),
		IsCA: isCA, BasicConstraintsValid: true,
	}
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c, key
}
