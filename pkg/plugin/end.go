// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/explain"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/pkg/plugin/output"
	"github.com/winnow-dev/winnow/pkg/plugin/session"
)

// decidedWithin is how long to wait until Winnow has decided on a new state of an object.
const decidedWithin = 10 * time.Second

// tellEnd says when the object is deleted, once Winnow has decided on this state of it.
func tellEnd(ctx context.Context, s *session.Session, t *session.Target, resourceVersion string, now time.Time) error {
	cluster, said, err := s.Collecting()
	if err != nil {
		return err
	}
	if installed, err := cluster.Installed(ctx); err != nil {
		return fmt.Errorf("the object is annotated, but Winnow does not answer: %w", err)
	} else if !installed {
		fmt.Fprintln(s.Out, "There is no Winnow in this cluster, so nothing acts on the annotations.")
		return nil
	}
	candidate, err := decided(ctx, cluster, said, t.Object, resourceVersion)
	switch {
	case wait.Interrupted(err) && ctx.Err() == nil:
		fmt.Fprintln(s.Out, "Winnow has not seen the change yet. To see what it does with the object: kubectl winnow why",
			t.Object.Resource+"/"+t.Object.Name)
		return nil
	case err != nil:
		return err
	case candidate == nil:
		for _, text := range said.Texts() {
			output.PrintLine(s.Out, "", output.Sentence(text))
		}
		return nil
	}
	printEnd(s.Out, candidate, now)
	return nil
}

// decided waits until Winnow has decided on this state of an object, and returns the decision; nil if the object is no candidate.
func decided(
	ctx context.Context, cluster *local.Cluster, said *session.Collected, object local.Object, resourceVersion string,
) (candidate *v1alpha1.CleanupCandidate, err error) {
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, decidedWithin, true, func(ctx context.Context) (bool, error) {
		said.Reset()
		var err error
		candidate, err = cluster.ServerCandidate(ctx, object)
		return err == nil && (candidate == nil || atLeast(candidate.Status.Object.ResourceVersion, resourceVersion)), err
	})
	return candidate, err
}

// printEnd says when an object is deleted, and what has changed that. What was kept for 30 days at now is due in 30 days, not in 29.
func printEnd(out io.Writer, c *v1alpha1.CleanupCandidate, now time.Time) {
	s := &c.Status
	if s.DueTime != nil {
		fmt.Fprintf(out, "It is due %s (%s).\n", s.DueTime.UTC().Format(time.RFC3339), gc.ShownDue(string(s.State), s.DueTime.Time, now))
	}
	for i := range s.Adjustments {
		output.PrintLine(out, "", explain.Adjustment(&s.Adjustments[i])+".")
	}
	message, _, _ := strings.Cut(s.Message, ". "+gc.ToKeepLonger) // The user has just done that, or undone it.
	output.PrintLine(out, "", output.Sentence(fmt.Sprintf("%s: %s", explain.Outcome(s), message)))
}

// atLeast reports whether a resource version is the same as another one or newer.
func atLeast(version, other string) bool {
	a, errA := strconv.ParseUint(version, 10, 64)
	b, errB := strconv.ParseUint(other, 10, 64)
	return errA == nil && errB == nil && a >= b
}
