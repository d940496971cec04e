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
	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

// previewOptions are those of the command preview.
type previewOptions struct {
	*plugin
	output
	files
}

func newPreview(p *plugin) *cobra.Command {
	o := &previewOptions{plugin: p}
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
	o.output.addFlags(cmd, "json", "yaml", "name", "wide")
	o.files.addFlags(cmd, "Files with CleanupPolicies, or - for standard input.")
	_ = cmd.MarkFlagRequired("filename") // The flag exists.
	return cmd
}

func (o *previewOptions) run(ctx context.Context) error {
	policies, err := o.policies(ctx)
	if err != nil {
		return err
	}
	cluster, err := o.cluster()
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

// policies returns those of the files.
func (o *previewOptions) policies(ctx context.Context) ([]*gc.CleanupPolicy, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	namespace, err := o.namespace()
	if err != nil {
		return nil, err
	}
	drafts, err := o.drafts(ctx, o.In, namespace)
	if err != nil {
		return nil, err
	}
	return onlyPolicies(drafts, strings.Join(o.names, ","))
}

// review returns the answer for one policy, and prints the warnings.
func (o *previewOptions) review(
	ctx context.Context, cluster *local.Cluster, draft *gc.CleanupPolicy, installed bool,
) (*v1alpha1.CleanupReview, error) {
	review, warnings, err := reviewOf(ctx, cluster, draft, installed)
	for _, text := range warnings {
		o.warn(text)
	}
	if err == nil {
		review.APIVersion, review.Kind = v1alpha1.SchemeGroupVersion.String(), "CleanupReview"
	}
	return review, err
}

// reviewOf asks the server, or if there is none, the engine in this process. The server sends warnings itself.
func reviewOf(
	ctx context.Context, cluster *local.Cluster, draft *gc.CleanupPolicy, installed bool,
) (*v1alpha1.CleanupReview, []string, error) {
	if !installed {
		return cluster.Review(ctx, draft)
	}
	review, err := cluster.ServerReview(ctx, draft)
	return review, nil, err
}

// onlyPolicies returns the CleanupPolicies among drafts of a file. Other drafts are an error.
func onlyPolicies(drafts local.Drafts, file string) ([]*gc.CleanupPolicy, error) {
	if len(drafts.ClusterPolicies) > 0 {
		return nil, fmt.Errorf("preview is about CleanupPolicies; for a ClusterCleanupPolicy: kubectl winnow report -A -f %s", file)
	}
	return drafts.Policies, nil
}

// print prints a review. another says that one was printed before.
func (o *previewOptions) print(r *v1alpha1.CleanupReview, another bool) error {
	if another {
		switch o.format {
		case "yaml":
			fmt.Fprintln(o.Out, "---")
		case "", "wide":
			fmt.Fprintln(o.Out)
		}
	}
	if printed, err := o.document(o.Out, r); printed {
		return err
	}
	if o.format == "name" {
		fmt.Fprintf(o.Out, "cleanupreview.%s/%s\n", v1alpha1.GroupName, r.Name)
		return nil
	}
	return printReview(o.Out, r, o.format == "wide", time.Now())
}

// printReview prints a review as a plan.
func printReview(w io.Writer, r *v1alpha1.CleanupReview, wide bool, now time.Time) error {
	s := &r.Status
	title := fmt.Sprintf("Policy %s in namespace %s", r.Name, r.Namespace)
	if len(s.Deletions) == 0 {
		fmt.Fprintf(w, "%s would delete nothing within a week.\n", oneLine(title))
	} else {
		heading(w, "%s would delete", title)
		t := newTable("Resource", "Rule", "Now", "1h", "1d", "7d", "Held")
		for _, d := range s.Deletions {
			t.add(d.Resource, d.Rule, d.Now, d.Hour, d.Day, d.Week, d.Held)
		}
		if err := t.print(w, wide); err != nil {
			return err
		}
	}
	if len(s.Sample) > 0 {
		fmt.Fprintln(w)
		heading(w, "The first of them")
		t := newTable("Object", "Rule", "Due", "Reason")
		for _, object := range s.Sample {
			due := "now"
			if object.DueTime != nil {
				due = when(object.DueTime.Time, now)
			}
			t.add(object.Resource+"/"+object.Name, object.Rule, due, object.Reason)
		}
		if err := t.print(w, wide); err != nil {
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
		fmt.Fprintf(w, "Not counted, because you may not list them: %s\n", oneLine(strings.Join(s.HiddenResources, ", ")))
	}
	if !s.Complete {
		fmt.Fprintln(w, "There are more objects than were counted, so every number is a minimum.")
	}
	return nil
}
