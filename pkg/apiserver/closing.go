// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import "net/http"

// withClosing answers a request that comes after the shutdown began, and closes its connection afterwards. kube-apiserver keeps connections
// for as long as they last. Without this it would use them until this replica ends, and lose a request that is under way just then.
func withClosing(handler http.Handler, shutdown <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-shutdown:
			w.Header().Set("Connection", "close")
		default:
		}
		handler.ServeHTTP(w, r)
	})
}
