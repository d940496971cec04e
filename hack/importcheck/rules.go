// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// layer is a package that only decides and computes. It gets facts and the time as arguments, so that every decision can be tested
// without a cluster, repeated and explained.
type layer struct {
	path string
	// imports are the packages of this module that it may import besides ./pkg/apis/gc. Each must have an earlier row in the table.
	imports []string
	// except are other packages that only this pure package may import, for the reason in why.
	except []string
	why    string
}

// layers are the packages without clients, clocks, loggers, locks and channels, from the bottom up.
var layers = []layer{
	{
		path: "./pkg/expressions",
		except: []string{
			"sync", "github.com/google/cel-go/cel", "github.com/google/cel-go/common/ast", "github.com/google/cel-go/common/operators",
			"github.com/google/cel-go/common/types", "github.com/google/cel-go/common/types/ref",
			"github.com/google/cel-go/common/types/traits",
			"k8s.io/apiserver/pkg/apis/cel", "k8s.io/apiserver/pkg/cel", "k8s.io/apiserver/pkg/cel/common", "k8s.io/apiserver/pkg/cel/environment",
			"k8s.io/apiserver/pkg/cel/library", "k8s.io/apiserver/pkg/cel/openapi", "k8s.io/kube-openapi/pkg/validation/spec", "k8s.io/utils/lru",
		},
		why: "expressions are CEL as Kubernetes has it; its environment and expressions are remembered, and expressions read no clock",
	},
	{
		path: "./pkg/windows", except: []string{"github.com/robfig/cron/v3"},
		why: "schedules are those of CronJobs; only parts that read no clock are used",
	},
	{path: "./pkg/controller/objects/lifecycle", imports: []string{"./pkg/expressions"}},
	{path: "./pkg/controller/rules/capacity"},
	{path: "./pkg/controller/rules/expiry"},
	{path: "./pkg/controller/rules/freshness"},
	{path: "./pkg/controller/rules/turns", imports: []string{"./pkg/controller/rules/expiry"}},
	{
		path: "./pkg/controller/objects/references", imports: []string{"./pkg/expressions", "./pkg/controller/objects/lifecycle"},
		except: []string{"sigs.k8s.io/yaml"},
		why:    "the built-in declarations are YAML files in the form that users write",
	},
	{
		path: "./pkg/controller/objects/kinds", imports: []string{"./pkg/controller/objects/lifecycle", "./pkg/controller/objects/references"},
		except: []string{"./pkg/apis/gc/v1alpha1", "k8s.io/client-go/kubernetes/scheme", "sigs.k8s.io/yaml"},
		why:    "the built-in lifecycles are YAML files in the form that users write; the scheme says which kinds belong to Kubernetes",
	},
	{path: "./pkg/controller/objects/usage", imports: []string{"./pkg/controller/objects/lifecycle", "./pkg/controller/objects/references"}},
	{
		path:    "./pkg/controller/rules/policy",
		imports: []string{"./pkg/expressions", "./pkg/windows", "./pkg/controller/objects/lifecycle"},
	},
	{
		path: "./pkg/controller/rules/deletion", imports: []string{
			"./pkg/controller/objects/kinds", "./pkg/controller/objects/lifecycle", "./pkg/controller/rules/policy",
		},
	},
	{
		path: "./pkg/controller/objects/facts", imports: []string{"./pkg/controller/objects/lifecycle"},
		except: []string{"sync", "github.com/google/uuid"},
		why: "the parts that facts share are interned for all watches at once, and dropped by the garbage collector; no result depends on it. " +
			"UUIDs are only parsed and formatted",
	},
	{
		path: "./pkg/controller/rules/approval", imports: []string{
			"./pkg/controller/objects/lifecycle", "./pkg/controller/rules/freshness", "./pkg/controller/rules/policy",
		},
	},
	{path: "./pkg/controller/rules/report", imports: []string{"./pkg/controller/rules/policy", "./pkg/controller/rules/approval"}},
	{
		path: "./pkg/controller/engine/memory", imports: []string{
			"./pkg/controller/objects/lifecycle", "./pkg/controller/rules/capacity", "./pkg/controller/rules/freshness",
			"./pkg/controller/rules/turns", "./pkg/controller/objects/kinds", "./pkg/controller/rules/policy",
			"./pkg/controller/rules/deletion", "./pkg/controller/objects/facts", "./pkg/controller/rules/approval",
			"./pkg/controller/rules/report", "./pkg/controller/rules/expiry", "./pkg/windows",
		},
	},
	{
		path: "./pkg/controller/engine/knowledge", imports: []string{
			"./pkg/controller/objects/lifecycle", "./pkg/controller/rules/freshness", "./pkg/controller/objects/references",
			"./pkg/controller/objects/kinds", "./pkg/controller/objects/usage", "./pkg/controller/rules/policy",
			"./pkg/controller/rules/deletion", "./pkg/controller/objects/facts", "./pkg/controller/rules/approval",
			"./pkg/controller/engine/memory",
		},
	},
	{
		path: "./pkg/controller/engine/scope", imports: []string{
			"./pkg/expressions", "./pkg/controller/objects/lifecycle", "./pkg/controller/rules/capacity",
			"./pkg/controller/objects/kinds", "./pkg/controller/rules/policy", "./pkg/controller/rules/approval",
			"./pkg/controller/engine/memory", "./pkg/controller/engine/knowledge",
		},
	},
	{
		path: "./pkg/controller/engine/limits", imports: []string{
			"./pkg/controller/objects/lifecycle", "./pkg/controller/rules/capacity", "./pkg/controller/objects/kinds",
			"./pkg/controller/rules/policy", "./pkg/controller/rules/approval", "./pkg/controller/engine/memory",
			"./pkg/controller/engine/scope",
		},
	},
	{
		path: "./pkg/controller/engine/decide", imports: []string{
			"./pkg/controller/rules/expiry", "./pkg/controller/rules/policy", "./pkg/controller/engine/memory",
			"./pkg/controller/engine/limits",
		},
	},
	{
		path: "./pkg/controller/engine/gate", imports: []string{
			"./pkg/controller/rules/policy", "./pkg/controller/rules/approval", "./pkg/controller/rules/report",
			"./pkg/controller/rules/deletion", "./pkg/controller/engine/memory", "./pkg/controller/engine/decide",
		},
	},
	{
		path: "./pkg/controller/engine/dispatch", imports: []string{
			"./pkg/controller/objects/lifecycle", "./pkg/controller/rules/policy", "./pkg/controller/rules/deletion",
			"./pkg/controller/engine/memory", "./pkg/controller/engine/decide", "./pkg/controller/engine/gate",
		},
	},
	{
		path: "./pkg/controller/engine/view", imports: []string{
			"./pkg/controller/objects/lifecycle", "./pkg/controller/rules/policy", "./pkg/controller/objects/facts",
			"./pkg/controller/rules/approval", "./pkg/controller/rules/report", "./pkg/controller/rules/deletion",
			"./pkg/controller/engine/memory", "./pkg/controller/engine/knowledge", "./pkg/controller/engine/limits", "./pkg/controller/engine/gate",
			"./pkg/controller/engine/dispatch",
		},
	},
	{
		path: "./pkg/controller/engine", imports: []string{
			"./pkg/controller/objects/lifecycle", "./pkg/controller/rules/freshness", "./pkg/controller/objects/kinds",
			"./pkg/controller/rules/policy", "./pkg/controller/rules/deletion", "./pkg/controller/objects/facts",
			"./pkg/controller/rules/approval", "./pkg/controller/engine/memory", "./pkg/controller/engine/knowledge",
			"./pkg/controller/engine/scope", "./pkg/controller/engine/limits", "./pkg/controller/engine/decide",
			"./pkg/controller/engine/gate", "./pkg/controller/engine/dispatch", "./pkg/controller/engine/view",
		},
	},
	{
		path: "./pkg/controller/engine/trial", imports: []string{
			"./pkg/controller/objects/lifecycle", "./pkg/controller/objects/kinds", "./pkg/controller/objects/usage",
			"./pkg/controller/rules/policy", "./pkg/controller/objects/facts", "./pkg/controller/rules/approval",
			"./pkg/controller/engine/memory", "./pkg/controller/engine/knowledge", "./pkg/controller/engine/scope",
			"./pkg/controller/engine",
		},
	},
	{
		path: "./pkg/controller/observe/decode", imports: []string{
			"./pkg/expressions", "./pkg/controller/objects/lifecycle", "./pkg/controller/objects/references",
			"./pkg/controller/objects/kinds", "./pkg/controller/objects/facts",
			"./pkg/controller/engine/knowledge",
		},
		except: []string{
			"sync", "google.golang.org/protobuf/encoding/protowire", "k8s.io/client-go/kubernetes/scheme", "k8s.io/client-go/rest",
		},
		why: "objects are decoded by the codecs of client-go, into buffers that are used again; nothing is requested",
	},
}

// libraries are the other modules that pure packages may import.
var libraries = []string{"k8s.io/api", "k8s.io/apimachinery", "github.com/hashicorp/golang-lru/v2/simplelru"}

// impureStandard are the packages of the standard library with locks, channels, logs, or access to files and the network.
var impureStandard = []string{"context", "log", "net", "os", "sync"}

// pure reports whether a package needs no exception.
func (l layer) pure() bool { return len(l.except) == 0 }

func paths(want func(layer) bool) []string {
	var out []string
	for _, l := range layers {
		if want(l) {
			out = append(out, l.path)
		}
	}
	return out
}

// separations are the imports that are forbidden, directly and through other packages of this module.
var separations = []struct {
	from, but, never []string
	why              string
}{{
	from:  []string{"./pkg/registry", "./pkg/apiserver"},
	never: []string{"./pkg/controller"},
	why:   "the server reads from the controller through its own interfaces; cmd/apiserver connects them",
}, {
	from:  []string{"./pkg/controller"},
	never: []string{"./pkg/registry", "./pkg/apiserver"},
	why:   "the controller does not know the server; cmd/apiserver connects them",
}, {
	from:  []string{"./pkg/apis"},
	never: []string{"./pkg/registry", "./pkg/apiserver", "./pkg/controller", "./pkg/storage", "./pkg/generated"},
	why:   "the API types depend on nothing else in this module",
}, {
	from:  []string{"./pkg/storage"},
	never: []string{"./pkg/registry", "./pkg/apiserver", "./pkg/controller"},
	why:   "storage does not depend on the kinds that it stores",
}, {
	from:  []string{"./pkg/certificates", "./pkg/registration"},
	never: []string{"./pkg/registry", "./pkg/apiserver", "./pkg/controller", "./pkg/storage"},
	why:   "how Winnow is reached does not depend on what it does",
}, {
	from:  []string{"./pkg", "./cmd"},
	never: []string{"./test", "./hack"},
	why:   "the released program does not depend on tests or tools",
}, {
	from: []string{"./pkg", "./cmd"},
	// Programs below test reach the model through the oracle.
	but:   []string{"./pkg/controller/internal", "./pkg/plugin/internal", "./pkg/controller/oracle"},
	never: []string{"./pkg/controller/internal", "./pkg/plugin/internal"},
	why:   "builders and the model are only for tests",
}, {
	from: []string{"./pkg/controller/internal/model"},
	never: append(paths(func(l layer) bool {
		return l.path != "./pkg/controller/objects/lifecycle" && l.path != "./pkg/expressions"
	}),
		"./pkg/controller/tracker"),
	why: "tests compare the engine with the model, so the model shares no code with it",
}, {
	from:  []string{"./pkg/plugin"},
	never: []string{"./pkg/controller/cleanup", "./pkg/controller/write/deleter", "./pkg/storage", "./pkg/registry", "./pkg/apiserver"},
	why:   "the plugin decides as the server does, and deletes nothing",
}, {
	from:  []string{"./pkg/plugin/output"},
	never: []string{"./pkg/apis", "./pkg/controller", "./pkg/generated", "./pkg/plugin"},
	why:   "how the plugin prints does not depend on what it prints",
}, {
	from:  []string{"./pkg/plugin/local"},
	never: []string{"./pkg/plugin"},
	why:   "what decides in the process of the plugin does not depend on its commands",
}, {
	from:  []string{"./pkg/plugin/files", "./pkg/plugin/holds", "./pkg/plugin/explain", "./pkg/plugin/session"},
	never: []string{"./pkg/plugin/top", "./pkg/plugin/ui"},
	why:   "what commands share does not depend on what one of them shows",
}, {
	from:  []string{"./pkg/plugin/ui"},
	never: []string{"./pkg/plugin/files", "./pkg/plugin/holds", "./pkg/plugin/session", "./pkg/plugin/top"},
	why:   "the page gets everything from its Source",
}, {
	from:  []string{"./pkg/controller", "./pkg/registry", "./pkg/apiserver", "./cmd/apiserver"},
	never: []string{"./pkg/plugin"},
	why:   "the server does not depend on the plugin",
}, {
	from:  []string{"./pkg"},
	never: []string{"./cmd"},
	why:   "packages do not depend on programs",
}}

// check returns one line for each wrong import.
func check(imports map[string][]string) []string {
	var faults []string
	for _, l := range layers {
		faults = append(faults, checkLayer(l, imports[l.path])...)
	}
	for _, pkg := range slices.Sorted(maps.Keys(imports)) {
		for _, s := range separations {
			if !below(pkg, s.from) || below(pkg, s.but) {
				continue
			}
			if chain := reach(imports, pkg, s.never); chain != nil {
				faults = append(faults, fmt.Sprintf("%s: %s", strings.Join(chain, " -> "), s.why))
			}
		}
		if !below(pkg, []string{"./cmd/apiserver", "./test", "./hack"}) && meets(imports, pkg) {
			faults = append(faults, pkg+": only cmd/apiserver may import both ./pkg/controller and ./pkg/registry")
		}
	}
	return faults
}

// checkLayer returns a line for each import that a pure package must not have.
func checkLayer(l layer, imports []string) []string {
	var faults []string
	for _, path := range imports {
		own := strings.HasPrefix(path, "./")
		standard := !strings.Contains(strings.SplitN(path, "/", 2)[0], ".")
		switch {
		case slices.Contains(l.except, path), own && (path == "./pkg/apis/gc" || slices.Contains(l.imports, path)):
		case own:
			faults = append(faults, fmt.Sprintf("%s -> %s: of this module it may import only %s", l.path, path,
				strings.Join(append([]string{"./pkg/apis/gc"}, l.imports...), ", ")))
		case standard && !below(path, impureStandard), below(path, libraries):
		default:
			faults = append(faults, fmt.Sprintf("%s -> %s: a pure package imports only the standard library without %s, and %s",
				l.path, path, strings.Join(impureStandard, ", "), strings.Join(libraries, ", ")))
		}
	}
	return faults
}

// checkOrder returns a line for each row of the table that allows an import from the same row or from one below.
func checkOrder(layers []layer) []string {
	var faults []string
	above := map[string]bool{}
	for _, l := range layers {
		for _, path := range l.imports {
			if !above[path] {
				faults = append(faults, fmt.Sprintf("%s -> %s: the table of layers allows an import only from a row above", l.path, path))
			}
		}
		above[l.path] = true
	}
	return faults
}

// checkConcurrency returns a line for each place of a parsed file that starts a goroutine or uses a channel.
func checkConcurrency(files *token.FileSet, file *ast.File) []string {
	var faults []string
	ast.Inspect(file, func(n ast.Node) bool {
		what := ""
		switch n := n.(type) {
		case *ast.GoStmt:
			what = "starts a goroutine"
		case *ast.ChanType:
			what = "uses a channel"
		case *ast.SelectStmt:
			what = "selects among channels"
		case *ast.SendStmt:
			what = "sends to a channel"
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				what = "receives from a channel"
			}
		}
		if what != "" {
			faults = append(faults, fmt.Sprintf("%s: a pure package %s", files.Position(n.Pos()), what))
		}
		return true
	})
	return faults
}

// meets reports whether pkg reaches both the controller and the registry, and is part of neither.
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

// below reports whether path is one of the roots or in a folder of one.
func below(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return path == root || strings.HasPrefix(path, root+"/")
	})
}
