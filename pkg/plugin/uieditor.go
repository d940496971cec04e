// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/files"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/pkg/plugin/ui"
)

// Preview implements ui.Source.
func (s *uiSource) Preview(ctx context.Context, namespace, text string) (ui.Preview, error) {
	if namespace == "" {
		namespace = s.home
	}
	draft, faults := files.Faults(ctx, []byte(text), namespace)
	if len(faults) > 0 {
		return ui.Preview{Errors: fieldErrors(text, faults)}, nil
	}
	cluster, server, said, err := s.decides(ctx)
	if err != nil {
		return ui.Preview{}, err
	}
	var out ui.Preview
	var warnings []string
	switch draft := draft.(type) {
	case *gc.CleanupPolicy:
		out, warnings, err = previewPolicy(ctx, cluster, server, draft)
	case *gc.ClusterCleanupPolicy:
		out, warnings, err = previewClusterPolicy(ctx, cluster, server, draft)
	case *gc.ResourceLifecycle:
		out, warnings, err = s.previewLifecycle(ctx, cluster, server, draft)
	}
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return ui.Preview{Errors: fieldErrors(text, []error{err})}, nil
	case err != nil:
		return ui.Preview{}, err
	}
	out.Warnings = slices.Concat(warnings, said.Few())
	return out, nil
}

func previewPolicy(ctx context.Context, cluster *local.Cluster, server bool, draft *gc.CleanupPolicy) (ui.Preview, []string, error) {
	out := ui.Preview{Kind: gc.KindCleanupPolicy, Namespace: draft.Namespace, Name: draft.Name}
	if err := expectMayReview(ctx, cluster, server, "cleanupreviews", draft.Namespace); err != nil {
		return out, nil, err
	}
	review, warnings, err := cluster.Review(ctx, server, draft)
	if err == nil {
		out.Review = &review.Status
	}
	return out, warnings, err
}

func previewClusterPolicy(
	ctx context.Context, cluster *local.Cluster, server bool, draft *gc.ClusterCleanupPolicy,
) (ui.Preview, []string, error) {
	out := ui.Preview{Kind: gc.KindClusterCleanupPolicy, Name: draft.Name}
	if err := expectMayReview(ctx, cluster, server, "clustercleanupreviews", ""); err != nil {
		return out, nil, err
	}
	review, warnings, err := cluster.ClusterReview(ctx, server, draft)
	if err == nil {
		out.Review = &review.Status.CleanupReviewStatus
	}
	return out, warnings, err
}

// expectMayReview fails if the server reviews policies, but the caller may not ask it.
func expectMayReview(ctx context.Context, cluster *local.Cluster, server bool, resource, namespace string) error {
	if !server {
		return nil
	}
	if may, err := cluster.May(ctx, "create", v1alpha1.Resource(resource), namespace); err != nil || may {
		return err
	}
	where := ""
	if namespace != "" {
		where = " -n " + namespace
	}
	return fmt.Errorf("you may not review this policy: kubectl auth can-i create %s%s", v1alpha1.Resource(resource), where)
}

// previewLifecycle asks the server what it would warn of, in a dry run, if the caller may write the lifecycle.
func (s *uiSource) previewLifecycle(
	ctx context.Context, cluster *local.Cluster, server bool, draft *gc.ResourceLifecycle,
) (ui.Preview, []string, error) {
	out := ui.Preview{Kind: "ResourceLifecycle", Name: draft.Name}
	if !server {
		return out, []string{"the page has only checked it: what it changes is known to the Winnow of a cluster alone"}, nil
	}
	for _, verb := range []string{"get", "create", "update"} {
		if may, err := cluster.May(ctx, verb, v1alpha1.Resource("resourcelifecycles"), ""); err != nil {
			return out, nil, err
		} else if !may {
			return out, []string{fmt.Sprintf("the page has only checked it: what it changes is shown to those who may write it: "+
				"kubectl auth can-i %s %s", verb, v1alpha1.Resource("resourcelifecycles"))}, nil
		}
	}
	client, said, err := s.CollectingWinnow()
	if err != nil {
		return out, nil, err
	}
	written := &v1alpha1.ResourceLifecycle{}
	if err := v1alpha1.Convert_gc_ResourceLifecycle_To_v1alpha1_ResourceLifecycle(draft, written, nil); err != nil {
		return out, nil, err
	}
	stored, err := client.ResourceLifecycles().Get(ctx, draft.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = client.ResourceLifecycles().Create(ctx, written, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	case err == nil:
		stored.Spec = written.Spec
		_, err = client.ResourceLifecycles().Update(ctx, stored, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	}
	return out, said.Few(), err
}

// fieldErrors returns what is wrong with a text, by field and line as far as they are known.
func fieldErrors(text string, faults []error) []ui.FieldError {
	lines := files.NewLines([]byte(text))
	var out []ui.FieldError
	add := func(name, message string) {
		e := ui.FieldError{Field: name, Message: message, Line: lines.Of(name, message)}
		if !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	for _, err := range faults {
		var wrong *field.Error
		var status apierrors.APIStatus
		switch {
		case errors.As(err, &wrong):
			add(wrong.Field, wrong.ErrorBody())
		case errors.As(err, &status) && status.Status().Details != nil && len(status.Status().Details.Causes) > 0:
			for _, cause := range status.Status().Details.Causes {
				add(cause.Field, cause.Message)
			}
		default:
			add(files.UnknownField(err.Error()), err.Error())
		}
	}
	slices.SortStableFunc(out, func(a, b ui.FieldError) int { return a.Line - b.Line })
	return out
}
