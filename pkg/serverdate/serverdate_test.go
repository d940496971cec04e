// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package serverdate

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"
)

// roundTrip answers without a server.
type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func TestDateOfAnAnswer(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	failed := errors.New("cut off")
	for name, c := range map[string]struct {
		date string
		err  error
		want time.Time
	}{
		"a date":           {"Sun, 01 Mar 2026 12:00:00 GMT", nil, noon},
		"no date":          {"", nil, time.Time{}},
		"a malformed date": {"yesterday", nil, time.Time{}},
		"no answer at all": {"", failed, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			reader := NewReader(roundTrip(func(*http.Request) (*http.Response, error) {
				if c.err != nil {
					return nil, c.err
				}
				return &http.Response{Header: http.Header{"Date": {c.date}}}, nil
			}))
			var date time.Time
			for _, ctx := range []context.Context{context.Background(), With(context.Background(), &date)} {
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://winnow", nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := reader.RoundTrip(request); !errors.Is(err, c.err) {
					t.Error(err)
				}
			}
			if !date.Equal(c.want) {
				t.Errorf("got %v", date)
			}
		})
	}
}
