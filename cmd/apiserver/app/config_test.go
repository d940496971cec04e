// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// serveCluster answers what Winnow asks before it starts. Winnow may do everything there. It says of its proxy what trust has.
func serveCluster(t *testing.T, trust map[string]string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any
		switch {
		case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
			answer = &authorizationv1.SelfSubjectAccessReview{
				TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
				Status:   authorizationv1.SubjectAccessReviewStatus{Allowed: true},
			}
		case strings.HasSuffix(r.URL.Path, "/configmaps/"+authenticationConfigMap):
			answer = &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: trust}
		default:
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// optionsFor returns the options of a server behind a cluster, on a free port.
func optionsFor(t *testing.T, trust map[string]string, args ...string) *Options {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: serveCluster(t, trust).URL}
	config.Contexts["c"], config.CurrentContext = &clientcmdapi.Context{Cluster: "c"}, "c"
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	o := parse(t, append([]string{
		"--kubeconfig=" + kubeconfig, "--manage-storage=false", "--register=false", "--bind-address=127.0.0.1",
		"--shutdown-delay-duration=0s", "--shutdown-watch-termination-grace-period=0s",
	}, args...)...)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	serving := o.Recommended.SecureServing
	serving.Listener, serving.BindPort = listener, listener.Addr().(*net.TCPAddr).Port
	return o
}

// TestServer: a server is not ready before its storage is installed, the CA of the proxy in front is loaded, and the controller knows
// policies. It ends with its controller: otherwise it would go on serving, and delete nothing.
func TestServer(t *testing.T) {
	trust := map[string]string{
		"client-ca-file": newCA(t, "clients"), "requestheader-client-ca-file": newCA(t, "proxies"), "requestheader-allowed-names": `["proxy"]`,
	}
	config, err := optionsFor(t, trust).Config(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, check := range config.apiServer.GenericConfig.ReadyzChecks {
		names = append(names, check.Name())
	}
	for _, want := range []string{"storage-installed", "request-header-ca"} {
		if !slices.Contains(names, want) {
			t.Errorf("the server is ready without %s, after %q", want, names)
		}
	}
	server, err := config.Complete().New()
	if err != nil {
		t.Fatal(err)
	}
	lost := errors.New("the lease was lost")
	c := &fakeController{fails: make(chan error, 1)}
	c.fails <- lost
	server.controller, server.gate = c, openGate()
	ended := make(chan error, 1)
	go func() { ended <- server.Run(t.Context()) }()
	select {
	case err := <-ended:
		if !errors.Is(err, lost) {
			t.Errorf("the server ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the server goes on without its controller")
	}
}

// TestUntrustworthyProxy: the server does not start if it could not tell the proxy in front from others.
func TestUntrustworthyProxy(t *testing.T) {
	ca := newCA(t, "all")
	for want, trust := range map[string]map[string]string{
		"no request-header CA":      {"client-ca-file": ca},
		"could claim to be anybody": {"client-ca-file": ca, "requestheader-client-ca-file": ca},
	} {
		if _, err := optionsFor(t, trust).Config(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestReadyWithTheRequestHeaderCA: before it is loaded, requests of the aggregator would be anonymous.
func TestReadyWithTheRequestHeaderCA(t *testing.T) {
	loaded, err := dynamiccertificates.NewStaticCAContent("ca", []byte(newCA(t, "proxies")))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		config *authenticatorfactory.RequestHeaderConfig
		ready  bool
	}{
		"no proxy":   {nil, false},
		"not loaded": {&authenticatorfactory.RequestHeaderConfig{CAContentProvider: noCA{loaded}}, false},
		"loaded":     {&authenticatorfactory.RequestHeaderConfig{CAContentProvider: loaded}, true},
	} {
		if err := requestHeaderCALoaded(c.config).Check(nil); (err == nil) != c.ready {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type noCA struct {
	dynamiccertificates.CAContentProvider
}

func (noCA) CurrentCABundleContent() []byte { return nil }
