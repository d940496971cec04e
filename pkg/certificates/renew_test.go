// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"crypto/x509"
	"slices"
	"testing"
	"time"
)

const day = 24 * time.Hour

var (
	noon     = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	names    = []string{"winnow.winnow-system.svc"}
	defaults = Lifetimes{Authority: 365 * day, Serving: 7 * day}
)

// at is a time on which all clocks agree.
func at(t time.Time) Times { return Times{Server: t, Local: t} }

func everything(*x509.Certificate) bool { return true }
func nothing(*x509.Certificate) bool    { return false }

// first is the material that a new installation gets at noon.
func first(t *testing.T) Material {
	t.Helper()
	m, changes, err := Renew(Material{}, names, defaults, at(noon), everything)
	if err != nil {
		t.Fatal(err)
	}
	if len(changes) != 2 || m.Err() != nil || m.unusable(names, noon) != "" {
		t.Fatalf("%v; %v; %s", changes, m.Err(), m.unusable(names, noon))
	}
	return m
}

// verify returns why somebody who trusts these authorities does not accept the serving certificate.
func verify(m Material, trusted []*x509.Certificate, now time.Time) error {
	roots := x509.NewCertPool()
	for _, c := range trusted {
		roots.AddCert(c)
	}
	_, err := m.serving.Verify(x509.VerifyOptions{Roots: roots, DNSName: names[0], CurrentTime: now})
	return err
}

func TestRenew(t *testing.T) {
	installed := first(t)
	other := first(t)
	renewed, _, err := Renew(installed, names, defaults, at(noon.Add(244*day)), everything)
	if err != nil {
		t.Fatal(err)
	}
	const authority, serving = "certificate authority", "serving certificate"
	for name, c := range map[string]struct {
		of      Material
		names   []string
		at      time.Time
		settled func(*x509.Certificate) bool
		want    []string
	}{
		"new":                            {installed, names, noon, everything, nil},
		"before two thirds of its life":  {installed, names, noon.Add(7*day*2/3 - time.Second), everything, nil},
		"after two thirds of its life":   {installed, names, noon.Add(7 * day * 2 / 3), everything, []string{serving}},
		"the authority is not settled":   {installed, names, noon.Add(6 * day), nothing, nil},
		"expired":                        {installed, names, noon.Add(8 * day), nothing, []string{serving}},
		"the authority after two thirds": {installed, names, noon.Add(365*day*2/3 + time.Hour), nothing, []string{authority, serving}},
		"the authority expired":          {installed, names, noon.Add(366 * day), nothing, []string{authority, serving}},
		"the clock went back":            {installed, names, noon.Add(-2 * time.Hour), nothing, []string{authority, serving}},
		"the clock went back a little":   {installed, names, noon.Add(-time.Minute), everything, nil},
		"another name":                   {installed, []string{"winnow.cleanup.svc"}, noon, nothing, []string{serving}},
		"no key of the authority":        {installed.with(map[string][]byte{AuthorityKey: nil}), names, noon, nothing, []string{authority}},
		"the key of another authority":   {installed.with(map[string][]byte{AuthorityKey: other.data[AuthorityKey]}), names, noon, nothing, []string{authority}},
		"a key that is none":             {installed.with(map[string][]byte{Key: []byte("?")}), names, noon, nothing, []string{serving}},
		"the key of another certificate": {installed.with(map[string][]byte{Key: other.data[Key]}), names, noon, nothing, []string{serving}},
		"signed by another authority":    {installed.with(map[string][]byte{Certificate: other.data[Certificate], Key: other.data[Key]}), names, noon, nothing, []string{serving}},
		"no authorities":                 {installed.with(map[string][]byte{Authorities: nil}), names, noon, nothing, []string{authority, serving}},
		"a new authority, a moment ago":  {renewed, names, noon.Add(244*day + time.Second), nothing, nil},
		"a new authority, not settled":   {renewed, names, noon.Add(244*day + time.Hour), nothing, nil},
		"a new authority, settled":       {renewed, names, noon.Add(244*day + time.Hour), everything, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, changes, err := Renew(c.of, c.names, defaults, at(c.at), c.settled)
			if err != nil {
				t.Fatal(err)
			}
			var what []string
			for _, change := range changes {
				if what = append(what, change.What); change.Why == "" {
					t.Errorf("no reason for %s", change.What)
				}
			}
			if !slices.Equal(what, c.want) {
				t.Errorf("got %v, want %v", changes, c.want)
			}
			if err := got.Err(); err != nil {
				t.Error(err)
			}
			if why := got.unusable(c.names, c.at); why != "" {
				t.Error(why)
			}
		})
	}
}

// TestNewAuthority: the old authority stays trusted and its key goes; the serving certificate changes a minute later, once the new authority is
// trusted.
func TestNewAuthority(t *testing.T) {
	installed := first(t)
	now := noon.Add(6 * day)
	for due := noon.Add(365 * day * 2 / 3); now.Before(due); now = now.Add(5 * day) { // Two thirds of a year, with a new certificate in time.
		var err error
		if installed, _, err = Renew(installed, names, defaults, at(now), everything); err != nil {
			t.Fatal(err)
		}
	}
	m, changes, err := Renew(installed, names, defaults, at(now), nothing)
	if err != nil {
		t.Fatal(err)
	}
	if len(changes) != 1 || len(m.authorities) != 2 || !m.authorities[1].Equal(installed.authorities[0]) {
		t.Fatalf("%v; %d authorities", changes, len(m.authorities))
	}
	if !bytes.Equal(m.data[Certificate], installed.data[Certificate]) || bytes.Equal(m.data[AuthorityKey], installed.data[AuthorityKey]) {
		t.Error("the serving certificate changed, or the old key is still there")
	}
	now = now.Add(time.Minute)
	m, changes, err = Renew(m, names, defaults, at(now), everything)
	if err != nil {
		t.Fatal(err)
	}
	if len(changes) != 1 || verify(m, m.authorities[:1], now) != nil {
		t.Errorf("%v; %v", changes, verify(m, m.authorities[:1], now))
	}
	// Nothing is valid for longer than what has signed it, and expired authorities go.
	now = m.authorities[1].NotAfter.Add(time.Hour)
	for range 3 {
		if m, _, err = Renew(m, names, defaults, at(now), everything); err != nil {
			t.Fatal(err)
		}
		if m.serving.NotAfter.After(m.authorities[0].NotAfter) {
			t.Error("the serving certificate is valid for longer than its authority")
		}
		now = now.Add(365 * day * 2 / 3)
	}
	if len(m.authorities) != 2 {
		t.Errorf("%d authorities are trusted", len(m.authorities))
	}
}
