// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

var (
	firstColumn = regexp.MustCompile("(?m)^\\| (`\\w+`(?:, `\\w+`)*) \\|")
	codeWord    = regexp.MustCompile("`(\\w+)`")
)

// TestReasons: the tables of docs/how-it-decides.md explain each reason once, and no other words.
func TestReasons(t *testing.T) {
	all := pages(t)
	_, section, ok := strings.Cut(all[filepath.Join(root, "docs/how-it-decides.md")], "\n## When unsure, Winnow keeps\n")
	if !ok {
		t.Fatal("docs/how-it-decides.md has no section of reasons")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	want := sets.New(policy.Reasons...).Insert(policy.ReasonThrottled)
	got := sets.New[policy.Reason]()
	for _, row := range firstColumn.FindAllStringSubmatch(section, -1) {
		for _, word := range codeWord.FindAllStringSubmatch(row[1], -1) {
			reason := policy.Reason(word[1])
			if got.Has(reason) {
				t.Errorf("%s is explained twice", reason)
			}
			got.Insert(reason)
		}
	}
	for reason := range want.Difference(got) {
		t.Errorf("%s has no row", reason)
	}
	for reason := range got.Difference(want) {
		t.Errorf("%s has a row, but is no reason", reason)
	}
	teams, events := all[filepath.Join(root, "docs/teams.md")], "`Warning` `"+string(policy.ReasonAnnotationIgnored)+"`"
	if !strings.Contains(teams, events) {
		t.Errorf("no event %s", events)
	}
}

// TestReadyReasons: docs/troubleshooting.md has a row for each reason for which docs/teams.md says that a policy is not Ready.
func TestReadyReasons(t *testing.T) {
	all := pages(t)
	row := regexp.MustCompile("(?m)^\\| `False` \\| (.*) \\|$").FindStringSubmatch(all[filepath.Join(root, "docs/teams.md")])
	if row == nil {
		t.Fatal("docs/teams.md does not say why a policy is not Ready")
	}
	for _, word := range codeWord.FindAllStringSubmatch(row[1], -1) {
		if !strings.Contains(all[filepath.Join(root, "docs/troubleshooting.md")], "\n| `"+word[1]+"` | ") {
			t.Errorf("docs/troubleshooting.md has no row for %s", word[1])
		}
	}
}
