// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/plugin/files"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/pkg/plugin/output"
	"github.com/winnow-dev/winnow/pkg/plugin/session"
)

// reportOptions are the flags of kubectl winnow report.
type reportOptions struct {
	*session.Session
	format        output.Format
	files         files.Flag
	allNamespaces bool
}

func newReport(s *session.Session) *cobra.Command {
	o := &reportOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Show finished objects that lie around, and what a policy would delete",
		Long: `Show finished objects that lie around: how many, since when, how much of etcd they take, and who creates them.
With -f, also show what a policy would delete: now, and within an hour, a day and a week.

This command only reads, and only what you may list. The cluster does not need Winnow: the command decides as the server does. If the
cluster has policies, they count too.

ETCD is an estimate: the size of the objects as the API server sends them.`,
		Example: `  # What lies around in all namespaces
  kubectl winnow report -A

  # What this policy would delete in team-a
  cat > policy.yaml <<EOF
  apiVersion: gc.winnow.dev/v1alpha1
  kind: CleanupPolicy
  metadata:
    name: defaults
    namespace: team-a
  spec:
    mode: Preview
    ttlAfterFinished: 1d
  EOF
  kubectl winnow report -n team-a -f policy.yaml

  # With Winnow in the cluster, apply it. In Preview mode, it deletes nothing, and shows what it would delete
  kubectl apply -f policy.yaml
  kubectl get cand -n team-a

  # In Enforce mode, it deletes
  kubectl patch cup defaults -n team-a --type merge --patch '{"spec": {"mode": "Enforce"}}'`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.format.AddFlag(cmd, "json", "yaml", "name", "wide")
	o.files.AddFlag(cmd, "Files with CleanupPolicies and ClusterCleanupPolicies to try, or - for standard input. "+
		"Each counts as if its mode were Enforce.")
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Report on all namespaces.")
	return cmd
}

// document is the report for json and yaml.
type document struct {
	Time      time.Time         `json:"time"`
	Namespace string            `json:"namespace,omitempty"`
	Finished  []local.Finished  `json:"finished"`
	Deletions []local.Deletions `json:"deletions"`
	// Incomplete says what could not be read.
	Incomplete []string `json:"incomplete,omitempty"`
}

func (o *reportOptions) run(ctx context.Context) error {
	if err := o.format.Validate(); err != nil {
		return err
	}
	namespace, err := o.Namespace()
	if err != nil {
		return err
	}
	drafts, err := o.files.Read(ctx, o.In, namespace)
	if err != nil {
		return err
	}
	if o.allNamespaces {
		namespace = ""
	} else if err := inScope(drafts, namespace); err != nil {
		return err
	}
	cluster, err := o.Cluster()
	if err != nil {
		return err
	}
	now := time.Now().UTC().Truncate(time.Second)
	world, err := o.read(ctx, cluster, local.Options{Namespace: namespace, Drafts: drafts, Now: now})
	if err != nil {
		return err
	}
	d := &document{Time: now, Namespace: namespace, Finished: world.Finished(), Incomplete: world.Notes()}
	d.Deletions = world.Deletions()
	if printed, err := o.format.Document(o.Out, d); printed {
		return err
	}
	for _, note := range d.Incomplete {
		o.Warn(note)
	}
	if o.format.Name == "name" {
		return o.printNames(d)
	}
	everywhere, err := d.mayLookEverywhere(ctx, cluster)
	if err != nil {
		return err
	}
	return o.print(d, world.Governed(), everywhere)
}

// read lists what there is, and shows how far it is. It fails if the caller may list nothing.
func (o *reportOptions) read(ctx context.Context, cluster *local.Cluster, options local.Options) (*local.World, error) {
	bar := output.NewProgress(o.ErrOut)
	defer bar.Done()
	options.Listed = bar.Add
	world, err := cluster.Read(ctx, options)
	if err != nil {
		return nil, err
	}
	return world, world.Blind()
}

// mayLookEverywhere reports whether there is nothing to show of a namespace, and the caller may list the objects of all.
func (d *document) mayLookEverywhere(ctx context.Context, cluster *local.Cluster) (bool, error) {
	if d.Namespace == "" || len(d.Finished)+len(d.Deletions) > 0 {
		return false, nil
	}
	for _, resource := range []string{"namespaces", gc.ResourceJobs} {
		if may, err := cluster.May(ctx, "list", schema.ParseGroupResource(resource), ""); err != nil || !may {
			return false, err
		}
	}
	return true, nil
}

// scope returns the flag of our commands, and of kubectl get, for one namespace, or with "" for all.
func scope(namespace string) string {
	if namespace == "" {
		return "-A"
	}
	return "-n " + namespace
}

// inScope fails if a draft is of another namespace than the report.
func inScope(drafts local.Drafts, namespace string) error {
	for _, p := range drafts.Policies {
		if p.Namespace != namespace {
			return fmt.Errorf("the policy %q is for namespace %q, and the report is about %q: use -n %[2]s or -A", p.Name, p.Namespace, namespace)
		}
	}
	return nil
}

func (o *reportOptions) printNames(d *document) error {
	for _, f := range d.Finished {
		for _, name := range f.Names {
			fmt.Fprintf(o.Out, "%s/%s\n", f.Resource, name)
		}
	}
	return nil
}

func (o *reportOptions) print(d *document, governed, everywhere bool) error {
	switch {
	case len(d.Finished) > 0:
		if err := o.printFinished(d); err != nil {
			return err
		}
	case len(d.Deletions) == 0:
		o.say("No finished objects " + gc.InNamespace(d.Namespace) + ".")
		if everywhere {
			o.say("To look in all namespaces: kubectl winnow report -A")
		}
	}
	if len(d.Deletions) > 0 {
		if len(d.Finished) > 0 {
			fmt.Fprintln(o.Out)
		}
		return o.printDeletions(d)
	}
	seen := "" // There may be cluster policies that the caller may not list.
	if len(d.Incomplete) > 0 {
		seen = " that could be read"
	}
	switch {
	case governed:
		o.say("\nThe policies" + seen + " delete nothing " + gc.InNamespace(d.Namespace) + " within a week.")
	case len(d.Finished) > 0:
		o.say("\nNo policy" + seen + " deletes them. To see what a policy would delete: kubectl winnow report " + scope(d.Namespace) +
			" -f policy.yaml\nAn example of a policy is in: kubectl winnow report --help")
	}
	return nil
}

func (o *reportOptions) say(text string) { fmt.Fprintln(o.Out, text) }

func (o *reportOptions) printFinished(d *document) error {
	output.Heading(o.Out, "Finished objects")
	t := output.NewTable("Namespace", "Resource", "Objects", "Failed", "Oldest", "Etcd", "Created by")
	var all local.Finished
	for _, f := range d.Finished {
		all.Objects, all.Failed, all.Bytes = all.Objects+f.Objects, all.Failed+f.Failed, all.Bytes+f.Bytes
		most := 3
		if o.format.Name == "wide" {
			most = len(f.Creators)
		}
		t.Add(f.Namespace, f.Resource, f.Objects, f.Failed, output.Ago(f.Oldest, d.Time), output.Size(f.Bytes), creators(f.Creators, most))
	}
	if len(d.Finished) > 1 {
		t.Add("(all)", "", all.Objects, all.Failed, "", output.Size(all.Bytes), "")
	}
	return t.Print(o.Out, o.format.Name == "wide")
}

// creators names the first of those that create objects.
func creators(all []local.Creator, most int) string {
	var out []string
	for _, c := range all[:min(most, len(all))] {
		name := c.Name
		if name == "" {
			name = "no controller"
		}
		out = append(out, fmt.Sprintf("%s (%d)", name, c.Objects))
	}
	if more := len(all) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, ", ")
}

func (o *reportOptions) printDeletions(d *document) error {
	output.Heading(o.Out, "What policies delete")
	t := output.NewTable("Namespace", "Resource", "Policy", "Rule", "Now", "1h", "1d", "7d", "Held")
	for _, c := range d.Deletions {
		t.Add(c.Namespace, c.Resource, c.Policy, c.Rule, c.Now, c.Hour, c.Day, c.Week, c.Held)
	}
	if err := t.Print(o.Out, o.format.Name == "wide"); err != nil {
		return err
	}
	o.say("\nNOW, 1H, 1D and 7D: due by then. Each number contains the ones before it.")
	o.sayHeld(d.Deletions)
	return nil
}

// sayHeld says why objects are held.
func (o *reportOptions) sayHeld(all []local.Deletions) {
	held := map[string]int64{}
	for _, c := range all {
		for reason, n := range c.HeldBy {
			held[reason] += n
		}
	}
	if len(held) > 0 {
		printHeld(o.Out, held, false)
	}
}

// printHeld says why objects are held, by reason. preview says that a draft holds them, and that nobody has read what refers to them.
func printHeld(w io.Writer, held map[string]int64, preview bool) {
	fmt.Fprintln(w, "HELD: due within a week, but something keeps them:")
	for _, reason := range slices.Sorted(maps.Keys(held)) {
		why := "to see why: kubectl winnow why RESOURCE/NAME"
		switch {
		case reason == string(policy.ReasonHeld):
			why = "a change makes too many objects due at once, so it waits for approval: kubectl winnow approve POLICY"
		case preview && reason == string(policy.ReasonReferrersUnknown):
			why = "Winnow reads what refers to ConfigMaps and Secrets only while a stored policy has a rule with after: Unused. " +
				"Apply it with mode: Preview, or use: kubectl winnow report -f FILE"
		case preview:
			why += " -f FILE"
		}
		fmt.Fprintf(w, "  %d with reason %s: %s\n", held[reason], output.OneLine(reason), why)
	}
}
