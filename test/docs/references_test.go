// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/objects/references"
)

var nextHeading = regexp.MustCompile(`\n##+ `)

// below returns the part of a page below a heading, up to the next one.
func below(t *testing.T, path, title string) string {
	t.Helper()
	_, after, ok := strings.Cut(read(t, path), "\n### "+title+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", path, title)
	}
	return nextHeading.Split(after, 2)[0]
}

// TestReferrers: the documentation names each resource of Kubernetes that may refer to ConfigMaps and Secrets, where it says what counts
// and which permissions Winnow needs.
func TestReferrers(t *testing.T) {
	what := strings.ToLower(below(t, "docs/how-it-decides.md", "What counts as use"))
	rights := below(t, "docs/install.md", "Permission to see what is used")
	for _, resource := range references.BuiltinResources() {
		plural, group, _ := strings.Cut(resource, ".")
		if !strings.Contains(what, plural) {
			t.Errorf("docs/how-it-decides.md does not say what %s refer to", resource)
		}
		rule := regexp.MustCompile(`(?m)^- apiGroups: \["?` + regexp.QuoteMeta(group) + `"?\]\n  resources: \[(.*, )?` + plural + `(, .*)?\]$`)
		if !rule.MatchString(rights) {
			t.Errorf("docs/install.md does not grant %s", resource)
		}
	}
}

var resourceWord = regexp.MustCompile("`([a-z]+)(\\.[a-z0-9.-]+)?`")

// TestDeclarations: the table of docs/operators.md has each resource whose references are declared. There, "`a` and `b.example.com`" is
// short for "`a.example.com` and `b.example.com`".
func TestDeclarations(t *testing.T) {
	declared, err := references.BuiltinDeclarations()
	if err != nil {
		t.Fatal(err)
	}
	got := sets.New[string]()
	for line := range strings.SplitSeq(below(t, "docs/operators.md", "What custom resources refer to"), "\n") {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		var short []string
		for _, word := range resourceWord.FindAllStringSubmatch(line, -1) {
			if short = append(short, word[1]); word[2] != "" {
				for _, plural := range short {
					got.Insert(plural + word[2])
				}
				short = nil
			}
		}
	}
	want := sets.KeySet(declared)
	for resource := range want.Difference(got) {
		t.Errorf("docs/operators.md does not list %s", resource)
	}
	for resource := range got.Difference(want) {
		t.Errorf("docs/operators.md lists %s, which has no declaration", resource)
	}
}
