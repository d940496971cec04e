// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPoliciesOfANamespace: a namespace takes fifty, also when they come at once. Those that it has can be changed, and make room.
func TestPoliciesOfANamespace(t *testing.T) {
	t.Parallel()
	const most = 50
	p := scoped(t, ofNamespace)
	var group sync.WaitGroup
	for i := range most + 10 {
		group.Go(func() {
			_, err := p.client().Create(t.Context(), p.object(fmt.Sprint("p-", i), `{annotationTTL: Ignore}`), metav1.CreateOptions{})
			if err != nil && !apierrors.IsInvalid(err) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	names := strings.Fields(kubectl(t, "get", "cup", "-n", p.id, "-o", "name"))
	if len(names) != most {
		t.Errorf("there are %d policies, want %d", len(names), most)
	}
	const want = "already has the maximum of 50 policies; combine rules into one policy, delete a policy, or ask an operator to raise --max-policies-per-namespace"
	contains(t, refused(t, p.manifest("new", `{}`), "create", "-f", "-"), want)
	contains(t, refused(t, p.manifest("new", `{}`), "create", "--dry-run=server", "-f", "-"), want)
	contains(t, refused(t, p.manifest("new", `{}`), "apply", "--server-side", "-f", "-"), want)
	kubectl(t, "patch", names[0], "-n", p.id, "--type=merge", "-p", `{"spec":{"mode":"Preview"}}`)
	kubectl(t, "delete", names[0], "-n", p.id)
	p.create("new", `{}`)
}
