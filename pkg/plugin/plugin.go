// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugin has the commands of kubectl-winnow.
package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/winnow-dev/winnow/pkg/plugin/output"
	"github.com/winnow-dev/winnow/pkg/plugin/session"
)

// Exit codes, as in kubectl diff: 1 is for a preview that would delete something, for a test of policies that fails, and, on request, for a
// report that finds something unused.
const (
	exitDeletes = 1
	exitFailed  = 2
)

// errDeletes ends a preview that would delete something.
var errDeletes = errors.New("something would be deleted")

// Run runs the plugin, and returns its exit code.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
	streams.Out, streams.ErrOut = output.Escaping(streams.Out), output.Escaping(streams.ErrOut)
	s := session.New(streams)
	root := newCommand(s)
	root.SetArgs(args)
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx) }()
	switch err := endOf(ctx, ended); {
	case err == nil:
		return 0
	case errors.Is(err, errDeletes), errors.Is(err, errFailed), errors.Is(err, errUnused):
		return exitDeletes
	default:
		fmt.Fprintln(streams.ErrOut, "Error:", s.Explain(err))
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

func newCommand(s *session.Session) *cobra.Command {
	root := &cobra.Command{
		Use:   "winnow COMMAND",
		Short: "Show what finished objects a cluster has, and what Winnow deletes, when, and why",
		Long: `Show what finished objects a cluster has, and what Winnow deletes, when, and why.

Start with "kubectl winnow report". It only reads, and the cluster does not need Winnow. Then:

  1. Write a policy, and try it with "kubectl winnow preview". "kubectl winnow report --help" has an example.
  2. Apply it with "mode: Preview", which deletes nothing, and look at "kubectl get cand".
  3. Set "mode: Enforce". From then on, Winnow deletes.`,
		Annotations:                map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl winnow"},
		SilenceErrors:              true,
		SilenceUsage:               true,
		DisableFlagsInUseLine:      true,
		SuggestionsMinimumDistance: 2,
		Args:                       unknownCommand,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.ErrOut)
	root.SetUsageTemplate(usageTemplate)
	root.SetFlagErrorFunc(wrongFlag)
	s.Flags.AddFlags(root.PersistentFlags())
	root.AddCommand(
		newReport(s), newUnused(s), newPreview(s), newTest(s), newWhy(s), newHistory(s), newRestore(s), newTop(s), newKeep(s), newRelease(s),
		newApprove(s), newUI(s), newVersion(s), newOptions(),
	)
	s.CompleteNamespaces(root)
	return root
}
