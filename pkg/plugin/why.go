// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/explain"
	"github.com/winnow-dev/winnow/pkg/plugin/files"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/pkg/plugin/output"
	"github.com/winnow-dev/winnow/pkg/plugin/session"
)

// whyOptions are the flags of kubectl winnow why.
type whyOptions struct {
	*session.Session
	format output.Format
	files  files.Flag
}

func newWhy(s *session.Session) *cobra.Command {
	o := &whyOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "why TYPE/NAME",
		Short: "Explain when an object is deleted, by what, and what would keep it",
		Long: `Explain when an object is deleted, by what, and what would keep it.

With Winnow in the cluster, its server answers. Without Winnow, or with -f, this command decides as the server does. It only reads.`,
		Example: `  # When is this Job deleted?
  kubectl winnow why job/report -n team-a

  # And with this policy?
  kubectl winnow why job/report -n team-a -f policy.yaml

  # The whole explanation
  kubectl winnow why job/report -n team-a -o yaml`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: s.CompleteObject,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.format.AddFlag(cmd, "json", "yaml", "name", "wide")
	o.files.AddFlag(cmd, "Files with policies to try, or - for standard input. Each counts as if its mode were Enforce.")
	return cmd
}

func (o *whyOptions) run(ctx context.Context, args []string) error {
	if err := o.format.Validate(); err != nil {
		return err
	}
	object, err := o.Object(args)
	if err != nil {
		return err
	}
	drafts, err := o.files.Read(ctx, o.In, object.Object.Namespace)
	if err != nil {
		return err
	}
	now := time.Now()
	candidate, lines, err := o.Candidate(ctx, object.Object, drafts, now)
	if err != nil {
		return err
	}
	if o.format.Name != "" && o.format.Name != "wide" {
		return o.printCandidate(object.Object, candidate, lines)
	}
	native, err := o.Native(ctx, object)
	if err != nil {
		return err
	}
	e := explain.Explanation{
		Object: object.Object, Candidate: candidate, Lines: lines, Native: native, Wide: o.format.Name == "wide", Now: now,
	}
	e.Print(o.Out)
	return nil
}

// printCandidate prints a candidate in a format for programs. It fails if there is none; the lines say why.
func (o *whyOptions) printCandidate(object local.Object, c *v1alpha1.CleanupCandidate, lines []string) error {
	for _, line := range lines {
		o.Warn(line)
	}
	if c == nil {
		return fmt.Errorf("there is no candidate for %s/%s", object.Resource, object.Name)
	}
	c.APIVersion, c.Kind = v1alpha1.SchemeGroupVersion.String(), "CleanupCandidate"
	printed, err := o.format.Document(o.Out, c)
	if !printed {
		fmt.Fprintf(o.Out, "cleanupcandidate.%s/%s\n", v1alpha1.GroupName, c.Name)
	}
	return err
}
