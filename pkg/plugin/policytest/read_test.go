// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestReadsOnlyFiles: a test cannot make the one who runs it read what has no end.
func TestReadsOnlyFiles(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	pod := []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: team-b}\n")
	half, large := bytes.Repeat([]byte("#"), sizeMost/2), bytes.Repeat([]byte("#"), sizeMost+1)
	if err := errors.Join(
		os.WriteFile(in("pod.yaml"), pod, 0o600), os.WriteFile(in("half.yaml"), half, 0o600), os.WriteFile(in("large.yaml"), large, 0o600),
		os.Mkdir(in("folder"), 0o700), os.Symlink("pod.yaml", in("link.yaml")), os.Symlink(os.DevNull, in("device.yaml")),
	); err != nil {
		t.Fatal(err)
	}
	const tooLarge = " is too large: a test and its files may have at most 32 MiB together"
	for name, c := range map[string]struct{ files, want string }{
		"a file":                 {"pod.yaml", ""},
		"a link to a file":       {"link.yaml", ""},
		"a device":               {os.DevNull, os.DevNull + ": " + os.DevNull + " is not a regular file"},
		"a link to a device":     {"device.yaml", "device.yaml: " + in("device.yaml") + " is not a regular file"},
		"a folder":               {"folder", "folder: " + in("folder") + " is not a regular file"},
		"half of the limit":      {"half.yaml", ""},
		"half of it, twice":      {"half.yaml, half.yaml", "half.yaml: " + in("half.yaml") + tooLarge},
		"all of it and a byte":   {"large.yaml", "large.yaml: " + in("large.yaml") + tooLarge},
		"a file that is missing": {"none.yaml", "files[0]: there is no none.yaml; names are relative to the test file"},
	} {
		t.Run(name, func(t *testing.T) {
			content := header + "files: [" + c.files + "]\n" + bothExpected + world
			if err := os.WriteFile(in("a.test.yaml"), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if r := Run(t.Context(), in("a.test.yaml")); r.Error != c.want || r.Failed() {
				t.Errorf("got %q, failed: %t; want %q", r.Error, r.Failed(), c.want)
			}
		})
	}
	if r := Run(t.Context(), in("device.yaml")); r.Error != in("device.yaml")+" is not a regular file" {
		t.Errorf("a test that links to a device: got %q", r.Error)
	}
}
