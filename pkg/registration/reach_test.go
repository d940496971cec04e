// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// TestAsk: what a kube-apiserver says that does not trust the certificate counts only if its APIService does not show it.
func TestAsk(t *testing.T) {
	for name, c := range map[string]struct {
		status    int
		body      string
		version   string
		want      string // in the error; none if empty
		untrusted bool
	}{
		"an answer":          {http.StatusOK, "{}", "", "", false},
		"untrusted":          {503, "error trying to reach service: x509: certificate has expired", "v1.35.4", "x509: certificate has expired", true},
		"a TLS alert":        {503, "error trying to reach service: remote error: tls: bad certificate", "v1.34.4+k3s1", "tls: bad", true},
		"shown, so no news":  {503, "error trying to reach service: x509: certificate has expired", "v1.36.0", "currently unable", false},
		"another fault":      {503, "error trying to reach service: connection refused", "v1.34.0", "currently unable", false},
		"an unknown version": {503, "error trying to reach service: x509: certificate has expired", "", "currently unable", false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/version" {
					fmt.Fprintf(w, `{"gitVersion": %q}`, c.version)
					return
				}
				if r.URL.Path != "/apis/gc.winnow.dev/v1alpha1" {
					t.Errorf("asked for %s", r.URL)
				}
				w.WriteHeader(c.status) // The aggregator answers in plain text.
				fmt.Fprintln(w, c.body)
			}))
			defer server.Close()
			client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			err = Ask(t.Context(), client)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if errors.Is(err, errUntrusted) != c.untrusted || apierrors.IsServiceUnavailable(err) != (c.status == 503) {
				t.Errorf("untrusted: %v, unavailable: %v", errors.Is(err, errUntrusted), apierrors.IsServiceUnavailable(err))
			}
		})
	}
}
