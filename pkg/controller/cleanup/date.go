// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"net/http"
	"time"
)

type dateKey struct{}

// withDate has the clock of the server that answers a request put into date: the Date header (RFC 9110, 6.6.1).
func withDate(ctx context.Context, date *time.Time) context.Context {
	return context.WithValue(ctx, dateKey{}, date)
}

// dateReader notes the Date of answers for whom withDate asks.
type dateReader struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (d dateReader) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := d.RoundTripper.RoundTrip(request)
	if date, ok := request.Context().Value(dateKey{}).(*time.Time); ok && err == nil {
		if at, err := http.ParseTime(response.Header.Get("Date")); err == nil {
			*date = at
		}
	}
	return response, err
}
