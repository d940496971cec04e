// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"
)

func newCA(t *testing.T, name string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		t.Fatal(err)
	}
	pem, err := cert.EncodeCertificates(ca)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem)
}

// TestTrust covers what lets anybody claim to be anybody: see "authenticating proxy" in the Kubernetes documentation.
func TestTrust(t *testing.T) {
	clients, proxies := newCA(t, "clients"), newCA(t, "proxies")
	const anyName, names = `[]`, `["front-proxy-client"]`
	for name, tc := range map[string]struct {
		clientCA, requestHeaderCA, allowedNames string
		want                                    string // part of the error; "" for none
	}{
		"a separate CA and a name":        {clients, proxies, names, ""},
		"a separate CA":                   {clients, proxies, anyName, ""},
		"one CA with a name":              {clients, clients, names, ""},
		"no client CA":                    {"", proxies, anyName, ""},
		"one CA, any name":                {clients, clients, anyName, "could claim to be anybody"},
		"one CA, names left out":          {clients, clients, "", "could claim to be anybody"},
		"one CA of several, any name":     {clients, proxies + clients, anyName, "could claim to be anybody"},
		"no request-header CA":            {clients, "", names, "no request-header CA"},
		"an unreadable request-header CA": {clients, "not PEM", names, "no request-header CA"},
		"unreadable names":                {clients, proxies, "front-proxy-client", "no JSON list"},
		"an unreadable client CA":         {"not PEM", proxies, anyName, "client CA cannot be read"},
	} {
		trust, err := effectiveTrust(NewOptions().Recommended.Authentication, map[string]string{
			"client-ca-file": tc.clientCA, "requestheader-client-ca-file": tc.requestHeaderCA, "requestheader-allowed-names": tc.allowedNames,
		})
		if err == nil {
			err = trust.check()
		}
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

// TestTrustOfFlags takes files before the ConfigMap, and the allowed names from where the CA comes from.
func TestTrustOfFlags(t *testing.T) {
	clients, proxies := newCA(t, "clients"), newCA(t, "proxies")
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, []byte(clients), 0o600); err != nil {
		t.Fatal(err)
	}
	data := map[string]string{
		"client-ca-file": clients, "requestheader-client-ca-file": proxies, "requestheader-allowed-names": `["front-proxy-client"]`,
	}
	o := parse(t, "--requestheader-client-ca-file="+file)
	trust, err := effectiveTrust(o.Recommended.Authentication, data)
	if err != nil {
		t.Fatal(err)
	}
	if err := trust.check(); err == nil {
		t.Error("the client CA as request-header CA for any name was accepted")
	}
	if _, err := effectiveTrust(parse(t, "--client-ca-file=/nowhere").Recommended.Authentication, data); err == nil {
		t.Error("a client CA that is not there was accepted")
	}
}
