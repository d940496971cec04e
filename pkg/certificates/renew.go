// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"time"

	"github.com/winnow-dev/winnow/pkg/pki"
)

const (
	authorityName = "winnow-ca"
	// backdated is how long before it is made a certificate becomes valid, for those whose clock is a little behind.
	backdated = time.Hour
	// Certificates are renewed after this part of their life.
	renewAfter = 2.0 / 3
	renewalDue = "two thirds of its life have passed"
)

// Lifetimes are how long new certificates are valid.
type Lifetimes struct {
	Authority, Serving time.Duration
}

// settling is how long a new authority is trusted before something that it has signed is served: all servers of the cluster must have
// heard of it.
func (l Lifetimes) settling() time.Duration { return min(time.Minute, l.Authority/20) }

// Times are the clocks by which certificates are checked. There may be several kube-apiservers, and one of them may be wrong.
type Times struct {
	// Server is the time of the kube-apiserver that has answered. Clients verify by such a clock, so certificates are renewed by it.
	Server time.Time
	// Local is the time of this replica.
	Local time.Time
}

// validity is from when until when a new certificate of this life is valid: for its life by either clock.
func (t Times) validity(life time.Duration) (notBefore, notAfter time.Time) {
	earliest, latest := t.Server, t.Local
	if latest.Before(earliest) {
		earliest, latest = latest, earliest
	}
	return earliest.Add(-backdated), latest.Add(life)
}

// Change says what Renew has replaced, and why.
type Change struct{ What, Why string }

// Renew returns the material that should replace m now, and what is new in it; nothing if m is good. Names are the names in the serving
// certificate. Settled says whether the clients have trusted an authority for long enough.
func Renew(m Material, names []string, l Lifetimes, t Times, settled func(*x509.Certificate) bool) (Material, []Change, error) {
	var changes []Change
	now := t.Server
	if why := authorityEnds(m.signer, l.Authority, now); why != "" {
		notBefore, notAfter := t.validity(l.Authority)
		authority, err := pki.NewAuthority(authorityName, notBefore, notAfter)
		if err != nil {
			return m, nil, err
		}
		if m, err = m.withAuthority(authority, now); err != nil {
			return m, nil, err
		}
		changes = append(changes, Change{"certificate authority", why})
	}
	if why := m.servingEnds(names, l.Serving, t, settled); why != "" {
		notBefore, notAfter := t.validity(l.Serving)
		if last := m.signer.Certificate.NotAfter; notAfter.After(last) {
			notAfter = last
		}
		certPEM, keyPEM, err := m.signer.Issue(&x509.Certificate{
			Subject: pkix.Name{CommonName: names[0]}, DNSNames: names, NotBefore: notBefore, NotAfter: notAfter,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		})
		if err != nil {
			return m, nil, err
		}
		m = m.with(map[string][]byte{Certificate: certPEM, Key: keyPEM})
		changes = append(changes, Change{"serving certificate", why})
	}
	return m, changes, nil
}

// authorityEnds says why a new authority is needed; empty if none is.
func authorityEnds(signer *pki.Authority, life time.Duration, now time.Time) string {
	switch {
	case signer == nil:
		return "there is none whose key can be read"
	case outside(signer.Certificate, now) != "":
		return outside(signer.Certificate, now)
	case due(signer.Certificate, life, now):
		return renewalDue
	}
	return ""
}

// servingEnds says why a new serving certificate is needed and can be signed now; empty if the last one stays.
func (m Material) servingEnds(names []string, life time.Duration, t Times, settled func(*x509.Certificate) bool) string {
	why := m.unusable(names, t.Server)
	if why != "" && m.unusable(names, t.Local) != "" {
		return why // There is nothing to lose.
	}
	signer := m.signer.Certificate
	switch {
	case !settled(signer):
		return ""
	case why != "":
		return why
	case !m.issuer().Equal(signer):
		return "there is a new certificate authority"
	case due(m.serving, life, t.Server):
		return renewalDue
	}
	return ""
}

// begin is when a certificate was made.
func begin(c *x509.Certificate) time.Time { return c.NotBefore.Add(backdated) }

// due reports whether a certificate is to be renewed. A certificate that was made while two clocks differed is valid for longer than its
// life, and that does not make it due earlier.
func due(c *x509.Certificate, life time.Duration, now time.Time) bool {
	life = min(life, c.NotAfter.Sub(begin(c)))
	return !now.Before(c.NotAfter.Add(-time.Duration((1 - renewAfter) * float64(life))))
}

// withAuthority returns the material with a new authority that signs from now on. Those before it stay trusted until they expire.
func (m Material) withAuthority(a *pki.Authority, now time.Time) (Material, error) {
	keyPEM, err := a.KeyPEM()
	if err != nil {
		return m, err
	}
	bundle := pki.EncodeBundle(append([]*x509.Certificate{a.Certificate}, pki.Unexpired(m.authorities, now)...))
	return m.with(map[string][]byte{Authorities: bundle, AuthorityKey: keyPEM}), nil
}

// with returns the material with other data.
func (m Material) with(data map[string][]byte) Material {
	all := map[string][]byte{}
	for key := range m.data {
		all[key] = m.data[key]
	}
	for key := range data {
		all[key] = data[key]
	}
	return Parse(all)
}
