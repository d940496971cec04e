// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/component-base/metrics"

	"github.com/winnow-dev/winnow/pkg/pki"
)

// TestCertificateExpiry: the metric is about the certificate in the files, also after they have changed.
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
	self, err := pki.NewAuthority("winnow", time.Time{}, notAfter)
	if err != nil {
		t.Fatal(err)
	}
	keyPEM, err := self.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{certFile: self.CertPEM(), keyFile: keyPEM} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
