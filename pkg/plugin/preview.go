// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/files"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/pkg/plugin/output"
	"github.com/winnow-dev/winnow/pkg/plugin/session"
)

// previewOptions are the flags of kubectl winnow preview.
type previewOptions struct {
	*session.Session
	format output.Format
	files  files.Flag
}

func newPreview(s *session.Session) *cobra.Command {
	o := &previewOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "preview -f FILENAME",
		Short: "Show what a policy would delete before you apply it",
		Long: `Show what a CleanupPolicy would delete before you apply it: now, and within an hour, a day and a week.
If the namespace has a policy of the same name, the one in the file takes its place. Nothing is stored or deleted.

With Winnow in the cluster, its server answers. Otherwise, this command decides as the server does.

Exit status: 0 if the policies would delete nothing within a week, 1 if they would delete something, more than 1 for an error.`,
		Example: `  # What would this policy delete?
  kubectl winnow preview -f policy.yaml -n team-a

  # In a pipeline: apply a policy only if it deletes nothing yet
  kubectl winnow preview -f policy.yaml && kubectl apply -f policy.yaml`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.format.AddFlag(cmd, "json", "yaml", "name", "wide")
	o.files.AddFlag(cmd, "Files with CleanupPolicies, or - for standard input.")
	_ = cmd.MarkFlagRequired("filename") // The flag exists.
	return cmd
}

func (o *previewOptions) run(ctx context.Context) error {
	policies, err := o.policies(ctx)
	if err != nil {
		return err
	}
	cluster, err := o.Cluster()
	if err != nil {
		return err
	}
	installed, err := cluster.Installed(ctx)
	if err != nil {
		return fmt.Errorf("asking for the API of Winnow: %w", err)
	}
	deletes, incomplete := false, false
	for i, draft := range policies {
		review, err := o.review(ctx, cluster, draft, installed)
		if err != nil {
			return err
		}
		if err := o.print(review, i > 0); err != nil {
			return err
		}
		deletes, incomplete = deletes || len(review.Status.Deletions) > 0, incomplete || !review.Status.Complete
	}
	switch {
	case deletes:
		return errDeletes
	case incomplete:
		return errors.New("not all objects were counted, so the policy may delete some of them")
	}
	return nil
}

// policies returns the policies in the files.
func (o *previewOptions) policies(ctx context.Context) ([]*gc.CleanupPolicy, error) {
	if err := o.format.Validate(); err != nil {
		return nil, err
	}
	namespace, err := o.Namespace()
	if err != nil {
		return nil, err
	}
	drafts, err := o.files.Read(ctx, o.In, namespace)
	if err != nil {
		return nil, err
	}
	return files.OnlyPolicies(drafts, strings.Join(o.files.Names, ","))
}

// review returns the answer for one policy, and prints the warnings.
func (o *previewOptions) review(
	ctx context.Context, cluster *local.Cluster, draft *gc.CleanupPolicy, installed bool,
) (*v1alpha1.CleanupReview, error) {
	review, warnings, err := cluster.ReviewBy(ctx, installed, draft)
	for _, text := range warnings {
		o.Warn(text)
	}
	if err == nil {
		review.APIVersion, review.Kind = v1alpha1.SchemeGroupVersion.String(), "CleanupReview"
	}
	return review, err
}

// print prints a review. another says that one was printed before.
func (o *previewOptions) print(r *v1alpha1.CleanupReview, another bool) error {
	if another {
		switch o.format.Name {
		case "yaml":
			fmt.Fprintln(o.Out, "---")
		case "", "wide":
			fmt.Fprintln(o.Out)
		}
	}
	if printed, err := o.format.Document(o.Out, r); printed {
		return err
	}
	if o.format.Name == "name" {
		fmt.Fprintf(o.Out, "cleanupreview.%s/%s\n", v1alpha1.GroupName, r.Name)
		return nil
	}
	return printReview(o.Out, r, o.format.Name == "wide", time.Now())
}

// printReview prints a review as a plan.
func printReview(w io.Writer, r *v1alpha1.CleanupReview, wide bool, now time.Time) error {
	s := &r.Status
	title := fmt.Sprintf("Policy %s in namespace %s", r.Name, r.Namespace)
	if len(s.Deletions) == 0 {
		fmt.Fprintf(w, "%s would delete nothing within a week.\n", output.OneLine(title))
	} else {
		output.Heading(w, "%s would delete", title)
		t := output.NewTable("Resource", "Rule", "Now", "1h", "1d", "7d", "Held")
		for _, d := range s.Deletions {
			t.Add(d.Resource, d.Rule, d.Now, d.Hour, d.Day, d.Week, d.Held)
		}
		if err := t.Print(w, wide); err != nil {
			return err
		}
	}
	if len(s.Sample) > 0 {
		fmt.Fprintln(w)
		output.Heading(w, "The first of them")
		t := output.NewTable("Object", "Rule", "Due", "Reason")
		for _, object := range s.Sample {
			due := "now"
			if object.DueTime != nil {
				due = output.When(object.DueTime.Time, now)
			}
			t.Add(object.Resource+"/"+object.Name, object.Rule, due, object.Reason)
		}
		if err := t.Print(w, wide); err != nil {
			return err
		}
	}
	with, without := s.WithDraft, s.WithoutDraft
	fmt.Fprintf(w, "\nAll policies together delete %d now and %d within a week. Without this policy: %d and %d.\n",
		with.Now, with.Week, without.Now, without.Week)
	if with.Held > 0 {
		fmt.Fprintf(w, "Due within a week, but something keeps them: %d.\n", with.Held)
	}
	if len(s.HiddenResources) > 0 {
		fmt.Fprintf(w, "Not counted, because you may not list them: %s\n", output.OneLine(strings.Join(s.HiddenResources, ", ")))
	}
	if !s.Complete {
		fmt.Fprintln(w, "There are more objects than were counted, so every number is a minimum.")
	}
	return nil
}
