// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// importcheck fails when a package of this module imports what the rules in rules.go forbid, or when a pure package uses a goroutine or
// a channel. Test files may do both. With the argument "pure" it prints the pure packages.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/winnow-dev/winnow/"

func main() {
	if len(os.Args) > 1 && os.Args[1] == "pure" {
		fmt.Println(strings.Join(paths(layer.pure), " "))
		return
	}
	imports, err := load()
	if err != nil {
		fmt.Fprintln(os.Stderr, "importcheck:", err)
		os.Exit(1)
	}
	faults := append(checkOrder(layers), check(imports)...)
	for _, l := range layers {
		found, err := parse(l.path)
		if err != nil {
			fmt.Fprintln(os.Stderr, "importcheck:", err)
			os.Exit(1)
		}
		faults = append(faults, found...)
	}
	for _, fault := range faults {
		fmt.Fprintln(os.Stderr, fault)
	}
	if len(faults) > 0 {
		fmt.Fprintf(os.Stderr, "importcheck: %d faults; the rules are in hack/importcheck/rules.go\n", len(faults))
		os.Exit(1)
	}
}

// parse returns what checkConcurrency finds in a package.
func parse(pkg string) ([]string, error) {
	names, err := filepath.Glob(filepath.Join(pkg, "*.go"))
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	if len(names) == 0 {
		return nil, fmt.Errorf("%s stands in the table of layers, and has no files", pkg)
	}
	var faults []string
	for _, name := range names {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		faults = append(faults, checkConcurrency(files, file)...)
	}
	return faults, nil
}

// load returns what each package of the module imports. Paths of the module's own packages are relative to its root.
func load() (map[string][]string, error) {
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	imports := map[string][]string{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		paths := strings.Fields(strings.ReplaceAll(lines.Text(), module, "./"))
		imports[paths[0]] = paths[1:]
	}
	return imports, nil
}
