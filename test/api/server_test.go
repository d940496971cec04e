// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	"github.com/winnow-dev/winnow/test/winnow"
)

const policiesPath = "/apis/gc.winnow.dev/v1alpha1/cleanuppolicies"

func TestHealth(t *testing.T) {
	t.Parallel()
	for path, wants := range map[string][]string{
		"/livez?verbose":  {"[+]ping ok", "livez check passed"},
		"/readyz?verbose": {"[+]storage ok", "[+]request-header-ca ok", "[+]informer-sync ok", "[+]winnow-controller ok", "[+]shutdown ok", "readyz check passed"},
	} {
		text, err := server.Replicas[0].Get(t.Context(), path)
		if err != nil {
			t.Error(err)
		}
		contains(t, text, wants...)
	}
}

// TestShutdown ends a replica that writes its log as JSON and its own audit log, while a client watches.
func TestShutdown(t *testing.T) {
	t.Parallel()
	p := scoped(t, ofNamespace)
	dir := t.TempDir()
	policy, auditLog := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	const everything = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"
	if err := os.WriteFile(policy, []byte(everything), 0o600); err != nil {
		t.Fatal(err)
	}
	replica, err := server.AddReplica(t.Context(), "--logging-format=json", "--audit-policy-file="+policy, "--audit-log-path="+auditLog)
	if err != nil {
		t.Fatal(err)
	}
	w := watchReplica(t, replica, p.id)
	p.create("a", `{ttlAfterFinished: 1h}`)
	if event, _ := next(t, w, false); event != watch.Added {
		t.Errorf("got %s", event)
	}
	if err := replica.Stop(); err != nil {
		t.Error(err)
	}
	for range w.ResultChan() { // ends, since the server has
	}
	log, err := replica.Log()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(log) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON in the log: %s", line)
		}
	}
	contains(t, log, `"msg":"Starting Winnow"`)
	audited, err := os.ReadFile(auditLog)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(audited), `"kind":"Event"`, `"resource":"cleanuppolicies"`, `"verb":"watch"`)
}

// TestProfiles: whoever may not read them learns nothing of where time and memory go.
func TestProfiles(t *testing.T) {
	t.Parallel()
	kubectl(t, "create", "clusterrole", "profiles", "--verb=get", "--non-resource-url=/debug/pprof/*")
	kubectl(t, "create", "clusterrolebinding", "profiles", "--clusterrole=profiles", "--user=profiler")
	for user, tc := range map[string]struct {
		status int
		want   string
	}{
		"profiler":  {http.StatusOK, "heap profile:"},
		"passer-by": {http.StatusForbidden, `User \"passer-by\" cannot get path \"/debug/pprof/heap\"`},
	} {
		config, err := shared.UserConfig(user)
		if err != nil {
			t.Fatal(err)
		}
		config.Host = fmt.Sprintf("https://localhost:%d", server.Replicas[0].Port)
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, func(context.Context) error { // The right takes a moment to be known.
			response, err := client.Get(config.Host + "/debug/pprof/heap?debug=1")
			if err != nil {
				return err
			}
			body, err := io.ReadAll(response.Body)
			if err := errors.Join(err, response.Body.Close()); err != nil {
				return err
			}
			if response.StatusCode != tc.status || !strings.Contains(string(body), tc.want) {
				return fmt.Errorf("%s got %s: %.200s", user, response.Status, body)
			}
			return nil
		})
	}
}

// watchReplica watches past the aggregator.
func watchReplica(t *testing.T, replica *winnow.Replica, namespace string) watch.Interface {
	t.Helper()
	config := shared.RESTConfig()
	config.Host = fmt.Sprintf("https://localhost:%d", replica.Port)
	direct, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	w, err := direct.GcV1alpha1().CleanupPolicies(namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

// TestRefusesToStart says for each wrong start what is wrong and what to do.
func TestRefusesToStart(t *testing.T) {
	t.Parallel()
	powerless, err := shared.KubeconfigFor("nobody-in-particular")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		flags []string
		wants []string
	}{
		"no rights": {
			[]string{"--kubeconfig=" + powerless},
			[]string{"rights are missing", "kubectl auth can-i list namespaces", "kubectl auth can-i watch flowschemas.flowcontrol.apiserver.k8s.io"},
		},
		"authentication not readable": {
			[]string{"--authentication-kubeconfig=" + powerless},
			[]string{"extension-apiserver-authentication-reader", `User \"nobody-in-particular\" cannot get resource`},
		},
		"client CA as request-header CA": {
			[]string{"--requestheader-client-ca-file=" + shared.ClientCA()},
			[]string{"could claim to be anybody", "--requestheader-allowed-names"},
		},
		"wrong flags": {
			[]string{"--concurrent-deletions=0", "--leader-elect-renew-deadline=1h"},
			[]string{"--concurrent-deletions is 0", "--leader-elect-lease-duration (15s) must be longer than --leader-elect-renew-deadline (1h0m0s)"},
		},
		"unknown flag":  {[]string{"--ttl=1h"}, []string{"Error: unknown flag: --ttl", "winnow-apiserver --help"}},
		"no kubeconfig": {[]string{"--kubeconfig=/nowhere"}, []string{"cannot read --kubeconfig=/nowhere"}},
	} {
		replica, err := server.NewReplica(append(tc.flags, "--logging-format=text")...)
		if err != nil {
			t.Fatal(err)
		}
		if err := replica.StartOnly(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case <-replica.Process.Done():
			if replica.Process.Wait() == nil {
				t.Errorf("%s: exit status 0", name)
			}
		case <-time.After(waitMost):
			t.Errorf("%s: it runs", name)
			continue
		}
		log, err := replica.Log()
		if err != nil {
			t.Fatal(err)
		}
		contains(t, log, tc.wants...)
	}
}

// TestForgedHeaders: who a request speaks for is believed of the aggregator alone.
func TestForgedHeaders(t *testing.T) {
	t.Parallel()
	user, err := shared.UserConfig("bob")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		client rest.TLSClientConfig
		status int
		want   string
	}{
		"no certificate":         {rest.TLSClientConfig{}, http.StatusForbidden, `User \"system:anonymous\" cannot list`},
		"a user's certificate":   {user.TLSClientConfig, http.StatusForbidden, `User \"bob\" cannot list`},
		"another name of the CA": {frontProxy(t, "somebody-else"), http.StatusUnauthorized, "Unauthorized"},
		"the aggregator's own":   {frontProxy(t, "front-proxy-client"), http.StatusOK, `"kind":"CleanupPolicyList"`},
	} {
		status, body := forge(t, tc.client)
		if status != tc.status || !strings.Contains(body, tc.want) {
			t.Errorf("%s: got %d %s, want %d with %s", name, status, body, tc.status, tc.want)
		}
	}
}

func frontProxy(t *testing.T, name string) rest.TLSClientConfig {
	t.Helper()
	certFile, keyFile, err := shared.FrontProxyCert(name)
	if err != nil {
		t.Fatal(err)
	}
	return rest.TLSClientConfig{CertFile: certFile, KeyFile: keyFile}
}

// forge lists policies of a replica with this certificate, in the name of an administrator.
func forge(t *testing.T, client rest.TLSClientConfig) (status int, body string) {
	t.Helper()
	ca, err := os.ReadFile(shared.ClientCA()) // signs the serving certificates too
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	config := &tls.Config{RootCAs: roots, ServerName: "localhost"}
	switch {
	case client.CertFile != "":
		certificate, err := tls.LoadX509KeyPair(client.CertFile, client.KeyFile)
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{certificate}
	case client.CertData != nil:
		certificate, err := tls.X509KeyPair(client.CertData, client.KeyData)
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	request, err := http.NewRequestWithContext(
		t.Context(),
		http.MethodGet,
		fmt.Sprintf("https://127.0.0.1:%d%s", server.Replicas[0].Port, policiesPath),
		nil,
	)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Remote-User", "admin")
	request.Header.Set("X-Remote-Group", "system:masters")
	response, err := (&http.Transport{TLSClientConfig: config, DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}
