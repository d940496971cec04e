// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// namespace creates one for a test, named after it; the cluster goes as a whole afterwards.
func namespace(t *testing.T) string {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	kubectl(t, "create", "namespace", name)
	return name
}

// kubectl runs it with all rights and returns its standard output. The test ends if it fails.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return kubectlStdin(t, "", args...)
}

func kubectlStdin(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, _, err := shared.KubectlStdin(t.Context(), stdin, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// refused runs what must fail, and returns what the user reads.
func refused(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, stderr, err := shared.KubectlStdin(t.Context(), stdin, args...)
	if err == nil {
		t.Fatalf("kubectl %s was not refused: %s", strings.Join(args, " "), out)
	}
	return stderr
}

// contains fails the test for each part that text lacks.
func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in:\n%s", part, text)
		}
	}
}

// manifest of a policy; spec is in JSON or in YAML's flow style.
func manifest(namespace, name, spec string) string {
	return fmt.Sprintf("apiVersion: gc.winnow.dev/v1alpha1\nkind: CleanupPolicy\nmetadata: {name: %s, namespace: %s}\nspec: %s\n", name, namespace, spec)
}

// create applies a policy and returns it.
func create(t *testing.T, namespace, name, spec string) *v1alpha1.CleanupPolicy {
	t.Helper()
	return decode(t, kubectlStdin(t, manifest(namespace, name, spec), "create", "-f", "-", "-o", "json"))
}

// get reads a policy through kubectl.
func get(t *testing.T, namespace, name string) *v1alpha1.CleanupPolicy {
	t.Helper()
	return decode(t, kubectl(t, "get", "cleanuppolicy", name, "-n", namespace, "-o", "json", "--show-managed-fields"))
}

func decode(t *testing.T, text string) *v1alpha1.CleanupPolicy {
	t.Helper()
	policy := &v1alpha1.CleanupPolicy{}
	if err := json.Unmarshal([]byte(text), policy); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return policy
}

// lines splits a table of kubectl into its cells.
func lines(text string) [][]string {
	var rows [][]string
	for line := range strings.Lines(text) {
		rows = append(rows, strings.Fields(line))
	}
	return rows
}

// eventually asks until the answer is nil; the last answer explains the failure.
func eventually(t *testing.T, timeout time.Duration, ask func(context.Context) error) {
	t.Helper()
	last := errors.New("not asked")
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		last = ask(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%v: %v", err, last)
	}
}

// owners maps each field manager to the JSON of what it owns.
func owners(meta metav1.ObjectMeta) map[string]string {
	owned := map[string]string{}
	for _, entry := range meta.ManagedFields {
		owned[entry.Manager+entry.Subresource] = entry.FieldsV1.GetRawString()
	}
	return owned
}
