// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app turns flags into a running server: Options -> Config -> CompletedConfig -> Server. It is the only package that imports both
// the controller and the registry.
//
// Admission webhooks and policies of the cluster apply to the served kinds, and to the custom resources that store them. Webhooks that
// match everything should exclude the group internal.gc.winnow.dev, because a webhook that needs Winnow would prevent Winnow from writing.
// The readiness check only reads from the storage, and webhooks do not apply to reads.
package app

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/term"
	"k8s.io/klog/v2"

	"github.com/winnow-dev/winnow/pkg/version"
)

const (
	commandName = "winnow-apiserver"

	long = `Winnow serves the API group gc.winnow.dev behind the aggregator of a Kubernetes cluster. Teams write a CleanupPolicy
in their namespace that says how long to keep finished Jobs and Pods, and how many. Winnow deletes each object on time, and
respects finalizers and owners.

Winnow stores policies in the cluster's own API, so you run no extra database. You can run several replicas: all of them
answer requests, and one of them deletes.`

	example = `  # In a cluster, with the ServiceAccount of the Pod, with certificates that Winnow makes itself:
  winnow-apiserver

  # In a cluster, with certificates from cert-manager:
  winnow-apiserver --tls-cert-file=/tls/tls.crt --tls-private-key-file=/tls/tls.key --tls-ca-file=/tls/ca.crt

  # Outside of a cluster, behind a Service of type ExternalName:
  winnow-apiserver --kubeconfig=winnow.kubeconfig --secure-port=8443 --service-port=8443`
)

func init() {
	utilruntime.Must(logsapi.AddFeatureGates(utilfeature.DefaultMutableFeatureGate))
}

// NewCommand returns the command, which serves until ctx ends. The end of ctx is no error.
func NewCommand(ctx context.Context) *cobra.Command {
	o := NewOptions()
	cmd := &cobra.Command{
		Use:     commandName + " [flags]",
		Short:   "Serve cleanup policies and delete finished Jobs and Pods on time",
		Long:    long,
		Example: example,
		Version: version.Long(),
		Args:    cobra.NoArgs,
		// The usage has 200 lines, above which the error about a flag would be lost.
		SilenceUsage: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return o.ServerRun.ComponentGlobalsRegistry.Set()
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := logsapi.ValidateAndApply(o.Logs, o.Recommended.FeatureGate); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.SetContext(ctx)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("%w; %s --help lists the flags", err, commandName)
	})

	sections := o.Flags()
	global := sections.FlagSet("global")
	globalflag.AddGlobalFlags(global, commandName, logs.SkipLoggingConfigurationFlags())
	global.Bool("version", false, "print the version and exit")
	for _, name := range sections.Order {
		cmd.Flags().AddFlagSet(sections.FlagSets[name])
	}
	columns, _, _ := term.TerminalSize(cmd.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(cmd, sections, columns)
	cmd.CompletionOptions.DisableDefaultCmd = true
	usage := &cobra.Command{} // It has the default functions. The functions of cmd print the flags of the server.
	for _, other := range []*cobra.Command{newGuardCommand(), newCheckCommand()} {
		other.SetUsageFunc(usage.UsageFunc())
		other.SetHelpFunc(usage.HelpFunc())
		cmd.AddCommand(other)
	}
	return cmd
}

func run(ctx context.Context, o *Options) error {
	o.Complete()
	if err := o.Validate(); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Starting Winnow", "version", version.Get())
	config, err := o.Config(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil // told to end before the start
		}
		return err
	}
	server, err := config.Complete().New()
	if err != nil {
		return err
	}
	server.RegisterMetrics()
	if err := server.Run(ctx); err != nil {
		return fmt.Errorf("the server ended: %w", err)
	}
	return nil
}
