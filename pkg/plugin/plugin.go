// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugin has the commands of kubectl-winnow.
package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/pkg/version"
)

// Exit codes, as those of kubectl diff: 1 is for a preview that would delete something.
const (
	exitDeletes = 1
	exitFailed  = 2
)

// errDeletes ends a preview that would delete something.
var errDeletes = errors.New("something would be deleted")

// Run runs the plugin, and returns its exit code.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
	streams.Out, streams.ErrOut = escaping(streams.Out), escaping(streams.ErrOut)
	root := newCommand(streams)
	root.SetArgs(args)
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx) }()
	switch err := endOf(ctx, ended); {
	case err == nil:
		return 0
	case errors.Is(err, errDeletes):
		return exitDeletes
	default:
		fmt.Fprintln(streams.ErrOut, "Error:", err)
		return exitFailed
	}
}

// endsWithin is how long a command may take to end once its context has ended.
const endsWithin = time.Second

// endOf returns how a command ends. Not all of them heed their context: to read from a terminal, for example, goes on.
func endOf(ctx context.Context, ended <-chan error) error {
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(endsWithin):
		return errors.New("interrupted")
	}
}

func newCommand(streams genericiooptions.IOStreams) *cobra.Command {
	p := &plugin{IOStreams: streams, flags: genericclioptions.NewConfigFlags(true)}
	p.flags.WithWrapConfigFn(func(c *rest.Config) *rest.Config {
		c.UserAgent, c.QPS = "kubectl-winnow/"+version.Get(), -1 // The API server limits requests itself.
		c.WarningHandler = warnings{p.ErrOut}
		return c
	})
	root := &cobra.Command{
		Use:   "winnow",
		Short: "Show what finished objects a cluster has, and what Winnow deletes, when, and why",
		Long: `Show what finished objects a cluster has, and what Winnow deletes, when, and why.

Start with "kubectl winnow report". It only reads, and the cluster does not need Winnow. Then:

  1. Write a policy, and try it with "kubectl winnow preview". "kubectl winnow report --help" has an example.
  2. Apply it with "mode: Preview", which deletes nothing, and look at "kubectl get cand".
  3. Set "mode: Enforce". From then on, Winnow deletes.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl winnow"},
		Version:       version.Long(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	p.flags.AddFlags(root.PersistentFlags())
	root.AddCommand(newReport(p), newPreview(p), newWhy(p), newTop(p), newKeep(p), newRelease(p), newApprove(p), newUI(p))
	completeNamespaces(root, p)
	return root
}

// plugin is what all commands share.
type plugin struct {
	genericiooptions.IOStreams
	flags *genericclioptions.ConfigFlags
}

// namespace returns the namespace of the flags, or of the kubeconfig.
func (p *plugin) namespace() (string, error) {
	namespace, _, err := p.flags.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

// cluster returns what decides in this process.
func (p *plugin) cluster() (*local.Cluster, error) {
	c, err := p.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return local.New(c)
}

// expectWinnow fails if there is no Winnow in the cluster. so says what follows from that.
func expectWinnow(ctx context.Context, cluster *local.Cluster, so string) error {
	installed, err := cluster.Installed(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("asking for the API of Winnow: %w", err)
	case !installed:
		return fmt.Errorf("there is no Winnow in this cluster, so %s; to see what finished objects lie around: kubectl winnow report", so)
	}
	return nil
}

// warn writes a line that is no part of the result.
func (p *plugin) warn(text string) { warnings{p.ErrOut}.write(text) }

// warnings writes warnings as kubectl does.
type warnings struct{ io.Writer }

func (w warnings) write(text string) { fmt.Fprintf(w.Writer, "Warning: %s\n", text) }

// HandleWarningHeader implements rest.WarningHandler. 299 is the code of all warnings of an API server.
func (w warnings) HandleWarningHeader(code int, _, text string) {
	if code == 299 && text != "" {
		w.write(text)
	}
}
