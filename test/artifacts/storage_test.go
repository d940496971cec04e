// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"fmt"
	"strings"
	"testing"

	"github.com/winnow-dev/winnow/test/winnow"
)

// TestStorageIsMissing: a replica that finds a part of artifacts/storage missing, or older than it needs, is not ready, says what to
// run, and becomes ready once that is done. A replica that is ready stays so.
func TestStorageIsMissing(t *testing.T) {
	const storage = "../../artifacts/storage/"
	server, err := winnow.Start(t.Context(), shared, winnow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	}()
	defer kubectl(t, "apply", "-f", storage)
	for name, tc := range map[string]struct {
		breaks []string
		want   string
	}{
		"missing": {
			[]string{"delete", "validatingadmissionpolicybinding", "storage.internal.gc.winnow.dev"},
			`ValidatingAdmissionPolicyBinding \"storage.internal.gc.winnow.dev\" is missing; run ` + "`kubectl apply -f artifacts/storage/` of this version",
		},
		"older": {
			[]string{"annotate", "crd", "storedcleanuppolicies.internal.gc.winnow.dev", "internal.gc.winnow.dev/revision-"},
			`CustomResourceDefinition \"storedcleanuppolicies.internal.gc.winnow.dev\" has revision 0 and must have 6; run `,
		},
	} {
		t.Run(name, func(t *testing.T) {
			kubectl(t, tc.breaks...)
			late, err := server.NewReplica()
			if err != nil {
				t.Fatal(err)
			}
			if err := late.StartOnly(t.Context()); err != nil {
				t.Fatal(err)
			}
			eventually(t, func() error { return waitsForStorage(t, late, tc.want) })
			if _, err := server.Replicas[0].Get(t.Context(), "/readyz"); err != nil {
				t.Errorf("the replica that was ready: %v", err)
			}
			kubectl(t, "apply", "-f", storage)
			eventually(t, func() error {
				_, err := late.Get(t.Context(), "/readyz")
				return err
			})
			if err := late.Retire(); err != nil {
				t.Error(err)
			}
		})
	}
}

// waitsForStorage returns nil if the storage is all that the replica lacks, and its log says so.
func waitsForStorage(t *testing.T, r *winnow.Replica, want string) error {
	t.Helper()
	answer, err := r.Get(t.Context(), "/readyz?verbose")
	if err == nil {
		t.Fatal("ready without a part of the storage")
	}
	if !strings.Contains(answer, "[-]storage-installed failed") || !strings.Contains(answer, "[+]storage ok") {
		return fmt.Errorf("%w: %s", err, answer)
	}
	if log, err := r.Log(); err != nil || !strings.Contains(log, want) {
		return fmt.Errorf("error %w, the log does not have %s:\n%s", err, want, log)
	}
	return nil
}
