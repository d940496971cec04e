// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// TestTenantSeesWhoDeletedHisJob: who has no more than the role view in his namespace, and cannot read cluster policies, finds out which
// of them deleted his Job, when, and by which rule.
func TestTenantSeesWhoDeletedHisJob(t *testing.T) {
	t.Parallel()
	g := newGroup()
	ns := g.namespace(t)
	user := "tenant-of-" + ns
	kubeconfig, err := suite.KubeconfigFor(user)
	must(t, err)
	if _, stderr, err := suite.Kubectl(t.Context(), "create", "rolebinding", "tenant", "-n", ns, "--clusterrole=view", "--user="+user); err != nil {
		t.Fatal(stderr)
	}
	begun := time.Now()
	createJob(t, ns, job("report"))
	waitJobFinished(t, ns, "report")
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{Rules: []v1alpha1.CleanupRule{{Name: "reports", TTL: ttl("0s")}}})
	waitJobs(t, ns, 0)

	asTenant := func(ctx context.Context, args ...string) (string, string, error) {
		return suite.Kubectl(ctx, append([]string{"--kubeconfig", kubeconfig, "-n", ns}, args...)...)
	}
	eventually(t, func(ctx context.Context) string {
		out, stderr, err := asTenant(ctx, "events", "--for", "job/report")
		want := fmt.Sprintf("Deleted 1 jobs.batch by rule reports of ClusterCleanupPolicy %s", g)
		if err != nil || !strings.Contains(out, want) {
			return stderr + out
		}
		return ""
	})
	out, stderr, err := asTenant(t.Context(), "get", "events", "--field-selector=reason=Deleted",
		"--output=jsonpath={range .items[*]}{.related.kind}/{.related.name} {.eventTime}{end}")
	if err != nil {
		t.Fatal(stderr)
	}
	policy, at, _ := strings.Cut(out, " ")
	told, err := time.Parse(time.RFC3339Nano, at)
	if policy != "ClusterCleanupPolicy/"+string(g) || err != nil || told.Before(begun) || told.After(time.Now()) {
		t.Errorf("told of %q at %q", policy, at)
	}
	if _, stderr, err := asTenant(t.Context(), "get", "ccup"); err == nil || !strings.Contains(stderr, "Forbidden") {
		t.Errorf("the tenant can read cluster policies: %v %s", err, stderr)
	}
}
