// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// completeNamespaces completes the flag --namespace.
func completeNamespaces(root *cobra.Command, p *plugin) {
	_ = root.RegisterFlagCompletionFunc("namespace", // The flag exists.
		func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			config, err := p.flags.ToRESTConfig()
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			all, err := client.CoreV1().Namespaces().List(cmd.Context(), metav1.ListOptions{})
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			var out []string
			for i := range all.Items {
				out = append(out, all.Items[i].Name)
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		})
}
