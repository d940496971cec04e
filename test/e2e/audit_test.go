// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/winnow-dev/winnow/test/cluster"
)

// deletion is what the audit log says of one DELETE request of Winnow.
type deletion struct {
	cluster.AuditEvent
	object           string // "jobs/name"
	policy, rule     string
	propagation      string
	hasPreconditions bool
}

// deletions returns all DELETE requests of Winnow in a namespace, in the order of their answers.
func deletions(t *testing.T, ns string) []deletion {
	t.Helper()
	events, err := suite.Audit(cluster.DeletesBy("winnow"))
	must(t, err)
	var out []deletion
	for _, e := range events {
		if e.ObjectRef.Namespace != ns || strings.HasSuffix(e.ObjectRef.APIGroup, "winnow.dev") {
			continue
		}
		options, err := cluster.DeleteOptions(&e)
		must(t, err)
		d := deletion{AuditEvent: e, object: e.ObjectRef.Resource + "/" + e.ObjectRef.Name}
		if options.PropagationPolicy != nil {
			d.propagation = string(*options.PropagationPolicy)
		}
		p := options.Preconditions
		d.hasPreconditions = p != nil && p.UID != nil && *p.UID != "" && p.ResourceVersion != nil && *p.ResourceVersion != ""
		if _, reason, ok := strings.Cut(e.UserAgent, " (policy="); ok {
			d.policy, d.rule, _ = strings.Cut(strings.TrimSuffix(reason, ")"), "; rule=")
		}
		out = append(out, d)
	}
	return out
}

// expectDeletions waits until the multiset of DELETE requests in a namespace is the wanted one: "jobs/name policy/rule".
// Each must carry both preconditions. One more than wanted fails.
func expectDeletions(t *testing.T, ns string, want ...string) {
	t.Helper()
	slices.Sort(want)
	eventually(t, func(context.Context) string {
		var got []string
		for _, d := range deletions(t, ns) {
			got = append(got, fmt.Sprintf("%s %s/%s", d.object, strings.TrimPrefix(d.policy, ns+"/"), d.rule))
			if !d.hasPreconditions {
				t.Fatalf("DELETE of %s without both preconditions", d.object)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Sprintf("DELETE requests in %s:\n  %s\nwant:\n  %s", ns, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
		return ""
	})
}
