// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

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

	printed             bool
	deletes, incomplete bool
}

func newPreview(s *session.Session) *cobra.Command {
	o := &previewOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "preview -f FILENAME",
		Short: "Show what a policy would delete before you apply it",
		Long: `Show what a CleanupPolicy or a ClusterCleanupPolicy would delete before you apply it: now, and within an hour, a day and a
week. If there is a policy of the same name, the one in the file takes its place. Nothing is stored or deleted.

A cluster policy is previewed in all namespaces that it selects, as far as you may list the objects there.

With Winnow in the cluster, its server answers. Otherwise, this command decides as the server does.

Exit status: 0 if nothing would become due by the policies within a week, 1 if something would, even if something else keeps it, or
if other policies would delete more, more than 1 for an error.`,
		Example: `  # What would this policy delete?
  kubectl winnow preview -f policy.yaml -n team-a

  # What would this cluster policy delete, in all namespaces that I may see?
  kubectl winnow preview -f cluster-policy.yaml

  # In a pipeline: apply a policy only if it deletes nothing yet
  kubectl winnow preview -f policy.yaml && kubectl apply -f policy.yaml`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.format.AddFlag(cmd, "json", "yaml", "name", "wide")
	o.files.AddFlag(cmd, "Files with policies, or - for standard input.")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if len(o.files.Names) == 0 {
			return errors.New("name a file that has a policy: kubectl winnow preview -f policy.yaml")
		}
		return nil
	}
	return cmd
}

func (o *previewOptions) run(ctx context.Context) error {
	drafts, err := o.drafts(ctx)
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
	for _, draft := range drafts.ClusterPolicies {
		review, warnings, err := cluster.ClusterReview(ctx, installed, draft)
		if err := o.warn(warnings, o.inOneNamespace(err)); err != nil {
			return err
		}
		review.APIVersion, review.Kind = v1alpha1.SchemeGroupVersion.String(), "ClusterCleanupReview"
		if err := o.print(review, &review.Status.CleanupReviewStatus); err != nil {
			return err
		}
	}
	for _, draft := range drafts.Policies {
		review, warnings, err := cluster.Review(ctx, installed, draft)
		if err := o.warn(warnings, err); err != nil {
			return err
		}
		review.APIVersion, review.Kind = v1alpha1.SchemeGroupVersion.String(), "CleanupReview"
		if err := o.print(review, &review.Status); err != nil {
			return err
		}
	}
	switch {
	case o.deletes:
		return errDeletes
	case o.incomplete:
		return errors.New("not all objects were counted, so the policy may delete some of them")
	}
	return nil
}

// inOneNamespace adds to an error that the caller may not review a cluster policy what they can do instead.
func (o *previewOptions) inOneNamespace(err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	namespace, unknown := o.Namespace()
	if unknown != nil {
		return err
	}
	return fmt.Errorf("%w; to try it in one namespace: kubectl winnow report -n %s -f %s", err, namespace, strings.Join(o.files.Names, ","))
}

// drafts returns the policies in the files.
func (o *previewOptions) drafts(ctx context.Context) (local.Drafts, error) {
	if err := o.format.Validate(); err != nil {
		return local.Drafts{}, err
	}
	namespace, asked, err := o.Flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return local.Drafts{}, err
	}
	drafts, err := o.files.Read(ctx, o.In, namespace)
	for _, p := range drafts.Policies {
		if asked && p.Namespace != namespace { // kubectl refuses it too.
			return drafts, fmt.Errorf("the policy %q is for namespace %q, and not for %q: use -n %[2]s, or no -n", p.Name, p.Namespace, namespace)
		}
	}
	return drafts, err
}

// warn prints warnings, and returns the error.
func (o *previewOptions) warn(warnings []string, err error) error {
	for _, text := range warnings {
		o.Warn(text)
	}
	return err
}

// print prints a review.
func (o *previewOptions) print(review reviewed, s *v1alpha1.CleanupReviewStatus) error {
	more := s.WithDraft.Now > s.WithoutDraft.Now || s.WithDraft.Week > s.WithoutDraft.Week // by other policies too
	o.deletes, o.incomplete = o.deletes || len(s.Deletions) > 0 || more, o.incomplete || !s.Complete
	if o.printed {
		switch o.format.Name {
		case "yaml":
			fmt.Fprintln(o.Out, "---")
		case "", "wide":
			fmt.Fprintln(o.Out)
		}
	}
	o.printed = true
	if printed, err := o.format.Document(o.Out, review); printed {
		return err
	}
	if o.format.Name == "name" {
		kind := strings.ToLower(review.GetObjectKind().GroupVersionKind().Kind)
		fmt.Fprintf(o.Out, "%s.%s/%s\n", kind, v1alpha1.GroupName, review.GetName())
		return nil
	}
	return printReview(o.Out, review, o.format.Name == "wide", time.Now())
}
