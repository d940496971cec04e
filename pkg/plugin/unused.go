// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/plugin/output"
	"github.com/winnow-dev/winnow/pkg/plugin/session"
	"github.com/winnow-dev/winnow/pkg/plugin/unused"
)

// errUnused ends a report with --exit-code that has something unused.
var errUnused = errors.New("something is unused")

// unusedOptions are the flags of kubectl winnow unused.
type unusedOptions struct {
	*session.Session
	format        output.Format
	allNamespaces bool
	olderThan     string
	exitCode      bool
}

func newUnused(s *session.Session) *cobra.Command {
	o := &unusedOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "unused [TYPE...]",
		Short: "Show PersistentVolumeClaims, ServiceAccounts and Services that nothing uses",
		Long: `Show PersistentVolumeClaims, ServiceAccounts and Services that nothing uses, how large the claims are, and since when no Pod uses
them. Without a TYPE, show all three.

This command only reads, and only what you may list. It deletes nothing. The cluster does not need Winnow.

A claim is unused if no Pod uses it, and nothing refers to it or keeps it: no finished Pod, no template for Pods (of a Deployment with 0
replicas, or a CronJob that is suspended), no StatefulSet that would create a claim of this name, no custom resource that contains its
name, no owner, no finalizer, and no tool that applied it. NO POD SINCE comes from Kubernetes, which reports it from version 1.37 on.

Whatever you may not list counts as a use. The command cannot see what programs do later, for example a CI system that creates a Pod on
demand, so look into a claim before you delete it.`,
		Example: `  # Everything in the current namespace
  kubectl winnow unused

  # Claims in all namespaces that no Pod has used for 90 days
  kubectl winnow unused pvc -A --older-than 90d

  # For a spreadsheet
  kubectl winnow unused pvc -A -o csv

  # In a script: end with 1 if there is an unused claim
  kubectl winnow unused pvc -n team-a --exit-code`,
		ValidArgs: []string{unused.Claims, unused.Accounts, unused.Services},
		RunE:      func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.format.AddFlag(cmd, "json", "yaml", "name", "csv")
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Report on all namespaces.")
	cmd.Flags().StringVar(&o.olderThan, "older-than", "",
		"Show only what no Pod has used for this time, for example 30d. ServiceAccounts and Services must have existed for it.")
	cmd.Flags().BoolVar(&o.exitCode, "exit-code", false, "End with 1 if anything is unused.")
	return cmd
}

func (o *unusedOptions) run(ctx context.Context, args []string) error {
	read, err := o.options(args)
	if err != nil {
		return err
	}
	cluster, err := o.Cluster()
	if err != nil {
		return err
	}
	bar := output.NewProgress(o.ErrOut)
	read.Progress = bar.Add
	report, err := unused.Read(ctx, cluster, read)
	bar.Done()
	if err != nil {
		return err
	}
	report.OlderThan = o.olderThan
	if err := o.print(report); err != nil {
		return err
	}
	if o.exitCode && len(report.Of(unused.Unused, "")) > 0 {
		return errUnused
	}
	return nil
}

// options returns what the flags and arguments ask for.
func (o *unusedOptions) options(args []string) (unused.Options, error) {
	read := unused.Options{Now: time.Now().UTC().Truncate(time.Second)}
	if err := o.format.Validate(); err != nil {
		return read, err
	}
	if o.allNamespaces && o.format.Name == "name" { // Names alone are for kubectl delete, which would look in one namespace for all of them.
		return read, errors.New("-o name has no namespaces, so it cannot be used with -A; use -o csv or -o json, or -n for each namespace")
	}
	for _, arg := range args {
		resource, err := unused.Named(arg)
		if err != nil {
			return read, err
		}
		read.Resources = append(read.Resources, resource)
	}
	slices.Sort(read.Resources)
	if read.Resources = slices.Compact(read.Resources); len(args) == 0 {
		read.Resources = []string{unused.Claims, unused.Accounts, unused.Services}
	}
	if o.olderThan != "" {
		age, err := gc.ParseDuration(o.olderThan)
		if err != nil {
			return read, fmt.Errorf("--older-than=%q %w; use for example 90d", o.olderThan, err)
		}
		read.OlderThan = age
	}
	namespace, err := o.Namespace()
	if !o.allNamespaces {
		read.Namespace = namespace
	}
	return read, err
}

func (o *unusedOptions) print(r *unused.Report) error {
	if printed, err := o.format.Document(o.Out, r); printed {
		return err
	}
	for _, gap := range r.Incomplete {
		o.Warn(gap.String())
	}
	for _, difference := range r.Differences {
		o.Warn(difference + ". It counts as used")
	}
	switch o.format.Name {
	case "name":
		return r.PrintNames(o.Out)
	case "csv":
		return r.PrintCSV(o.Out)
	}
	return r.Print(o.Out)
}
