// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// pure packages decide and compute. They see facts and the time as arguments, so every decision can be tested without
// a cluster, repeated and explained.
var pure = []string{
	"./pkg/controller/lifecycle",
	"./pkg/controller/policy",
	"./pkg/controller/capacity",
	"./pkg/controller/expiry",
	"./pkg/controller/deletion",
	"./pkg/controller/freshness",
	"./pkg/controller/turns",
	"./pkg/controller/kinds",
}

// pureImports are what a pure package may import besides the standard library and other pure packages.
var pureImports = []string{"./pkg/apis/gc", "k8s.io/api", "k8s.io/apimachinery"}

// impureStandard are the parts of the standard library that bring locks, logs or the outside world.
var impureStandard = []string{"log", "net", "os", "sync"}

// separations say what must not be reached, be it through other packages of this module.
var separations = []struct {
	from, but, never []string
	why              string
}{{
	from:  []string{"./pkg/registry", "./pkg/apiserver"},
	never: []string{"./pkg/controller"},
	why:   "the server reads from the controller through interfaces of its own; cmd/apiserver brings them together",
}, {
	from:  []string{"./pkg/controller"},
	never: []string{"./pkg/registry", "./pkg/apiserver"},
	why:   "the controller does not know how it is served; cmd/apiserver brings them together",
}, {
	from:  []string{"./pkg/apis"},
	never: []string{"./pkg/registry", "./pkg/apiserver", "./pkg/controller", "./pkg/storage", "./pkg/generated"},
	why:   "the API stands below everything else",
}, {
	from:  []string{"./pkg/storage"},
	never: []string{"./pkg/registry", "./pkg/apiserver", "./pkg/controller"},
	why:   "storage knows nothing of what it stores",
}, {
	from:  []string{"./pkg", "./cmd"},
	never: []string{"./test", "./hack"},
	why:   "what is shipped does not depend on tests or tools",
}, {
	from:  []string{"./pkg", "./cmd"},
	but:   []string{"./pkg/controller/oracle"}, // Programs below test reach the model through it.
	never: []string{"./pkg/controller/internal"},
	why:   "builders and the model are for tests alone",
}, {
	from: []string{"./pkg/controller/internal/model"},
	never: append(slices.DeleteFunc(slices.Clone(pure), func(pkg string) bool { return pkg == "./pkg/controller/lifecycle" }),
		"./pkg/controller/tracker"),
	why: "the model judges the engine, and shares no code with it",
}, {
	from:  []string{"./pkg"},
	never: []string{"./cmd"},
	why:   "packages do not depend on programs",
}}

// check returns one line for each wrong import, sorted.
func check(imports map[string][]string) []string {
	var faults []string
	for _, pkg := range slices.Sorted(maps.Keys(imports)) {
		if slices.Contains(pure, pkg) {
			faults = append(faults, checkPure(pkg, imports[pkg])...)
		}
		for _, s := range separations {
			if !below(pkg, s.from) || below(pkg, s.but) {
				continue
			}
			if chain := reach(imports, pkg, s.never); chain != nil {
				faults = append(faults, fmt.Sprintf("%s: %s", strings.Join(chain, " -> "), s.why))
			}
		}
		if !below(pkg, []string{"./cmd/apiserver", "./test", "./hack"}) && meets(imports, pkg) {
			faults = append(faults, pkg+": only cmd/apiserver may bring ./pkg/controller and ./pkg/registry together")
		}
	}
	return faults
}

func checkPure(pkg string, imports []string) []string {
	var faults []string
	for _, path := range imports {
		standard := !strings.Contains(strings.SplitN(path, "/", 2)[0], ".")
		switch {
		case standard && !below(path, impureStandard):
		case slices.Contains(pure, path), path == "./pkg/apis/gc", below(path, pureImports) && !strings.HasPrefix(path, "./"):
		default:
			faults = append(faults, fmt.Sprintf("%s -> %s: a pure package imports the standard library without %s, "+
				"other pure packages and %s alone", pkg, path, strings.Join(impureStandard, ", "), strings.Join(pureImports, ", ")))
		}
	}
	return faults
}

// meets tells whether pkg, itself neither, reaches both the controller and the registry.
func meets(imports map[string][]string, pkg string) bool {
	controller, registry := []string{"./pkg/controller"}, []string{"./pkg/registry"}
	return !below(pkg, append(controller, registry...)) &&
		reach(imports, pkg, controller) != nil && reach(imports, pkg, registry) != nil
}

// reach returns the shortest chain of imports from pkg to a package below one of the roots, or nil.
func reach(imports map[string][]string, pkg string, roots []string) []string {
	seen := map[string]bool{pkg: true}
	for chains := [][]string{{pkg}}; len(chains) > 0; chains = chains[1:] {
		chain := chains[0]
		for _, next := range imports[chain[len(chain)-1]] {
			if seen[next] {
				continue
			}
			seen[next] = true
			longer := append(slices.Clone(chain), next)
			if below(next, roots) {
				return longer
			}
			chains = append(chains, longer)
		}
	}
	return nil
}

// below tells whether path is one of the roots or in a folder of one.
func below(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return path == root || strings.HasPrefix(path, root+"/")
	})
}
