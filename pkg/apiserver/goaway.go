// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import "net/http"

// withGoaway answers a request that comes after the shutdown began, and asks the client to open another connection for the next one. The
// aggregator keeps one connection for all its requests for as long as it lasts. Without this it would send them to a replica that has left
// the Service until that closes its connections, and some would be lost.
func withGoaway(handler http.Handler, shutdown <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-shutdown:
			w.Header().Set("Connection", "close") // With HTTP/2, net/http sends a GOAWAY instead of the header.
		default:
		}
		handler.ServeHTTP(w, r)
	})
}
