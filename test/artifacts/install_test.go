// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package artifacts tests the manifests that users install, on a real cluster.
package artifacts

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/winnow-dev/winnow/test/cluster"
)

const (
	install   = "../../artifacts/install/"
	namespace = "winnow-system"
)

// shared is the cluster of all tests here, with the manifests installed, and client has all rights there.
var (
	shared *cluster.Cluster
	client kubernetes.Interface
)

func TestMain(m *testing.M) {
	code, err := testMain(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func testMain(m *testing.M) (code int, err error) {
	if shared, err = cluster.Start(context.Background(), cluster.Options{}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.Stop()) }()
	if client, err = kubernetes.NewForConfig(shared.RESTConfig()); err != nil {
		return 1, err
	}
	if out, stderr, err := shared.Kubectl(context.Background(), "apply", "--validate=strict", "-f", install); err != nil {
		return 1, fmt.Errorf("kubectl apply -f %s: %w\n%s%s", install, err, out, stderr)
	}
	return m.Run(), nil
}

// TestCertificates installs as a cluster without cert-manager does, and renews.
func TestCertificates(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Fatal("install openssl: artifacts/certificates.sh needs it, and nothing else shows that it works")
	}
	kubectl(t, "apply", "-f", install)
	makeCertificates(t)
	first := servingCertificate(t)
	kubectl(t, "apply", "-f", install)
	if again := servingCertificate(t); !again.Equal(first) {
		t.Error("applying the manifests again changed the certificate")
	}
	makeCertificates(t)
	if renewed := servingCertificate(t); renewed.Equal(first) {
		t.Error("the second run of artifacts/certificates.sh did not renew the certificate")
	}
}

// makeCertificates runs artifacts/certificates.sh, which returns once both replicas are available.
func makeCertificates(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "../../artifacts/certificates.sh")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+shared.Kubeconfig(),
		"PATH="+filepath.Dir(shared.KubectlPath())+string(os.PathListSeparator)+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("certificates.sh: %v\n%s", err, out)
	}
}

// servingCertificate is what the Secret holds, verified as kube-apiserver does: against the CA bundle of the APIService,
// for the name of the Service.
func servingCertificate(t *testing.T) *x509.Certificate {
	t.Helper()
	secret, err := client.CoreV1().Secrets(namespace).Get(t.Context(), "winnow-serving-cert", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(secret.Data["tls.crt"])
	if block == nil {
		t.Fatal("the Secret has no PEM in tls.crt")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := base64.StdEncoding.DecodeString(kubectl(t, "get", "apiservice", "v1alpha1.gc.winnow.dev", "-o", "jsonpath={.spec.caBundle}"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	if _, err := certificate.Verify(x509.VerifyOptions{DNSName: "winnow.winnow-system.svc", Roots: roots}); err != nil {
		t.Error(err)
	}
	if left := time.Until(certificate.NotAfter); left < 365*24*time.Hour {
		t.Errorf("the certificate is valid for %s only", left)
	}
	return certificate
}

// kubectl runs it with all rights and returns its standard output.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, stderr, err := shared.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr)
	}
	return out
}
