// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		imports map[string][]string
		faults  []string // how each begins
	}{
		"as designed": {
			imports: map[string][]string{
				"./pkg/controller/policy":    {"time", "k8s.io/api/batch/v1", "k8s.io/apimachinery/pkg/labels", "./pkg/apis/gc", "./pkg/controller/lifecycle"},
				"./pkg/controller/lifecycle": {"k8s.io/api/core/v1"},
				"./pkg/controller/tracker":   {"sync", "./pkg/controller/policy"},
				"./pkg/registry/gc":          {"k8s.io/apiserver/pkg/registry/rest", "./pkg/apis/gc"},
				"./pkg/apiserver":            {"./pkg/registry/gc"},
				"./cmd/apiserver/app":        {"./pkg/apiserver", "./pkg/controller/tracker"},
				"./cmd/apiserver":            {"./cmd/apiserver/app"},
				"./test/e2e":                 {"./cmd/apiserver/app"},
			},
		},
		"clock, client, lock, logger and server in a pure package": {
			imports: map[string][]string{"./pkg/controller/expiry": {
				"k8s.io/utils/clock", "k8s.io/client-go/rest", "sync/atomic", "log/slog", "./pkg/controller/tracker", "./pkg/apis/gc/v1alpha1", "k8s.io/apiserver"}},
			faults: []string{
				"./pkg/controller/expiry -> k8s.io/utils/clock: ",
				"./pkg/controller/expiry -> k8s.io/client-go/rest: ",
				"./pkg/controller/expiry -> sync/atomic: ",
				"./pkg/controller/expiry -> log/slog: ",
				"./pkg/controller/expiry -> ./pkg/controller/tracker: ",
				"./pkg/controller/expiry -> ./pkg/apis/gc/v1alpha1: ",
				"./pkg/controller/expiry -> k8s.io/apiserver: ",
			},
		},
		"registry reaches the controller through another package": {
			imports: map[string][]string{
				"./pkg/registry/gc": {"./pkg/view"},
				"./pkg/view":        {"./pkg/controller/tracker"},
			},
			faults: []string{"./pkg/registry/gc -> ./pkg/view -> ./pkg/controller/tracker: "},
		},
		"controller reaches the registry": {
			imports: map[string][]string{"./pkg/controller/status": {"./pkg/registry/gc"}},
			faults:  []string{"./pkg/controller/status -> ./pkg/registry/gc: "},
		},
		"the two meet outside cmd/apiserver": {
			imports: map[string][]string{"./cmd/kubectl-winnow": {"./pkg/registry/gc", "./pkg/controller/policy"}},
			faults:  []string{"./cmd/kubectl-winnow: "},
		},
		"a shipped package uses the test cluster": {
			imports: map[string][]string{"./pkg/apiserver": {"./test/cluster"}},
			faults:  []string{"./pkg/apiserver -> ./test/cluster: "},
		},
		"a shipped package uses what is for tests": {
			imports: map[string][]string{"./pkg/controller/tracker": {"./pkg/controller/internal/model"}, "./pkg/controller/internal/model": {"testing"}},
			faults:  []string{"./pkg/controller/tracker -> ./pkg/controller/internal/model: "},
		},
		"the model uses the engine": {
			imports: map[string][]string{"./pkg/controller/internal/model": {"./pkg/controller/lifecycle", "./pkg/controller/policy"}},
			faults:  []string{"./pkg/controller/internal/model -> ./pkg/controller/policy: "},
		},
		"a name that only begins alike": {
			imports: map[string][]string{"./pkg/registryutil": {"./pkg/controller/policy"}},
		},
		"a circle ends": {
			imports: map[string][]string{"./pkg/registry/a": {"./pkg/registry/b"}, "./pkg/registry/b": {"./pkg/registry/a"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := check(tc.imports)
			if !slices.EqualFunc(got, tc.faults, strings.HasPrefix) {
				t.Errorf("got faults\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.faults, "\n"))
			}
		})
	}
}
