// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"crypto/x509"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/winnow"
)

// TestDocumentedOrder runs the commands of docs/install.md one after the other, the next one also when one fails, as somebody does
// who pastes them into a shell. Whatever goes wrong, namespaces are deleted meanwhile.
func TestDocumentedOrder(t *testing.T) {
	c, err := cluster.Start(t.Context(), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	for _, tc := range []struct {
		name string
		edit func(*installation)
		skip string // the command that is forgotten
		want string // what the registration says
	}{
		{
			name: "an image that cannot be pulled",
			edit: func(i *installation) {
				const template = "      labels:\n        app.kubernetes.io/part-of: winnow\n        app.kubernetes.io/name: winnow\n    spec:\n"
				i.replace("install/20-server.yaml", template, "      annotations: {test.winnow.dev/run-for: never}\n"+template)
				i.replace("install/20-server.yaml", "winnow-apiserver:v0.1.0", "no-such-image:v0.1.0")
			},
			want: "not registered: not all replicas are ready",
		},
		{name: "no certificate", skip: "certificates.sh", want: "not registered: there is no serving certificate"},
		{
			name: "a cluster of one node, where nothing answers",
			edit: func(i *installation) { i.instead["artifacts/install/"] = "artifacts/one-node/" },
			want: "so the APIService is deleted again: MissingEndpoints: ",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			i := newInstallation(t, c)
			if tc.edit != nil {
				tc.edit(i)
			}
			said := i.install(tc.skip)
			if !strings.Contains(said, tc.want) {
				t.Errorf("the registration said:\n%s\nwant %q", said, tc.want)
			}
			if left := i.kubectl("get", "apiservice", "v1alpha1.gc.winnow.dev", "--ignore-not-found"); left != "" {
				t.Errorf("the APIService is there:\n%s", left)
			}
			i.uninstall()
		})
	}
	t.Run("all is well", func(t *testing.T) { installWell(t, newInstallation(t, c)) })
}

// install runs the documented commands but for the one that is skipped, and returns what the last one said.
func (i *installation) install(skip string) string {
	i.t.Helper()
	var said string
	for _, command := range i.documented("Install") {
		if skip != "" && strings.Contains(command, skip) {
			continue
		}
		said, _ = i.run(command)
	}
	return said
}

// uninstall runs the documented commands. All of them must succeed.
func (i *installation) uninstall() {
	i.t.Helper()
	for block := range 2 {
		for _, command := range i.documentedBlock("Uninstall", block) {
			if strings.HasPrefix(command, "kubectl delete apiservice") {
				command += " --ignore-not-found"
			}
			i.must(command)
		}
	}
}

// installWell installs, with a process of Winnow in the place of the Pods, then renews, upgrades and uninstalls.
func installWell(t *testing.T, i *installation) {
	const ns = "order"
	i.replace("install/20-server.yaml", `  selector:
    app.kubernetes.io/name: winnow
  ports:
  - name: https
    port: 443
    targetPort: https
`, "  type: ExternalName\n  externalName: localhost\n")
	var server *winnow.Server
	for _, command := range i.documented("Install") {
		if strings.Contains(command, "register.sh") {
			server = i.startWinnow()
		}
		i.must(command)
	}
	i.wantApart()
	i.kubectl("create", "namespace", ns)
	i.must("kubectl apply -n " + ns + " -f artifacts/examples/preview.yaml")
	i.kubectl("wait", "-n", ns, "--for=condition=Ready", "--timeout=30s", "cup", "--all")

	first := i.servingCertificate()
	for _, command := range i.documented("Upgrading") {
		i.must(command)
	}
	if !i.servingCertificate().Equal(first) {
		t.Error("upgrading changed the certificate")
	}
	i.must("artifacts/certificates.sh")
	renewed := i.servingCertificate()
	if renewed.Equal(first) {
		t.Error("the second run of certificates.sh did not renew the certificate")
	}
	wantExpiry(t, server.Replicas[0], first)
	i.writeCertificate() // as the kubelet does
	wantExpiry(t, server.Replicas[0], renewed)
	i.kubectl("wait", "--for=condition=Available", "--timeout=60s", "apiservice/v1alpha1.gc.winnow.dev")
	i.kubectl("wait", "-n", ns, "--for=condition=Ready", "--timeout=30s", "cup", "--all")

	if err := server.Stop(); err != nil { // also deletes the APIService
		t.Error(err)
	}
	i.uninstall()
}

// wantExpiry waits until the metric of the replica tells until when this certificate is valid.
func wantExpiry(t *testing.T, r *winnow.Replica, certificate *x509.Certificate) {
	t.Helper()
	const name = "\nwinnow_serving_certificate_expiration_timestamp_seconds "
	eventually(t, func() error {
		all, err := r.Get(t.Context(), "/metrics")
		if err != nil {
			return err
		}
		_, value, _ := strings.Cut(all, name)
		value, _, _ = strings.Cut(value, "\n")
		if seconds, err := strconv.ParseFloat(value, 64); err != nil || seconds != float64(certificate.NotAfter.Unix()) {
			return fmt.Errorf("the metric is %q (error %w), want %d", value, err, certificate.NotAfter.Unix())
		}
		return nil
	})
}
