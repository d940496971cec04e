// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const architecture = "docs/architecture.md"

// section returns the part of a page below a heading.
func section(t *testing.T, page, title string) string {
	t.Helper()
	_, after, ok := strings.Cut(read(t, page), "\n## "+title+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", page, title)
	}
	before, _, _ := strings.Cut(after, "\n## ")
	return before
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// files returns the paths below a folder of the repository for which want returns true.
func files(t *testing.T, folder string, want func(path string) bool) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err == nil && !entry.IsDir() && want(filepath.ToSlash(name)) {
			out = append(out, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var folderRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// TestFoldersHaveARow: each package has a row in the table of folders, or is in a folder that has one. Each package of the
// controller has its own row.
func TestFoldersHaveARow(t *testing.T) {
	rows := map[string]bool{}
	for _, row := range folderRow.FindAllStringSubmatch(section(t, architecture, "Packages"), -1) {
		if rows[row[1]] = true; len(files(t, row[1], func(string) bool { return true })) == 0 {
			t.Errorf("%s has a row, and is empty", row[1])
		}
	}
	for _, top := range []string{"cmd", "pkg"} {
		for _, file := range files(t, top, func(path string) bool { return strings.HasSuffix(path, ".go") }) {
			folder := filepath.Dir(file)
			for !rows[folder] && folder != "." && !strings.HasPrefix(folder, "pkg/controller") {
				folder = filepath.Dir(folder)
			}
			if !rows[folder] {
				t.Errorf("%s has no row for the folder of %s", architecture, file)
			}
		}
	}
}

var wordRow = regexp.MustCompile(`(?m)^\| ([a-z][a-z ,]*[a-z]) \|`)

// TestWordsAreUsed: each word of the glossary of docs/architecture.md occurs in the code of the controller.
func TestWordsAreUsed(t *testing.T) {
	var code strings.Builder
	for _, file := range files(t, "pkg/controller", func(path string) bool {
		return strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
	}) {
		code.WriteString(strings.ToLower(read(t, file)))
	}
	words := wordRow.FindAllStringSubmatch(section(t, architecture, "Glossary"), -1)
	if len(words) < 20 {
		t.Fatalf("found %d words", len(words))
	}
	for _, row := range words[1:] { // The first row is the title.
		for _, word := range strings.Split(row[1], ", ") {
			if !strings.Contains(code.String(), word) {
				t.Errorf("the code does not use %q", word)
			}
		}
	}
}

// TestUpdatesOfAllModules: the bot that proposes new versions looks at each go.mod.
func TestUpdatesOfAllModules(t *testing.T) {
	bot := read(t, ".github/dependabot.yml")
	modules := files(t, ".", func(file string) bool { return filepath.Base(file) == "go.mod" && !ignored(file) })
	for _, module := range modules {
		folder := "/" + strings.TrimPrefix(filepath.Dir(module), ".")
		words := strings.FieldsFunc(bot, func(r rune) bool { return strings.ContainsRune("[], \n", r) })
		if !slices.ContainsFunc(words, func(word string) bool { matches, _ := path.Match(word, folder); return matches }) {
			t.Errorf(".github/dependabot.yml does not name %s", folder)
		}
	}
	if len(modules) < 2 {
		t.Errorf("found only %q", modules)
	}
}

// ignored reports whether a path is in a folder of files that are built.
func ignored(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return first == "bin" || first == "_output"
}

// TestHostedCI: what the hosted CI runs is what contributors run.
func TestHostedCI(t *testing.T) {
	if !strings.Contains(read(t, ".github/workflows/ci.yml"), "- run: .ci/run\n") {
		t.Error("the workflow does not call .ci/run")
	}
}
