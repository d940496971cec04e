// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/output"
	"github.com/winnow-dev/winnow/pkg/plugin/records"
	"github.com/winnow-dev/winnow/pkg/plugin/session"
)

// historyOptions are the flags of kubectl winnow history.
type historyOptions struct {
	*session.Session
	format        output.Format
	allNamespaces bool
	since, policy string
	limit         int
}

func newHistory(s *session.Session) *cobra.Command {
	o := &historyOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "history [TYPE/NAME]",
		Short: "Show which objects Winnow deleted, when, and why",
		Long: `Show which objects Winnow deleted, when, and why, the newest first.

Winnow keeps the records for 30 days, and at most 10,000 for each namespace, unless its flags say otherwise. You see the records of
resources that you may list.`,
		Example: `  # What did Winnow delete in team-a?
  kubectl winnow history -n team-a

  # Who deleted this Job?
  kubectl winnow history job/report -n team-a

  # What did the policy ci delete within a day, in all namespaces?
  kubectl winnow history -A --policy ci --since 1d

  # For programs
  kubectl winnow history -n team-a -o json`,
		Args:              oneOrNoObject,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.format.AddFlag(cmd, "json", "yaml", "name", "wide")
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Show the records of all namespaces.")
	cmd.Flags().StringVar(&o.since, "since", "",
		"Show only deletions within this time, for example 30m, 12h or 7d, or since a time or day (UTC): 2027-01-31.")
	cmd.Flags().StringVar(&o.policy, "policy", "", "Show only what the policy of this name deleted.")
	cmd.Flags().IntVar(&o.limit, "limit", 1000, "How many records to read at most. 0 means all.")
	return cmd
}

func (o *historyOptions) run(ctx context.Context, args []string) error {
	if err := o.format.Validate(); err != nil {
		return err
	}
	q, err := o.query(args, time.Now())
	if err != nil {
		return err
	}
	client, err := o.ExpectedWinnow(ctx, "nothing has been deleted by it")
	if err != nil {
		return err
	}
	found, more, err := records.Read(ctx, client, q)
	if err != nil {
		return err
	}
	if more {
		o.Warn(tooMany(q, found))
	}
	return o.print(q.Namespace, found, nothingFound(q))
}

// nothingFound says that there are no records that a query asks for. There may be others.
func nothingFound(q records.Query) string {
	in := gc.InNamespace(q.Namespace)
	object, ofObject := q.Fields.RequiresExactMatch(gc.FieldObject)
	switch {
	case ofObject:
	case q.Fields.Empty() && q.Since.IsZero():
		return fmt.Sprintf("No records of deleted objects %s.", in)
	default:
		return fmt.Sprintf("No records of deleted objects %s match the flags.", in)
	}
	return fmt.Sprintf("No record says that Winnow deleted %s %s. Records are stored some seconds after a deletion; to see all of them: "+
		"kubectl winnow history %s", object, in, scope(q.Namespace))
}

// tooMany says which records are missing. With all namespaces, those of the first come first, however old they are.
func tooMany(q records.Query, found []v1alpha1.CleanupRecord) string {
	out := fmt.Sprintf("there are more than %d records", q.Limit)
	if q.Namespace == "" {
		out += fmt.Sprintf(", and these are of namespaces up to %s only", found[len(found)-1].Namespace)
	}
	return out + ": use --limit, or --since"
}

// query returns what the flags and arguments ask for.
func (o *historyOptions) query(args []string, now time.Time) (records.Query, error) {
	q := records.Query{Limit: o.limit}
	namespace, err := o.Namespace()
	if err != nil {
		return q, err
	}
	if !o.allNamespaces {
		q.Namespace = namespace
	}
	if o.limit < 0 {
		return q, fmt.Errorf("--limit is %d, it must be at least 0", o.limit)
	}
	if q.Since, err = o.begin(now); err != nil {
		return q, err
	}
	selector := fields.Set{}
	if o.policy != "" {
		selector[gc.FieldPolicy] = o.policy
	}
	if len(args) > 0 {
		object, err := o.Named(args)
		if err != nil {
			return q, err
		}
		selector[gc.FieldObject] = object.Resource + "/" + object.Name
	}
	q.Fields = selector.AsSelector()
	return q, nil
}

// begin returns since when deletions are shown; zero if all are.
func (o *historyOptions) begin(now time.Time) (time.Time, error) {
	if o.since == "" {
		return time.Time{}, nil
	}
	if at, ok := moment(o.since); ok {
		return at, nil
	}
	d, err := gc.ParseDuration(o.since)
	if err != nil {
		return time.Time{}, fmt.Errorf("--since=%q %w; use for example 90m, 7d or 2027-01-31", o.since, err)
	}
	return now.Add(-d), nil
}

func (o *historyOptions) print(namespace string, found []v1alpha1.CleanupRecord, nothing string) error {
	records.SortNewest(found)
	list := &v1alpha1.CleanupRecordList{Items: found}
	list.APIVersion, list.Kind = v1alpha1.SchemeGroupVersion.String(), "CleanupRecordList"
	for i := range list.Items {
		list.Items[i].APIVersion, list.Items[i].Kind = list.APIVersion, "CleanupRecord"
	}
	if printed, err := o.format.Document(o.Out, list); printed {
		return err
	}
	if o.format.Name == "name" {
		for i := range found {
			fmt.Fprintf(o.Out, "cleanuprecord.%s/%s\n", v1alpha1.GroupName, found[i].Name)
		}
		return nil
	}
	if len(found) == 0 {
		output.PrintLine(o.ErrOut, "", nothing)
		return nil
	}
	return o.printTable(namespace, found)
}

// copyColumn is the place of the column about copies.
const copyColumn = 6

func (o *historyOptions) printTable(namespace string, found []v1alpha1.CleanupRecord) error {
	columns := []string{"Deleted", "Object", "Policy", "Rule", "Reason", "Late", "Owner+", "After+", "Account+", "UID+"}
	now := time.Now()
	copied := slices.ContainsFunc(found, func(r v1alpha1.CleanupRecord) bool { return records.Copy(&r.Status, now) != "-" })
	if copied { // Most policies keep no copies.
		columns = slices.Insert(columns, copyColumn, "Copy for")
	}
	if namespace == "" {
		columns = append([]string{"Namespace"}, columns...)
	}
	t := output.NewTable(columns...)
	for i := range found {
		s := &found[i].Status
		row := []any{
			s.DeletionTime.UTC().Format(time.RFC3339), s.Object.Resource + "/" + s.Object.Name, gc.PolicyName(s.Policy.Kind, s.Policy.Name),
			cmp.Or(s.Policy.Rule, "-"), s.Reason, gc.FormatLateness(s.Lateness), records.Owner(s), cmp.Or(string(s.After), "-"),
			cmp.Or(s.ServiceAccountName, "-"), found[i].Name,
		}
		if copied {
			row = slices.Insert(row, copyColumn, any(records.Copy(s, now)))
		}
		if namespace == "" {
			row = append([]any{found[i].Namespace}, row...)
		}
		t.Add(row...)
	}
	return t.Print(o.Out, o.format.Name == "wide")
}
