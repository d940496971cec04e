// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"net/http"
	"time"
)

type dateKey struct{}

// withDate returns a context for a request. If the client uses a dateReader, date is set to the time in the Date header of the response
// (RFC 9110, 6.6.1), which is the clock of the API server. It is left alone if a cache has answered, which says so by an Age.
func withDate(ctx context.Context, date *time.Time) context.Context {
	return context.WithValue(ctx, dateKey{}, date)
}

// dateReader reads the Date header of responses to requests whose context is from withDate.
type dateReader struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (d dateReader) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := d.RoundTripper.RoundTrip(request)
	if date, ok := request.Context().Value(dateKey{}).(*time.Time); ok && err == nil && response.Header.Get("Age") == "" {
		if at, err := http.ParseTime(response.Header.Get("Date")); err == nil {
			*date = at
		}
	}
	return response, err
}
