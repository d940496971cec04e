// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// completionMost is how many names are offered.
const completionMost = 500

// CompleteNamespaces completes the flag --namespace.
func (s *Session) CompleteNamespaces(root *cobra.Command) {
	_ = root.RegisterFlagCompletionFunc("namespace", // The flag exists.
		func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return s.completeNames(cmd.Context(), schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "", "")
		})
}

// CompletePolicy completes the name of a CleanupPolicy.
func (s *Session) CompletePolicy(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	namespace, err := s.Namespace()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return s.completeNames(cmd.Context(), v1alpha1.SchemeGroupVersion.WithResource("cleanuppolicies"), namespace, "")
}

// CompleteObject completes TYPE/NAME.
func (s *Session) CompleteObject(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	kind, _, ok := strings.Cut(begun, "/")
	switch {
	case len(args) > 0:
		return nil, cobra.ShellCompDirectiveNoFileComp
	case !ok:
		return []string{"job/", "pod/"}, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	}
	mapper, err := s.Flags.ToRESTMapper()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	resource, err := mapper.ResourceFor(schema.ParseGroupResource(kind).WithVersion(""))
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	namespace, err := s.Namespace()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return s.completeNames(cmd.Context(), resource, namespace, kind+"/")
}

// completeNames returns the names of objects, each with a prefix.
func (s *Session) completeNames(
	ctx context.Context, resource schema.GroupVersionResource, namespace, prefix string,
) ([]string, cobra.ShellCompDirective) {
	config, err := s.Flags.ToRESTConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	all, err := client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: completionMost})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	out := make([]string, len(all.Items))
	for i := range all.Items {
		out[i] = prefix + all.Items[i].Name
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
