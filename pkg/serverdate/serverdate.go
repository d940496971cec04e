// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serverdate tells the time of the API server: that in the Date header of its answers (RFC 9110, 6.6.1).
package serverdate

import (
	"context"
	"net/http"
	"time"
)

type key struct{}

// With returns a context for a request. If the client uses a Reader, date is set to the time in the Date header of the answer, which is the
// clock of the API server. It is left alone if a cache has answered, which says so by an Age.
func With(ctx context.Context, date *time.Time) context.Context {
	return context.WithValue(ctx, key{}, date)
}

// Reader reads the Date header of answers to requests whose context is from With.
type Reader struct{ http.RoundTripper }

// NewReader wraps the transport of a client, see rest.Config.Wrap.
func NewReader(rt http.RoundTripper) http.RoundTripper { return Reader{rt} }

// RoundTrip implements http.RoundTripper.
func (r Reader) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.RoundTripper.RoundTrip(request)
	if date, ok := request.Context().Value(key{}).(*time.Time); ok && err == nil && response.Header.Get("Age") == "" {
		if at, err := http.ParseTime(response.Header.Get("Date")); err == nil {
			*date = at
		}
	}
	return response, err
}
