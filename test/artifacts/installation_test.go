// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/winnow"
)

// installation runs the commands of docs/install.md in a copy of the manifests, while namespaces are deleted beside it.
type installation struct {
	t       *testing.T
	cluster *cluster.Cluster
	dir     string            // has the folder artifacts
	instead map[string]string // paths in commands that are replaced by others
	serving winnow.Certificate
}

func newInstallation(t *testing.T, c *cluster.Cluster) *installation {
	t.Helper()
	i := &installation{t: t, cluster: c, dir: t.TempDir(), instead: map[string]string{}}
	if err := os.CopyFS(filepath.Join(i.dir, "artifacts"), os.DirFS("../../artifacts")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Dir(i.binary()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := winnow.Build(t.Context(), i.binary(), false, os.Stderr); err != nil {
		t.Fatal(err)
	}
	i.deleteNamespaces()
	return i
}

// binary is where artifacts/certificates.sh looks for Winnow.
func (i *installation) binary() string { return filepath.Join(i.dir, "bin", "winnow-apiserver") }

// documented are the commands of the first block below a heading.
func (i *installation) documented(heading string) []string {
	i.t.Helper()
	return i.documentedBlock(heading, 0)
}

var consoleBlock = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")

func (i *installation) documentedBlock(heading string, block int) []string {
	i.t.Helper()
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		i.t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := consoleBlock.FindAllStringSubmatch(section, -1)
	if !found || len(blocks) <= block {
		i.t.Fatalf("docs/install.md has no block %d of commands below %q", block, heading)
	}
	return strings.Split(strings.TrimSpace(blocks[block][1]), "\n")
}

// deleteNamespaces creates a namespace and deletes it, over and over until the test ends, and once more after that. Each has to go.
func (i *installation) deleteNamespaces() {
	over, gone := make(chan struct{}), make(chan struct{})
	i.t.Cleanup(func() { close(over); <-gone })
	go func() {
		defer close(gone)
		for last := false; !last; {
			select {
			case <-over:
				last = true
			default:
			}
			if err := i.deleteNamespace(); err != nil {
				i.t.Errorf("a namespace is not deleted beside the commands: %v", err)
				return
			}
		}
	}()
}

func (i *installation) deleteNamespace() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for _, args := range [][]string{{"create", "namespace", "beside"}, {"delete", "namespace", "beside", "--timeout=90s"}} {
		if _, stderr, err := i.cluster.Kubectl(ctx, args...); err != nil {
			return fmt.Errorf("%w: %s", err, stderr)
		}
	}
	return nil
}

// run runs a command and returns what it says.
func (i *installation) run(command string) (string, error) {
	for path, other := range i.instead {
		command = strings.ReplaceAll(command, path, other)
	}
	cmd := exec.CommandContext(i.t.Context(), "bash", "-c", command)
	cmd.Dir = i.dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+i.cluster.Kubeconfig(), "TIMEOUT=10s",
		"PATH="+filepath.Dir(i.cluster.KubectlPath())+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// must is run for a command that has to succeed.
func (i *installation) must(command string) {
	i.t.Helper()
	if out, err := i.run(command); err != nil {
		i.t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// replace edits a manifest of the copy.
func (i *installation) replace(manifest, old, replacement string) {
	i.t.Helper()
	path := filepath.Join(i.dir, "artifacts", manifest)
	text, err := os.ReadFile(path)
	if err != nil {
		i.t.Fatal(err)
	}
	if bytes.Count(text, []byte(old)) != 1 {
		i.t.Fatalf("%s does not have exactly once:\n%s", manifest, old)
	}
	if err := os.WriteFile(path, bytes.Replace(text, []byte(old), []byte(replacement), 1), 0o600); err != nil {
		i.t.Fatal(err)
	}
}

func (i *installation) kubectl(args ...string) string {
	i.t.Helper()
	out, stderr, err := i.cluster.Kubectl(i.t.Context(), args...)
	if err != nil {
		i.t.Fatalf("kubectl %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr)
	}
	return out
}

// get decodes an object of the namespace of Winnow.
func (i *installation) get(resource, name string, into any) {
	i.t.Helper()
	if err := json.Unmarshal([]byte(i.kubectl("get", resource, name, "-n", namespace, "-o", "json")), into); err != nil {
		i.t.Fatal(err)
	}
}

// startWinnow runs Winnow as the kubelet would, with the flags of the Deployment and the certificate of the Secret, and lets the
// manifest of the APIService name its port.
func (i *installation) startWinnow() *winnow.Server {
	i.t.Helper()
	deployment := &appsv1.Deployment{}
	i.get("deployment", "winnow", deployment)
	var flags []string
	for _, arg := range deployment.Spec.Template.Spec.Containers[0].Args {
		if !strings.HasPrefix(arg, "--secure-port=") && !strings.HasPrefix(arg, "--tls-") { // paths and ports of the container
			flags = append(flags, arg)
		}
	}
	server, err := winnow.Start(i.t.Context(), i.cluster, winnow.Options{Flags: flags, Binary: i.binary(), Installed: i.writeCertificate()})
	if err != nil {
		i.t.Fatal(err)
	}
	i.replace("apiservice.yaml", "    port: 443\n", fmt.Sprintf("    port: %d\n", server.Port()))
	return server
}

// writeCertificate writes the Secret into files, as a volume has it.
func (i *installation) writeCertificate() *winnow.Certificate {
	i.t.Helper()
	secret := &corev1.Secret{}
	i.get("secret", "winnow-serving-cert", secret)
	c := &i.serving
	c.CertFile, c.KeyFile = filepath.Join(i.dir, "tls.crt"), filepath.Join(i.dir, "tls.key")
	c.CAPEM = append(c.CAPEM, secret.Data["ca.crt"]...)
	for path, key := range map[string]string{c.CertFile: "tls.crt", c.KeyFile: "tls.key"} {
		if err := os.WriteFile(path, secret.Data[key], 0o600); err != nil {
			i.t.Fatal(err)
		}
	}
	return c
}

// servingCertificate is what the Secret holds, verified as kube-apiserver does: against the CA bundle of the APIService,
// for the name of the Service.
func (i *installation) servingCertificate() *x509.Certificate {
	i.t.Helper()
	secret := &corev1.Secret{}
	i.get("secret", "winnow-serving-cert", secret)
	block, _ := pem.Decode(secret.Data["tls.crt"])
	if block == nil {
		i.t.Fatal("the Secret has no PEM in tls.crt")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		i.t.Fatal(err)
	}
	bundle, err := base64.StdEncoding.DecodeString(
		i.kubectl("get", "apiservice", "v1alpha1.gc.winnow.dev", "-o", "jsonpath={.spec.caBundle}"),
	)
	if err != nil {
		i.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	if _, err := certificate.Verify(x509.VerifyOptions{DNSName: "winnow.winnow-system.svc", Roots: roots}); err != nil {
		i.t.Error(err)
	}
	if left := time.Until(certificate.NotAfter); left < 365*24*time.Hour {
		i.t.Errorf("the certificate is valid for %s only", left)
	}
	return certificate
}

// wantApart checks that the replicas are on different nodes.
func (i *installation) wantApart() {
	i.t.Helper()
	nodes := strings.Fields(
		i.kubectl("get", "pods", "-n", namespace, "-l", "app.kubernetes.io/name=winnow", "-o", "jsonpath={.items[*].spec.nodeName}"),
	)
	if len(nodes) != 2 || nodes[0] == nodes[1] {
		i.t.Errorf("the replicas are on the nodes %q, want two different ones", nodes)
	}
}
