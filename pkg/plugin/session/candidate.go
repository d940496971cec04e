// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

// Candidate asks the server, or if there is none or there are drafts, the engine in this process. The lines are for people.
func (s *Session) Candidate(
	ctx context.Context, object local.Object, drafts local.Drafts, now time.Time,
) (*v1alpha1.CleanupCandidate, []string, error) {
	cluster, lines, err := s.Collecting()
	if err != nil {
		return nil, nil, err
	}
	if drafts.Empty() {
		if installed, err := cluster.Installed(ctx); err != nil {
			return nil, nil, fmt.Errorf("asking for the API of Winnow: %w", err)
		} else if installed {
			candidate, err := cluster.ServerCandidate(ctx, object)
			return candidate, lines.texts, err
		}
	}
	return cluster.Candidate(ctx, object, drafts, now)
}
