// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestCheck(t *testing.T) {
	unavailable := errors.New("the server is currently unable to handle the request")
	for name, c := range map[string]struct {
		servedAfter time.Duration
		want, err   string
	}{
		"served":       {0, "The cluster serves gc.winnow.dev/v1alpha1.\n", ""},
		"served later": {time.Minute, "The cluster serves gc.winnow.dev/v1alpha1.\n", ""},
		"not served":   {time.Hour, "", "does not serve gc.winnow.dev/v1alpha1 after 2m0s: " + unavailable.Error() + "; see kubectl describe apiservice"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var out bytes.Buffer
				err := check(t.Context(), &out, 2*time.Minute, func(context.Context) error {
					if time.Since(began) < c.servedAfter {
						return unavailable
					}
					return nil
				})
				if out.String() != c.want {
					t.Errorf("printed %q", out.String())
				}
				if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %q", err, c.err)
				}
			})
		})
	}
}
