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
	citedTest = regexp.MustCompile(`\[(Test\w+)\]\(([^)]+)\)`)
)

// TestObjectives: the page says of each metric when to roll back, names each alert among the failures, and names only tests that exist.
func TestObjectives(t *testing.T) {
	const folder = root + "/docs"
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	page := read(folder + "/slo.md")
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
	alerts := alertName.FindAllStringSubmatch(read(root+"/artifacts/monitoring/rules.yaml"), -1)
	for _, alert := range alerts {
		if !strings.Contains(failures, "["+alert[1]+"](") {
			t.Errorf("docs/slo.md does not say which failure %s shows", alert[1])
		}
	}
	cited := citedTest.FindAllStringSubmatch(failures, -1)
	for _, test := range cited {
		if !strings.Contains(read(filepath.Join(folder, test[2])), "\nfunc "+test[1]+"(t *testing.T) {\n") {
			t.Errorf("docs/slo.md names %s in %s, which has no such test", test[1], test[2])
		}
	}
	if len(alerts) < 20 || len(cited) < 20 {
		t.Errorf("found %d alerts and %d tests", len(alerts), len(cited))
	}
}
