// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files anew")

// fieldPath is where a message begins, behind "invalid: " or "* ".
var fieldPath = regexp.MustCompile(`(?m)(?:invalid: |^\* )((?:spec|metadata)\.[A-Za-z0-9.\[\]]+): `)

// TestWrongPolicies creates what nobody should, and compares what the user reads with testdata/wrong.golden. Each message
// must name the field and what to write instead.
func TestWrongPolicies(t *testing.T) {
	t.Parallel()
	kubectl(t, "create", "namespace", "wrong")
	files, err := filepath.Glob("testdata/wrong/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 30 {
		t.Fatalf("found %d wrong policies, want thirty or more", len(files))
	}
	var got strings.Builder
	for _, file := range files {
		out, stderr, err := shared.Kubectl(t.Context(), "create", "-f", file)
		if err == nil {
			t.Errorf("%s was accepted: %s", file, out)
		}
		fields := fieldPath.FindAllString(stderr, -1)
		if len(fields) == 0 || len(fields) != len(slices.Compact(slices.Sorted(slices.Values(fields)))) {
			t.Errorf("%s: no field is named, or one twice: %s", file, stderr)
		}
		got.WriteString(filepath.Base(file) + "\n" + stderr + "\n")
	}
	const golden = "testdata/wrong.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf(
			"what users read differs from %s; look at the difference after go test ./test/api -run %s -update:\n%s",
			golden,
			t.Name(),
			got.String(),
		)
	}
}

// TestWrongTypes: values of a wrong type are refused in the same words, however they are written, and name the field.
func TestWrongTypes(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		p.create("there", `{ttlAfterFinished: 1h}`)
		for spec, want := range map[string]string{
			`{ttlAfterFinished: 5}`:          `spec.ttlAfterFinished: Invalid value: 5: must be a string with a unit, for example "5s" or "1h"`,
			`{capacity: {maxObjects: many}}`: `spec.capacity.maxObjects: Invalid value: "many": must be a whole number`,
			`{rules: {}}`:                    `spec.rules: Invalid value: must be a list`,
		} {
			patch, err := yaml.YAMLToJSON([]byte("spec: " + spec))
			if err != nil {
				t.Fatal(err)
			}
			for how, got := range map[string]string{
				"create":      refused(t, p.manifest("new", spec), "create", "-f", "-"),
				"server-side": refused(t, p.manifest("new", spec), "apply", "--server-side", "-f", "-"),
				"update":      refused(t, p.manifest("there", spec), "replace", "-f", "-"),
				"apply":       refused(t, p.manifest("there", spec), "apply", "-f", "-"),
				"apply again": refused(t, p.manifest("there", spec), "apply", "--server-side", "--force-conflicts", "-f", "-"),
				"strategic":   refused(t, "", p.on("patch", "there", "--type=strategic", "-p", string(patch))...),
				"merge":       refused(t, "", p.on("patch", "there", "--type=merge", "-p", string(patch))...),
			} {
				if line := strings.TrimSpace(got); !strings.HasSuffix(line, "is invalid: "+want) {
					t.Errorf("%s: got\n%s\nwant\n%s", how, got, want)
				}
			}
		}
		contains(
			t,
			refused(
				t,
				"",
				p.on("patch", "there", "--type=json", "-p", `[{"op": "replace", "path": "/spec/ttlAfterFinished", "value": 5}]`)...),
			"is invalid: spec.ttlAfterFinished: Invalid value: 5: must be a string with a unit",
		)
		contains(t, refused(t, p.manifest("there", `{ttlAfterFinish: 5s}`), "apply", "-f", "-"),
			`cannot be written: strict decoding error: unknown field "spec.ttlAfterFinish"; did you mean "ttlAfterFinished"?`)
	})
}
