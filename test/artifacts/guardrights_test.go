// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// TestRightsOfGuard: the guard may withdraw the registration and say so, and nothing else.
func TestRightsOfGuard(t *testing.T) {
	if diff := cmp.Diff(map[string]string{"events.events.k8s.io": "create"}, rights(t, "winnow-guard", namespace)); diff != "" {
		t.Errorf("rights in %s (-want +got):\n%s", namespace, diff)
	}
	if diff := cmp.Diff(map[string]string{}, rights(t, "winnow-guard", "team-a")); diff != "" {
		t.Errorf("rights elsewhere (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{"v1alpha1.gc.winnow.dev": "get delete", "v1beta1.metrics.k8s.io": ""} {
		var granted []string
		for _, verb := range strings.Fields(allVerbs) {
			if may(t, serviceAccount("winnow-guard"), authorizationv1.ResourceAttributes{
				Verb: verb, Group: "apiregistration.k8s.io", Resource: "apiservices", Name: name}) {
				granted = append(granted, verb)
			}
		}
		if got := strings.Join(granted, " "); got != want {
			t.Errorf("APIService %s: may %q, want %q", name, got, want)
		}
	}
}
