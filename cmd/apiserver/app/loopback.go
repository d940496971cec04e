// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/healthz"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"github.com/winnow-dev/winnow/pkg/pki"
)

// loopbackLifetime is for how long the server can reach itself, as with the options of k8s.io/apiserver. Then it is not healthy any more.
const loopbackLifetime = 3 * 365 * 24 * time.Hour

// applySecureServing does what SecureServingOptionsWithLoopback does, but with ECDSA keys for the certificate with which the server reaches
// itself: its two RSA keys are most of what a start costs.
func applySecureServing(o *genericoptions.SecureServingOptions, config *genericapiserver.Config) error {
	if err := o.ApplyTo(&config.SecureServing); err != nil || config.SecureServing == nil {
		return err
	}
	expires := time.Now().Add(loopbackLifetime)
	certificate, ca, err := newLoopbackCertificate(expires)
	if err != nil {
		return fmt.Errorf("cannot make the certificate with which the server reaches itself: %w", err)
	}
	// The first one with a name is used.
	config.SecureServing.SNICerts = slices.Insert(config.SecureServing.SNICerts, 0, certificate)
	if config.LoopbackClientConfig, err = config.SecureServing.NewLoopbackClientConfig(uuid.New().String(), ca); err != nil {
		return err
	}
	config.AddHealthChecks(healthz.NamedCheck("loopback-serving-certificate", func(*http.Request) error {
		if time.Now().After(expires) {
			return errors.New("the certificate with which the server reaches itself has expired: restart it")
		}
		return nil
	}))
	return nil
}

// newLoopbackCertificate returns a certificate, and that of its authority in PEM.
func newLoopbackCertificate(expires time.Time) (dynamiccertificates.SNICertKeyContentProvider, []byte, error) {
	name, began := genericapiserver.LoopbackClientServerNameOverride, time.Now().Add(-time.Hour)
	authority, err := pki.NewAuthority(name, began, expires)
	if err != nil {
		return nil, nil, err
	}
	certPEM, keyPEM, err := authority.Issue(&x509.Certificate{
		DNSNames: []string{name}, NotBefore: began, NotAfter: expires, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return nil, nil, err
	}
	certificate, err := dynamiccertificates.NewStaticSNICertKeyContent("loopback", certPEM, keyPEM, name)
	return certificate, authority.CertPEM(), err
}
