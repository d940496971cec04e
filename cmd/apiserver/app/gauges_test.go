// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/component-base/metrics"
)

// TestCertificateExpiry: the metric is that of the certificate in the files, also after they have changed.
func TestCertificateExpiry(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	first := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	writePair(t, certFile, keyFile, first)
	serving, err := dynamiccertificates.NewDynamicServingContentFromFiles("serving-cert", certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	registry := metrics.NewKubeRegistry()
	registry.CustomMustRegister(certificateExpiry(serving))
	for _, notAfter := range []time.Time{first, first.AddDate(1, 0, 0)} {
		writePair(t, certFile, keyFile, notAfter)
		if err := serving.RunOnce(context.Background()); err != nil {
			t.Fatal(err)
		}
		families, err := registry.Gather()
		if err != nil || len(families) != 1 || families[0].GetName() != "winnow_serving_certificate_expiration_timestamp_seconds" {
			t.Fatalf("gathered %v, error %v", families, err)
		}
		if got := families[0].Metric[0].GetGauge().GetValue(); got != float64(notAfter.Unix()) {
			t.Errorf("got %f, want %d", got, notAfter.Unix())
		}
	}
}

// writePair writes a self-signed certificate and its key.
func writePair(t *testing.T, certFile, keyFile string, notAfter time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "winnow"}, NotAfter: notAfter}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
