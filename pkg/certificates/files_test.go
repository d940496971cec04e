// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"crypto/x509"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	clocktesting "k8s.io/utils/clock/testing"
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
		complete bool // whether the file with the authorities has that of the new certificate
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
			if f.look(quiet); serves(after) != c.want || (told.wakes == 1) != c.want {
				t.Errorf("serves with the new one: %v; told %d times", serves(after), told.wakes)
			}
		})
	}
}
