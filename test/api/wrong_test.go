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
		t.Errorf("what users read differs from %s; look at the difference after go test ./test/api -run %s -update:\n%s", golden, t.Name(), got.String())
	}
}

// TestWrongTypes: values of a wrong type are refused by decoders that all kinds of Kubernetes share. They name the field, except
// where kubectl apply patches what exists.
func TestWrongTypes(t *testing.T) {
	t.Parallel()
	p := scoped(t, ofNamespace)
	p.create("there", `{ttlAfterFinished: 1h}`)
	for spec, want := range map[string]struct{ created, serverSide, patched string }{
		`{ttlAfterFinished: 5}`: {
			"cannot unmarshal number into Go struct field CleanupPolicySpec.spec.ttlAfterFinished of type v1alpha1.TTL",
			".spec.ttlAfterFinished: expected string", "cannot convert int64 to v1alpha1.TTL",
		},
		`{capacity: {maxObjects: many}}`: {
			"cannot unmarshal string into Go struct field Capacity.spec.capacity.maxObjects of type int64",
			".spec.capacity.maxObjects: expected numeric (int or float), got string", "unrecognized type: int64",
		},
		`{rules: {}}`: {
			"cannot unmarshal object into Go struct field CleanupPolicySpec.spec.rules of type []v1alpha1.CleanupRule",
			".spec.rules: expected list", "cannot restore slice from map",
		},
	} {
		contains(t, refused(t, p.manifest("new", spec), "apply", "-f", "-"), want.created)
		contains(t, refused(t, p.manifest("new", spec), "apply", "--server-side", "-f", "-"), want.serverSide)
		contains(t, refused(t, p.manifest("there", spec), "apply", "-f", "-"), want.patched)
		contains(t, refused(t, p.manifest("there", spec), "apply", "--server-side", "--dry-run=server", "-f", "-"), want.serverSide)
	}
}
