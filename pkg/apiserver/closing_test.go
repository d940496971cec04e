// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"

	genericapiserver "k8s.io/apiserver/pkg/server"
)

// TestClosing: requests share a connection until the shutdown begins, and after a watch another one is used. From the shutdown on, each request
// is answered, and the next one uses another connection.
func TestClosing(t *testing.T) {
	shutdown := make(chan struct{})
	generic := genericapiserver.NewConfig(Codecs)
	generic.RequestInfoResolver = genericapiserver.NewRequestInfoResolver(generic)
	server := httptest.NewServer(withClosing(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}), shutdown, longRunning(generic)))
	defer server.Close()
	const policies = "/apis/gc.winnow.dev/v1alpha1/cleanuppolicies"
	reused := func(query string) bool {
		t.Helper()
		var got httptrace.GotConnInfo
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { got = info }})
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+policies+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusNoContent {
			t.Error(response.Status)
		}
		return got.Reused
	}
	reused("") // the first connection
	if !reused("") {
		t.Error("another connection before the shutdown")
	}
	reused("?watch=1") // the last answer of the first connection
	if reused("") {
		t.Error("the connection of a watch")
	}
	close(shutdown)
	reused("") // the last answer of the second connection
	if reused("") {
		t.Error("the same connection after the shutdown began")
	}
}
