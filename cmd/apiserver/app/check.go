// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/registration"
)

// checkPoll is how often the API is requested.
const checkPoll = time.Second

// newCheckCommand returns the command that checks whether the cluster serves Winnow's API.
func newCheckCommand() *cobra.Command {
	var kubeconfig string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check that the cluster serves Winnow's API",
		Long: `Requests Winnow's API from kube-apiserver until it is served. Everybody who can log in to the cluster may do that. Helm runs this
command for helm test.`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := loadConfig("--kubeconfig", kubeconfig)
			if err != nil {
				return err
			}
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				return err
			}
			return check(cmd.Context(), cmd.OutOrStdout(), timeout, func(ctx context.Context) error {
				return registration.Ask(ctx, client.Discovery())
			})
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "",
		"Path to the kubeconfig of the cluster. If unset, the command uses the ServiceAccount of its Pod.")
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Minute, "How long to wait for the API.")
	return cmd
}

// check asks until there is an answer, and prints one line.
func check(ctx context.Context, out io.Writer, timeout time.Duration, ask func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, checkPoll, timeout, true, func(ctx context.Context) (bool, error) {
		if err := ask(ctx); err == nil || ctx.Err() == nil {
			last = err
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("the cluster does not serve %s after %s: %w; see kubectl describe apiservice v1alpha1.gc.winnow.dev",
			v1alpha1.SchemeGroupVersion, timeout, last)
	}
	fmt.Fprintf(out, "The cluster serves %s.\n", v1alpha1.SchemeGroupVersion)
	return nil
}
