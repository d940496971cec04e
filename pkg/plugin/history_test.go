// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/records"
)

// TestTooMany: a warning says which records are missing.
func TestTooMany(t *testing.T) {
	found := []v1alpha1.CleanupRecord{{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "b"}}}
	for namespace, want := range map[string]string{
		"":  "there are more than 2 records, and these are of namespaces up to b only: use --limit, or --since",
		"b": "there are more than 2 records: use --limit, or --since",
	} {
		if got := tooMany(records.Query{Namespace: namespace, Limit: 2}, found); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
