// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"

	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// TestMalformedAnnotations: the message suggests what the author probably meant.
func TestMalformedAnnotations(t *testing.T) {
	const ttl, keepUntil = "annotation gc.winnow.dev/ttl: ", "annotation gc.winnow.dev/keep-until: "
	for text, want := range map[string]string{
		"P1D":        ttl + `"P1D" needs a number before "P1D"; did you mean "1d"?`,
		"12h30d":     ttl + `"12h30d" must have its units in the order w, d, h, m, s, each of them once; did you mean "30d12h"?`,
		"None":       ttl + `"None" needs a number before "None"; did you mean "never"?`,
		"2030-01-31": ttl + `"2030-01-31" is a date, not a duration; did you mean gc.winnow.dev/keep-until=2030-01-31T00:00:00Z?`,
		"soon":       ttl + `"soon" needs a number before "soon"; use for example`,
	} {
		if got := readAnnotations(&lifecycle.Fact{TTL: &text}).malformed; !strings.HasPrefix(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for text, end := range map[string]string{
		"2030-01-31":       `"2026-01-02T15:04:05Z"; did you mean "2030-01-31T00:00:00Z"?`,
		"2030-01-31 12:00": `"2026-01-02T15:04:05Z"; did you mean "2030-01-31T12:00:00Z"?`,
		"7d":               "; did you mean gc.winnow.dev/ttl=7d?",
		"None":             "; did you mean gc.winnow.dev/ttl=never?",
		"soon":             `is not a time like "2026-01-02T15:04:05Z"`,
	} {
		if got := readAnnotations(&lifecycle.Fact{KeepUntil: &text}).malformed; !strings.HasPrefix(got, keepUntil) || !strings.HasSuffix(got, end) {
			t.Errorf("got %s, want %s", got, end)
		}
	}
}
