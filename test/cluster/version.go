// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/winnow-dev/winnow/test/programs"
)

// Since reports whether test clusters run this version of Kubernetes or a newer one. If not, the log of the test says what is
// different then.
func Since(t interface {
	Helper()
	Logf(format string, args ...any)
	Fatal(args ...any)
}, minor, otherwise string,
) bool {
	t.Helper()
	runs, err := programs.Kubernetes()
	if err != nil {
		t.Fatal(err)
	}
	if version.MustParse(runs).AtLeast(version.MustParse(minor)) {
		return true
	}
	t.Logf("Kubernetes %s is older than %s: %s", runs, minor, otherwise)
	return false
}
