// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/x509"
	"time"
)

// trust remembers since when clients trust an authority.
type trust struct {
	authority *x509.Certificate // nil if they do not
	since     time.Time
}

// observe notes whether clients trust the authority now. They do not trust nil.
func (t *trust) observe(authority *x509.Certificate, trusted func(*x509.Certificate) bool, now time.Time) {
	switch {
	case authority == nil, !trusted(authority):
		*t = trust{}
	case t.authority == nil, !t.authority.Equal(authority), now.Before(t.since):
		*t = trust{authority, now}
	}
}

// settled reports whether clients have trusted the authority for long enough, as it was last observed.
func (t *trust) settled(authority *x509.Certificate, settling time.Duration, now time.Time) bool {
	return t.authority != nil && t.authority.Equal(authority) && !now.Before(t.since.Add(settling))
}
