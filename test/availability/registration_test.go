// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"encoding/base64"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"

	"github.com/winnow-dev/winnow/test/winnow"
)

// TestRegistration: one command installs. Winnow makes its certificates and its APIService with the rights of artifacts/install, repairs both,
// and the APIService goes when these rights are uninstalled.
func TestRegistration(t *testing.T) {
	start(t, 2)
	kubectl(t, "get", "cleanuppolicies", "--all-namespaces")
	role := field(t, "clusterrole/winnow:registration", "{.metadata.uid}")
	if owner := field(t, apiService, "{.metadata.ownerReferences[*].uid}"); owner != role {
		t.Errorf("the APIService is owned by %q, not by the ClusterRole %q", owner, role)
	}
	if kind := field(t, secret, "{.type}"); kind != "kubernetes.io/tls" {
		t.Errorf("the Secret is of type %q", kind)
	}
	for _, right := range []string{"get secrets", "get secret/other", "create secrets", "delete " + secret, "get apiservice/v1.apps", "create apiservices"} {
		args := append([]string{"auth", "can-i"}, strings.Fields(right)...)
		out, _, _ := shared.Kubectl(whole, append(args, "-n", winnow.Namespace, "--as", winnow.User)...)
		if strings.TrimSpace(out) != "no" {
			t.Errorf("may Winnow %s? %s", right, out)
		}
	}

	authorities := field(t, secret, `{.data.ca\.crt}`)
	kubectl(t, "delete", secret, "-n", winnow.Namespace)
	eventually(t, "the Secret is there again", func() bool { return field(t, secret, `{.data.ca\.crt}`) == authorities })
	kubectl(t, "patch", secret, "-n", winnow.Namespace, "-p", `{"data":{"tls.crt":"Z2FyYmxlZA=="}}`)
	eventually(t, "the Secret is repaired", func() bool { return field(t, secret, `{.data.tls\.crt}`) != "Z2FyYmxlZA==" })
	if now := field(t, secret, `{.data.ca\.crt}`); now != authorities {
		t.Error("another authority was made, though Winnow knew the last one")
	}
	kubectl(t, "patch", apiService, "-p", `{"spec":{"service":{"name":"other"}}}`, "--type=merge")
	eventually(t, "the APIService is repaired", func() bool { return field(t, apiService, "{.spec.service.name}") == "winnow" })

	uid := field(t, apiService, "{.metadata.uid}")
	kubectl(t, "delete", apiService)
	eventually(t, "the APIService is there again", func() bool {
		now := field(t, apiService, "{.metadata.uid}")
		return now != "" && now != uid
	})
	kubectl(t, "delete", "clusterrole/winnow:registration")
	kubectl(t, "delete", "role/winnow:certificates", "-n", winnow.Namespace)
	eventually(t, "the APIService is gone", func() bool { return field(t, apiService, "{.metadata.uid}") == "" })
	eventually(t, "the Secret is gone", func() bool { return field(t, secret, "{.metadata.uid}") == "" })
}

// TestRotation: certificates, including the authority's, are renewed while a client sends requests, and none fails.
func TestRotation(t *testing.T) {
	// The next test must not begin with a certificate and an authority that end within a minute: a new authority is trusted only after that.
	t.Cleanup(func() { kubectl(t, "delete", secret, "-n", winnow.Namespace, "--ignore-not-found") })
	start(t, 2, "--certificate-lifetime=1m", "--certificate-authority-lifetime=1m")
	underLoad(t, func() {
		seen := map[string]bool{}
		eventually(t, "three authorities have signed", func() bool {
			pem, err := base64.StdEncoding.DecodeString(field(t, secret, `{.data.tls\.crt}`))
			must(t, err)
			chain, err := cert.ParseCertsPEM(pem)
			must(t, err)
			seen[string(chain[0].AuthorityKeyId)] = true
			return len(seen) == 3
		})
	})
}
