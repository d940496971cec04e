// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package winnow

import (
	"context"
	"fmt"
	"strings"

	"github.com/winnow-dev/winnow/test/cluster"
)

// CandidateLacks returns which of some texts the candidate of an object lacks, as YAML on one line; empty if it has all of them.
func CandidateLacks(ctx context.Context, c *cluster.Cluster, ns, object string, texts ...string) string {
	out, stderr, err := c.Kubectl(ctx, "get", "cand", "-n", ns, "-o", "yaml", "--field-selector=object="+object)
	for _, text := range texts {
		if err != nil || !strings.Contains(strings.Join(strings.Fields(out), " "), text) {
			return fmt.Sprintf("no %q in candidate %s: %s%s", text, object, stderr, out)
		}
	}
	return ""
}
