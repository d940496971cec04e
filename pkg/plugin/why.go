// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

// whyOptions are those of the command why.
type whyOptions struct {
	*plugin
	output
	files
}

func newWhy(p *plugin) *cobra.Command {
	o := &whyOptions{plugin: p}
	cmd := &cobra.Command{
		Use:   "why TYPE/NAME",
		Short: "Explain when an object is deleted, by what, and what would keep it",
		Long: `Explain when an object is deleted, by what, and what would keep it.

With Winnow in the cluster, its server answers. Without Winnow, or with -f, this command decides as the server does. It only reads.`,
		Example: `  # When is this Job deleted?
  kubectl winnow why job/report -n team-a

  # And with this policy?
  kubectl winnow why job/report -n team-a -f policy.yaml

  # The whole explanation
  kubectl winnow why job/report -n team-a -o yaml`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: p.completeObject,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.output.addFlags(cmd, "json", "yaml", "name", "wide")
	o.files.addFlags(cmd, "Files with policies to try, or - for standard input. Each counts as if its mode were Enforce.")
	return cmd
}

func (o *whyOptions) run(ctx context.Context, args []string) error {
	if err := o.validate(); err != nil {
		return err
	}
	object, err := o.object(args)
	if err != nil {
		return err
	}
	drafts, err := o.drafts(ctx, o.In, object.Object.Namespace)
	if err != nil {
		return err
	}
	now := time.Now()
	candidate, lines, err := o.candidate(ctx, object.Object, drafts, now)
	if err != nil {
		return err
	}
	if o.format != "" && o.format != "wide" {
		return o.printCandidate(object.Object, candidate, lines)
	}
	native, err := o.native(ctx, object)
	if err != nil {
		return err
	}
	e := explanation{object: object.Object, candidate: candidate, lines: lines, native: native, wide: o.format == "wide", now: now}
	e.print(o.Out)
	return nil
}

// printCandidate prints a candidate in a format for programs. It fails if there is none; the lines say why.
func (o *whyOptions) printCandidate(object local.Object, c *v1alpha1.CleanupCandidate, lines []string) error {
	for _, line := range lines {
		o.warn(line)
	}
	if c == nil {
		return fmt.Errorf("there is no candidate for %s/%s", object.Resource, object.Name)
	}
	c.APIVersion, c.Kind = v1alpha1.SchemeGroupVersion.String(), "CleanupCandidate"
	printed, err := o.document(o.Out, c)
	if !printed {
		fmt.Fprintf(o.Out, "cleanupcandidate.%s/%s\n", v1alpha1.GroupName, c.Name)
	}
	return err
}

// candidate asks the server, or if there is none or there are drafts, the engine in this process. The lines are for people.
func (p *plugin) candidate(
	ctx context.Context, object local.Object, drafts local.Drafts, now time.Time,
) (*v1alpha1.CleanupCandidate, []string, error) {
	cluster, lines, err := p.collecting()
	if err != nil {
		return nil, nil, err
	}
	if drafts.Empty() {
		if installed, err := cluster.Installed(ctx); err != nil {
			return nil, nil, fmt.Errorf("asking for the API of Winnow: %w", err)
		} else if installed {
			candidate, err := cluster.ServerCandidate(ctx, object)
			return candidate, lines.texts, err
		}
	}
	return cluster.Candidate(ctx, object, drafts, now)
}

// collecting returns a cluster whose warnings are collected.
func (p *plugin) collecting() (*local.Cluster, *collected, error) {
	config, err := p.flags.ToRESTConfig()
	if err != nil {
		return nil, nil, err
	}
	lines := &collected{}
	config.WarningHandler = lines
	cluster, err := local.New(config)
	return cluster, lines, err
}

// collected are warnings that are printed later. The texts may be read while no request is under way.
type collected struct {
	lock  sync.Mutex // Several resources are listed at the same time.
	texts []string
}

var _ rest.WarningHandler = (*collected)(nil)

// HandleWarningHeader implements rest.WarningHandler.
func (c *collected) HandleWarningHeader(code int, _, text string) {
	if code != 299 || text == "" {
		return
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	c.texts = append(c.texts, text)
}
