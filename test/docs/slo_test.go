// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/winnow-dev/winnow/pkg/controller/metrics"
)

var (
	alertName = regexp.MustCompile(`(?m)^ +- alert: (\w+)$`)
	citedTest = regexp.MustCompile(`\[((?:Test|Fuzz)\w+)\]\(([^)]+)\)`)
)

const docsFolder = root + "/docs"

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// expectTests fails if a part of a page names a test that does not exist, or fewer tests than least.
func expectTests(t *testing.T, page, part string, least int) {
	t.Helper()
	cited := citedTest.FindAllStringSubmatch(part, -1)
	for _, test := range cited {
		text := readFile(t, filepath.Join(docsFolder, test[2]))
		if !strings.Contains(text, "\nfunc "+test[1]+"(t *testing.T) {\n") && !strings.Contains(text, "\nfunc "+test[1]+"(f *testing.F) {\n") {
			t.Errorf("%s names %s in %s, which has no such test", page, test[1], test[2])
		}
	}
	if len(cited) < least {
		t.Errorf("found %d tests in %s", len(cited), page)
	}
}

// TestThreats: the page names only tests that exist.
func TestThreats(t *testing.T) {
	expectTests(t, "docs/robustness.md", readFile(t, docsFolder+"/robustness.md"), 60)
}

// TestObjectives: the page says of each metric when to roll back, names each alert among the failures, and names only tests that exist.
func TestObjectives(t *testing.T) {
	page := readFile(t, docsFolder+"/slo.md")
	_, rollback, _ := strings.Cut(page, "\n## When to roll back\n")
	rollback, failures, found := strings.Cut(rollback, "\n## Failures, alerts and tests\n")
	if !found {
		t.Fatal("docs/slo.md has other sections")
	}
	for _, d := range metrics.Definitions() {
		if !strings.Contains(rollback, "`"+d.Name+"`") {
			t.Errorf("docs/slo.md does not say of %s when to roll back", d.Name)
		}
	}
	alerts := alertName.FindAllStringSubmatch(readFile(t, root+"/artifacts/monitoring/rules.yaml"), -1)
	for _, alert := range alerts {
		if !strings.Contains(failures, "["+alert[1]+"](") {
			t.Errorf("docs/slo.md does not say which failure %s shows", alert[1])
		}
	}
	expectTests(t, "docs/slo.md", failures, 20)
	if len(alerts) < 20 {
		t.Errorf("found %d alerts", len(alerts))
	}
}
