// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/winnow-dev/winnow/pkg/plugin/files"
	"github.com/winnow-dev/winnow/pkg/plugin/session"
	"github.com/winnow-dev/winnow/pkg/plugin/ui"
)

// uiOptions are the flags of kubectl winnow ui.
type uiOptions struct {
	*session.Session
	files         files.Flag
	port          uint16
	allNamespaces bool
}

func newUI(s *session.Session) *cobra.Command {
	o := &uiOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show everything on a page in your browser",
		Long: `Show everything on a page in your browser: what waits for approval; what is due in the next hour, day and week; every candidate,
and why; policies; what was deleted; and an editor that shows what a policy would delete while you write it.

This command prints the address of the page, and serves it until you press Ctrl-C. Only this machine reaches it, and only with the token in
the address, so do not share the address. The page has your permissions: it asks the cluster as you, with your kubeconfig, like kubectl
proxy. It only reads, until you press a button that approves a change, or keeps or releases an object.

The cluster does not need Winnow. Without Winnow, or with -f, this command decides as the server does.`,
		Example: `  # All namespaces that you may list
  kubectl winnow ui

  # One namespace
  kubectl winnow ui -n team-a

  # What would these policies delete?
  kubectl winnow ui -f policies.yaml

  # From another machine: a fixed port, and in another terminal there: ssh -L 8002:127.0.0.1:8002 HOST
  kubectl winnow ui --port 8002`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().Uint16Var(&o.port, "port", 0, "Port on 127.0.0.1. 0 is a free one.")
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false,
		"Begin with all namespaces. This is the default if you may list them and do not use -n.")
	o.files.AddFlag(cmd, "Files with policies to try, or - for standard input. Each counts as if its mode were Enforce.")
	return cmd
}

func (o *uiOptions) run(ctx context.Context) error {
	namespace, err := o.Namespace()
	if err != nil {
		return err
	}
	drafts, err := o.files.Read(ctx, o.In, namespace)
	if err != nil {
		return err
	}
	listener, err := ui.Listen(ctx, o.port)
	if err != nil {
		return err
	}
	server, err := ui.New(newUISource(o, namespace, drafts), listener)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "%s\nOpen this address in a browser on this machine. Ctrl-C ends the page.\n", server.URL())
	return ui.Serve(ctx, listener, server)
}
