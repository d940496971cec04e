// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/parser"
	"go/token"
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
				"./pkg/controller/rules/policy":      {"time", "k8s.io/api/batch/v1", "k8s.io/apimachinery/pkg/labels", "./pkg/apis/gc", "./pkg/controller/objects/lifecycle"},
				"./pkg/controller/objects/lifecycle": {"k8s.io/api/core/v1"},
				"./pkg/controller/tracker":           {"sync", "./pkg/controller/rules/policy"},
				"./pkg/registry/gc":                  {"k8s.io/apiserver/pkg/registry/rest", "./pkg/apis/gc"},
				"./pkg/apiserver":                    {"./pkg/registry/gc"},
				"./cmd/apiserver/app":                {"./pkg/apiserver", "./pkg/controller/tracker"},
				"./cmd/apiserver":                    {"./cmd/apiserver/app"},
				"./test/e2e":                         {"./cmd/apiserver/app"},
			},
		},
		"clock, client, lock, logger and server in a pure package": {
			imports: map[string][]string{"./pkg/controller/rules/expiry": {
				"k8s.io/utils/clock", "k8s.io/client-go/rest", "sync/atomic", "log/slog", "./pkg/controller/tracker", "./pkg/apis/gc/v1alpha1", "k8s.io/apiserver"}},
			faults: []string{
				"./pkg/controller/rules/expiry -> k8s.io/utils/clock: ",
				"./pkg/controller/rules/expiry -> k8s.io/client-go/rest: ",
				"./pkg/controller/rules/expiry -> sync/atomic: ",
				"./pkg/controller/rules/expiry -> log/slog: ",
				"./pkg/controller/rules/expiry -> ./pkg/controller/tracker: ",
				"./pkg/controller/rules/expiry -> ./pkg/apis/gc/v1alpha1: ",
				"./pkg/controller/rules/expiry -> k8s.io/apiserver: ",
			},
		},
		"a pure package that its row does not name": {
			imports: map[string][]string{"./pkg/controller/rules/policy": {"./pkg/controller/objects/lifecycle", "./pkg/controller/rules/capacity"}},
			faults:  []string{"./pkg/controller/rules/policy -> ./pkg/controller/rules/capacity: of this module it may import only ./pkg/apis/gc, ./pkg/expressions, ./pkg/windows, ./pkg/controller/objects/lifecycle"},
		},
		"an exception is for one package and one import": {
			imports: map[string][]string{"./pkg/controller/objects/facts": {"sync", "sync/atomic"}, "./pkg/controller/rules/policy": {"sync"}},
			faults:  []string{"./pkg/controller/rules/policy -> sync: ", "./pkg/controller/objects/facts -> sync/atomic: "},
		},
		"registry reaches the controller through another package": {
			imports: map[string][]string{
				"./pkg/registry/gc": {"./pkg/view"},
				"./pkg/view":        {"./pkg/controller/tracker"},
			},
			faults: []string{"./pkg/registry/gc -> ./pkg/view -> ./pkg/controller/tracker: "},
		},
		"controller reaches the registry": {
			imports: map[string][]string{"./pkg/controller/write/status": {"./pkg/registry/gc"}},
			faults:  []string{"./pkg/controller/write/status -> ./pkg/registry/gc: "},
		},
		"the two meet outside cmd/apiserver": {
			imports: map[string][]string{"./cmd/kubectl-winnow": {"./pkg/registry/gc", "./pkg/controller/rules/policy"}},
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
			imports: map[string][]string{"./pkg/controller/internal/model": {"./pkg/controller/objects/lifecycle", "./pkg/controller/rules/policy"}},
			faults:  []string{"./pkg/controller/internal/model -> ./pkg/controller/rules/policy: "},
		},
		"a name that only begins alike": {
			imports: map[string][]string{"./pkg/registryutil": {"./pkg/controller/rules/policy"}},
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

func TestCheckOrder(t *testing.T) {
	got := checkOrder([]layer{
		{path: "./a"},
		{path: "./b", imports: []string{"./a", "./c", "./b"}},
		{path: "./c", imports: []string{"./a", "./b"}},
	})
	want := []string{"./b -> ./c: ", "./b -> ./b: "}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("got faults\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if faults := checkOrder(layers); faults != nil {
		t.Errorf("the table itself: %s", faults)
	}
}

func TestExceptionsHaveReasons(t *testing.T) {
	for _, l := range layers {
		if l.pure() != (l.why == "") {
			t.Errorf("%s: exceptions %q, reason %q", l.path, l.except, l.why)
		}
	}
}

func TestCheckConcurrency(t *testing.T) {
	for body, faults := range map[string][]string{
		"x := map[string]int{}; for k := range x { _ = -x[k] }": nil,
		"go f()":                      {"f.go:2:12: a pure package starts a goroutine"},
		"var c chan int; _ = c":       {"f.go:2:18: a pure package uses a channel"},
		"_ = make(<-chan int)":        {"f.go:2:21: a pure package uses a channel"},
		"c <- 1":                      {"f.go:2:12: a pure package sends to a channel"},
		"_ = <-f()":                   {"f.go:2:16: a pure package receives from a channel"},
		"select {}":                   {"f.go:2:12: a pure package selects among channels"},
		"func() { go func() {}() }()": {"f.go:2:21: a pure package starts a goroutine"},
	} {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, "f.go", "package p\nfunc f() { "+body+" }", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := checkConcurrency(files, file); !slices.Equal(got, faults) {
			t.Errorf("%s: got %q, want %q", body, got, faults)
		}
	}
}
