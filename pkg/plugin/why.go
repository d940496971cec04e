// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/explain"
	"github.com/winnow-dev/winnow/pkg/plugin/files"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/pkg/plugin/output"
	"github.com/winnow-dev/winnow/pkg/plugin/records"
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
		Use:        "why TYPE/NAME",
		SuggestFor: []string{"explain"},
		Short:      "Explain when an object is deleted, by what, and what would keep it",
		Long: `Explain when an object is deleted, by what, and what would keep it.

With Winnow in the cluster, its server answers. Without Winnow, or with -f, this command decides as the server does. It only reads.

If the object is gone, it explains how Winnow deleted it; see also "kubectl winnow history".`,
		Example: `  # When is this Job deleted?
  kubectl winnow why job/report -n team-a

  # And with this policy?
  kubectl winnow why job/report -n team-a -f policy.yaml

  # The whole explanation
  kubectl winnow why job/report -n team-a -o yaml`,
		Args:              oneObject,
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
	if apierrors.IsNotFound(err) {
		return o.explainGone(ctx, args)
	}
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
	e := explain.Explanation{Object: object.Object, Candidate: candidate, Lines: lines, Wide: o.format.Name == "wide", Now: now}
	if e.Native, err = o.Native(ctx, object); err != nil {
		return err
	}
	if drafts.Empty() {
		if e.Next, err = o.next(ctx, object, candidate, lines); err != nil {
			return err
		}
	}
	e.Print(o.Out)
	return nil
}

// next says what can be done about the object.
func (o *whyOptions) next(ctx context.Context, t *session.Target, c *v1alpha1.CleanupCandidate, lines []string) ([]string, error) {
	object := t.Object
	if c == nil {
		if !slices.Contains(lines, gc.NoPolicyAbout(object.Resource, object.Namespace)) {
			return nil, nil
		}
		return o.tryPolicy(ctx, object)
	}
	var out []string
	if by := c.Status.DecidedBy; c.Status.Reason == string(v1alpha1.CandidateHeld) && by != nil {
		policy := fmt.Sprintf("%s -n %s", by.Name, object.Namespace)
		if by.Kind == gc.KindClusterCleanupPolicy {
			policy = gc.PolicyName(by.Kind, by.Name)
		}
		out = append(out, "Whoever may approve the change can see what waits: kubectl winnow approve "+policy)
	}
	keep, err := o.HowToKeep(ctx, t, c)
	if err != nil || keep == "" {
		return out, err
	}
	return append(out, keep), nil
}

// tryPolicy says how to try a policy for an object that none is about. Perhaps there is no Winnow either.
func (o *whyOptions) tryPolicy(ctx context.Context, object local.Object) ([]string, error) {
	cluster, err := o.Cluster()
	if err != nil {
		return nil, err
	}
	installed, err := cluster.Installed(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking for the API of Winnow: %w", err)
	}
	var out []string
	if !installed {
		out = append(out, "There is no Winnow in this cluster.")
	}
	return append(out, fmt.Sprintf("To try a policy: kubectl winnow why %s/%s -n %s -f policy.yaml", object.Resource, object.Name,
		object.Namespace)), nil
}

// explainGone explains the last deletion of an object of this name by Winnow. It fails if none is known.
func (o *whyOptions) explainGone(ctx context.Context, args []string) error {
	object, err := o.Named(args)
	if err != nil {
		return err
	}
	gone := fmt.Sprintf("there is no %s/%s %s", object.Resource, object.Name, gc.InNamespace(object.Namespace))
	client, err := o.ExpectedWinnow(ctx, "nothing says if it was deleted")
	if err != nil {
		return fmt.Errorf("%s; %w", gone, err)
	}
	last, err := records.LastOf(ctx, client, object)
	switch {
	case err != nil:
		return fmt.Errorf("%s, and Winnow does not say if it deleted it: %w", gone, err)
	case last == nil:
		return fmt.Errorf("%s, and no record that you may see says that Winnow deleted it, so something else probably did: "+
			"for example %s. Records are stored some seconds later; to see them: kubectl winnow history -n %s",
			gone, otherDeleters(object.Resource), object.Namespace)
	}
	if o.format.Name == "" || o.format.Name == "wide" {
		records.Print(o.Out, last, time.Now())
		return nil
	}
	last.APIVersion, last.Kind = v1alpha1.SchemeGroupVersion.String(), "CleanupRecord"
	printed, err := o.format.Document(o.Out, last)
	if !printed {
		fmt.Fprintf(o.Out, "cleanuprecord.%s/%s\n", v1alpha1.GroupName, last.Name)
	}
	return err
}

// otherDeleters says what else often deletes objects of a resource.
func otherDeleters(resource string) string {
	switch resource {
	case gc.ResourceJobs:
		return "Kubernetes by its spec.ttlSecondsAfterFinished, its CronJob, or a person"
	case gc.ResourcePods:
		return "Kubernetes when its Job or another owner was deleted (so ask for that too), or a person"
	}
	return "Kubernetes when its owner was deleted, or a person"
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
