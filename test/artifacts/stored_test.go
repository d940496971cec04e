// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"errors"
	"fmt"
	"testing"
)

const storedKind = "storedcleanuppolicies.internal.gc.winnow.dev"

func storedPolicy(name, ns, finalizers string) string {
	return fmt.Sprintf(`{"apiVersion": "internal.gc.winnow.dev/v1alpha1", "kind": "StoredCleanupPolicy",
		"metadata": {"name": %q, "namespace": %q, "labels": {"l": "v"}, "finalizers": [%s]}, "payload": "{}"}`, name, ns, finalizers)
}

// TestStoredObjectsCanBeDeleted: the garbage collector takes its own finalizers off stored objects, so that they go however they
// are deleted. Nobody but Winnow may change anything else of them.
func TestStoredObjectsCanBeDeleted(t *testing.T) {
	const ns = "stored"
	kubectl(t, "create", "namespace", ns)
	winnow := serviceAccount("winnow")
	kubeconfig, err := shared.KubeconfigFor(winnow.name, winnow.groups...)
	if err != nil {
		t.Fatal(err)
	}
	create := func(name, finalizers string) {
		t.Helper()
		eventually(t, func() error { // Once the role of Winnow is known.
			_, _, err := shared.KubectlStdin(t.Context(), storedPolicy(name, ns, finalizers), "create", "--kubeconfig", kubeconfig, "-f", "-")
			return err
		})
	}
	patch := func(body string, args ...string) error {
		args = append([]string{"patch", "-n", ns, storedKind, "held", "--type=merge", "-p", body}, args...)
		_, _, err := shared.Kubectl(t.Context(), args...)
		return err
	}
	create("held", `"example.com/a", "example.com/b"`)
	eventually(t, func() error {
		if patch(`{"payload": "{ }"}`) == nil {
			return errors.New("the admission policy is not in force yet")
		}
		return nil
	})
	for name, body := range map[string]string{
		"payload":                         `{"payload": "{}\n"}`,
		"payload with a finalizer":        `{"payload": "{}\n", "metadata": {"finalizers": null}}`,
		"another label":                   `{"metadata": {"labels": {"m": "v"}, "finalizers": null}}`,
		"a label gone":                    `{"metadata": {"labels": null, "finalizers": null}}`,
		"an annotation":                   `{"metadata": {"annotations": {"internal.gc.winnow.dev/generation": "2"}}}`,
		"an owner":                        `{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}}`,
		"another finalizer":               `{"metadata": {"finalizers": ["example.com/a", "example.com/b", "example.com/c"]}}`,
		"another finalizer for a removed": `{"metadata": {"finalizers": ["example.com/c"]}}`,
	} {
		wantRefusal(t, name, patch(body), "written by Winnow alone")
	}
	stranger, err := shared.KubeconfigFor("stranger")
	if err != nil {
		t.Fatal(err)
	}
	const without = `{"metadata": {"finalizers": ["example.com/b"]}}`
	wantRefusal(t, "without a role", patch(without, "--kubeconfig", stranger), "cannot get resource")
	for _, body := range []string{without, `{"metadata": {"finalizers": null}}`} {
		if err := patch(body); err != nil {
			t.Errorf("removing a finalizer: %v", err)
		}
	}
	for _, cascade := range []string{"foreground", "orphan", "background"} {
		create(cascade, "")
		kubectl(t, "delete", "-n", ns, storedKind, cascade, "--cascade="+cascade, "--timeout=5m")
	}
}
