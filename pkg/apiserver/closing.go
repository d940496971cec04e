// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"

	genericapiserver "k8s.io/apiserver/pkg/server"
)

// withClosing answers a request that comes after the shutdown began, and closes its connection afterwards. kube-apiserver keeps connections
// for as long as they last. Without this it would use them until this replica ends, and lose a request that is under way just then.
//
// A watch always closes its connection. It ends with this replica, and kube-apiserver would use the connection for another request at the
// very moment at which it is closed.
func withClosing(handler http.Handler, shutdown <-chan struct{}, longRunning func(*http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		closing := longRunning(r)
		select {
		case <-shutdown:
			closing = true
		default:
		}
		if closing {
			w.Header().Set("Connection", "close")
		}
		handler.ServeHTTP(w, r)
	})
}

// longRunning returns what says whether a request is a watch. A request that cannot be read is none: it gets an error.
func longRunning(config *genericapiserver.Config) func(*http.Request) bool {
	return func(r *http.Request) bool {
		info, err := config.RequestInfoResolver.NewRequestInfo(r)
		return err == nil && config.LongRunningFunc(r, info)
	}
}
