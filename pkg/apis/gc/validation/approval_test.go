// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/validation"
)

func TestApprovalWarnings(t *testing.T) {
	waiting := []gc.PolicyHold{{ID: "aaa"}, {ID: "bbb"}}
	for approved, c := range map[string]struct{ before, of string }{
		"":             {},
		"aaa":          {},
		"aaa, bbb":     {},
		"aaa,ccc":      {of: "ccc"},
		"aaa,ddd":      {before: "ddd"},
		"aaa bbb  eee": {of: "eee"},
	} {
		got := validation.ApprovalWarnings(approved, c.before, waiting)
		if (c.of == "") != (len(got) == 0) || c.of != "" && !strings.Contains(got[0], `"`+c.of+`" is the id of nothing that waits`) {
			t.Errorf("%q after %q: %q", approved, c.before, got)
		}
	}
}
