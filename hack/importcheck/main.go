// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// importcheck fails when a package of this module imports what the rules in rules.go forbid. Test files are free. With the argument "pure"
// it prints the pure packages.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

const module = "github.com/winnow-dev/winnow/"

func main() {
	if len(os.Args) > 1 && os.Args[1] == "pure" {
		fmt.Println(strings.Join(pure, " "))
		return
	}
	imports, err := load()
	if err != nil {
		fmt.Fprintln(os.Stderr, "importcheck:", err)
		os.Exit(1)
	}
	faults := check(imports)
	for _, fault := range faults {
		fmt.Fprintln(os.Stderr, fault)
	}
	if len(faults) > 0 {
		fmt.Fprintf(os.Stderr, "importcheck: %d wrong imports; the rules are in hack/importcheck/rules.go\n", len(faults))
		os.Exit(1)
	}
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
