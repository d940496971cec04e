// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
)

// recipes are the headings of docs/extending.md, and how many files of the program each recipe may list.
var recipes = map[string]int{"A trigger": 6, "A field of a rule": 5, "A built-in lifecycle": 1, "A reason": 2, "A metric": 2}

var (
	examples      = regexp.MustCompile("(?m)\\bThe example is (`[^`]+`(?:, `[^`]+`)*)\\.$")
	secondHeading = regexp.MustCompile("(?m)^## (.+)$")
	spans         = regexp.MustCompile("`([^`]+)`")
	// notProduct are the files below pkg and cmd that are generated or for tests.
	notProduct = regexp.MustCompile(`_test\.go$|/testdata/|/zz_generated|^pkg/generated/|^pkg/controller/internal/|/testpolicy/|/fuzzer/`)
)

// TestRecipes: each recipe lists exactly the files of the program in which its example stands, and they are few.
func TestRecipes(t *testing.T) {
	for _, title := range secondHeading.FindAllStringSubmatch(read(t, "docs/extending.md"), -1) {
		if recipes[title[1]] == 0 {
			t.Errorf("no test knows how many files %q may list", title[1])
		}
	}
	product := product(t)
	for title, most := range recipes {
		text := section(t, "docs/extending.md", title)
		listed := sets.New[string]()
		for _, row := range folderRow.FindAllStringSubmatch(text, -1) {
			listed.Insert(row[1])
		}
		example := examples.FindStringSubmatch(text)
		if example == nil {
			t.Errorf("%s: no example", title)
			continue
		}
		found := sets.New[string]()
		for _, span := range spans.FindAllStringSubmatch(example[1], -1) {
			found = found.Union(containing(product, span[1]))
		}
		if !listed.Equal(found) {
			t.Errorf("%s: docs/extending.md lists %q, where the example does not stand, and lacks %q, where it does",
				title, sets.List(listed.Difference(found)), sets.List(found.Difference(listed)))
		}
		if len(found) > most {
			t.Errorf("%s: takes a change of %d files, and may take %d: %q", title, len(found), most, sets.List(found))
		}
	}
}

// product returns the files of the program by path.
func product(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, top := range []string{"cmd", "pkg"} {
		for _, file := range files(t, top, func(path string) bool { return !notProduct.MatchString(path) }) {
			out[file] = read(t, file)
		}
	}
	return out
}

// containing returns the files in which a word stands.
func containing(texts map[string]string, word string) sets.Set[string] {
	whole, out := regexp.MustCompile(`\b`+regexp.QuoteMeta(word)+`\b`), sets.New[string]()
	for file, text := range texts {
		if strings.Contains(text, word) && whole.MatchString(text) {
			out.Insert(file)
		}
	}
	return out
}
