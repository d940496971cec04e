// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/winnow-dev/winnow/test/cluster"
)

// ways are the headings of docs/install.md that say how to install, upgrade and uninstall.
var ways = map[string]struct{ install, upgrade, uninstall, forget string }{
	"helm":    {"### With Helm", "### Upgrade with Helm", "### Uninstall with Helm", "### Delete the policies too"},
	"kubectl": {"### With kubectl", "### Upgrade with kubectl", "### Uninstall with kubectl", "### Delete the policies too"},
}

// TestDocumentedCommands runs the commands of docs/install.md on a separate cluster. Whatever goes wrong, namespaces are deleted meanwhile.
func TestDocumentedCommands(t *testing.T) {
	c, err := cluster.Start(t.Context(), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	for name, way := range ways {
		t.Run(name+", nothing answers", func(t *testing.T) {
			// kwok says that the Pods are ready, but no process is behind them: as with an image that cannot be pulled, nobody registers.
			i := newInstallation(t, c)
			i.run(way.install)
			i.wantApart()
			if left := i.kubectl("get", apiService, "--ignore-not-found"); left != "" {
				t.Errorf("the APIService is there:\n%s", left)
			}
			i.run(way.uninstall)
		})
		t.Run(name+", all is well", func(t *testing.T) {
			i := newInstallation(t, c)
			i.run(way.install)
			server := i.startWinnow()
			i.wantServed()
			first := i.servingCertificate()
			if name == "helm" {
				t.Run("helm test", func(t *testing.T) { i.wantHelmTest(t) })
				i.followNotes()
			}
			i.kubectl("create", "namespace", "team-a")
			i.run("### A first policy")
			i.kubectl("wait", "-n", "team-a", "--for=condition=Ready", "--timeout=5m", "cup", "--all")

			i.run(way.upgrade)
			i.kubectl("delete", apiService) // what Winnow has registered, it registers again
			i.wantServed()
			if !i.servingCertificate().Equal(first) {
				t.Error("upgrading changed the certificate")
			}

			// Winnow still runs when its rights are gone, as Pods do that end.
			i.run(way.uninstall)
			i.kubectl("wait", "--for=delete", "--timeout=5m", apiService)
			if err := errors.Join(server.Signal(syscall.SIGTERM), ended(server)); err != nil {
				t.Error(err)
			}
			i.wantPolicyKept()
			i.run(way.forget)
			if left := i.kubectl("get", "crd", "-o", "name"); strings.Contains(left, "winnow") {
				t.Errorf("left of Winnow:\n%s", left)
			}
			i.kubectl("delete", "namespace", "team-a")
		})
	}
}

// ended waits until the process has ended.
func ended(p *cluster.Process) error {
	select {
	case <-p.Done():
		return nil
	case <-time.After(5 * time.Minute):
		return errors.New("winnow does not end")
	}
}

// wantServed waits until Winnow has registered itself, and kube-apiserver reaches it.
func (i *installation) wantServed() {
	i.t.Helper()
	i.kubectl("wait", "--for=create", "--timeout=5m", apiService)
	i.kubectl("wait", "--for=condition=Available", "--timeout=5m", apiService)
}

var commandsInNotes = regexp.MustCompile(`(?m)(?:^     .*\n)+`)

// followNotes runs the commands that Helm prints after the installation, down to a policy that deletes.
func (i *installation) followNotes() {
	i.t.Helper()
	notes, err := i.command("helm get notes winnow --namespace winnow-system")
	blocks := commandsInNotes.FindAllString(notes+"\n", -1)
	if err != nil || len(blocks) != 3 {
		i.t.Fatalf("found %d blocks of commands, want 3; error %v\n%s", len(blocks), err, notes)
	}
	i.kubectl("create", "namespace", "notes")
	for _, block := range blocks {
		commands := strings.ReplaceAll(block, "NAMESPACE", "notes") // As somebody would paste them.
		if out, err := i.command("set -o errexit\n" + commands); err != nil {
			i.t.Fatalf("%s%v\n%s", commands, err, out)
		}
	}
	if mode := i.kubectl("get", "cup", "defaults", "-n", "notes", "-o", "jsonpath={.spec.mode}"); mode != "Enforce" {
		i.t.Errorf("after the commands of the notes, the policy is in mode %q", mode)
	}
	i.kubectl("delete", "namespace", "notes")
}

// wantHelmTest runs what "helm test" would run in a Pod, with the rights that each ServiceAccount has.
func (i *installation) wantHelmTest(t *testing.T) {
	hooks, err := i.command("helm get hooks winnow --namespace winnow-system")
	if err != nil {
		t.Fatalf("%v\n%s", err, hooks)
	}
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(find(t, hooks, "Pod", "winnow-test").Object, pod); err != nil {
		t.Fatal(err)
	}
	if pod.Spec.ServiceAccountName != "" {
		t.Errorf("the Pod runs as %s, want as every other", pod.Spec.ServiceAccountName)
	}
	user := serviceAccount("default")
	kubeconfig, err := i.cluster.KubeconfigFor(user.name, user.groups...)
	if err != nil {
		t.Fatal(err)
	}
	args := slices.Concat(pod.Spec.Containers[0].Args, []string{"--kubeconfig=" + kubeconfig})
	if out, err := exec.CommandContext(t.Context(), i.binary(), args...).CombinedOutput(); err != nil {
		t.Errorf("winnow-apiserver %q: %v\n%s", args, err, out)
	}
}

func (i *installation) wantPolicyKept() {
	i.t.Helper()
	if stored := i.kubectl("get", storedKind, "-n", "team-a", "-o", "name"); strings.Count(stored, "\n") != 1 {
		i.t.Errorf("stored policies after the uninstall:\n%s", stored)
	}
}

// servingCertificate is what Winnow has made, verified as kube-apiserver does: against the CA bundle of the APIService, for the name of the
// Service.
func (i *installation) servingCertificate() *x509.Certificate {
	i.t.Helper()
	encoded := map[string]string{
		"certificate": i.kubectl("get", "secret", "winnow-certificates", "-n", namespace, "-o", `jsonpath={.data.tls\.crt}`),
		"bundle":      i.kubectl("get", apiService, "-o", "jsonpath={.spec.caBundle}"),
	}
	decoded := map[string][]byte{}
	for what, text := range encoded {
		content, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			i.t.Fatal(err)
		}
		decoded[what] = content
	}
	certificate, err := parseCertificate(decoded["certificate"])
	if err != nil {
		i.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(decoded["bundle"])
	if _, err := certificate.Verify(x509.VerifyOptions{DNSName: "winnow.winnow-system.svc", Roots: roots}); err != nil {
		i.t.Error(err)
	}
	if life := certificate.NotAfter.Sub(certificate.NotBefore); life > 8*24*time.Hour {
		i.t.Errorf("the certificate is valid for %s, want a week", life)
	}
	return certificate
}

func parseCertificate(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("no PEM: %q", text)
	}
	return x509.ParseCertificate(block.Bytes)
}
