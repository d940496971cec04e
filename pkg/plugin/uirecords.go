// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/pkg/plugin/records"
	"github.com/winnow-dev/winnow/pkg/plugin/ui"
)

// recordsMost is how many records the page reads. A browser does not stay fluid with many more.
const recordsMost = 1000

// Records implements ui.Source.
func (s *uiSource) Records(ctx context.Context, namespace string, since time.Time) (ui.History, error) {
	if err := checkNamespace(namespace); err != nil {
		return ui.History{}, err
	}
	cluster, err := s.Cluster()
	if err != nil {
		return ui.History{}, err
	}
	installed, err := cluster.Installed(ctx)
	switch {
	case err != nil:
		return ui.History{}, fmt.Errorf("asking for the API of Winnow: %w", err)
	case !installed:
		return ui.History{Notes: []string{"There is no Winnow in this cluster, so it has deleted nothing."}}, nil
	}
	if err := expectMayList(ctx, cluster, "cleanuprecords", namespace); err != nil {
		return ui.History{}, err
	}
	client, said, err := s.CollectingWinnow()
	if err != nil {
		return ui.History{}, err
	}
	q := records.Query{Namespace: namespace, Fields: fields.Everything(), Since: since, Limit: recordsMost}
	found, more, err := records.Read(ctx, client, q)
	if err != nil {
		return ui.History{}, err
	}
	out := ui.History{Notes: said.Few(), Records: []ui.Record{}}
	if more {
		out.Notes = append(out.Notes, unread(q.Namespace, found[len(found)-1].Namespace))
	}
	records.SortNewest(found)
	for i := range found {
		r := &found[i].Status
		out.Records = append(out.Records, ui.Record{
			Time: r.DeletionTime, Namespace: found[i].Namespace, Resource: r.Object.Resource, Name: r.Object.Name, UID: string(r.Object.UID),
			Policy: gc.PolicyName(r.Policy.Kind, r.Policy.Name), Rule: r.Policy.Rule, Reason: r.Reason, Late: gc.FormatLateness(r.Lateness),
			Owner: records.Owner(r), Account: r.ServiceAccountName, AnswerLost: r.AnswerLost,
			Copied: records.Copy(r, time.Now()),
		})
	}
	return out, nil
}

// recordOf returns the record of the last deletion of an object that is gone. It returns nil if there is none that the caller may see.
func (s *uiSource) recordOf(ctx context.Context, cluster *local.Cluster, o local.Object) (*v1alpha1.CleanupRecord, error) {
	if installed, err := cluster.Installed(ctx); err != nil || !installed {
		return nil, err
	}
	if may, err := cluster.May(ctx, "list", v1alpha1.Resource("cleanuprecords"), o.Namespace); err != nil || !may {
		return nil, err
	}
	client, _, err := s.CollectingWinnow()
	if err != nil {
		return nil, err
	}
	return records.LastOf(ctx, client, o)
}

// unread says which records are not read. The server has those of one namespace after the other, the newest of each first.
func unread(namespace, last string) string {
	if namespace == "" {
		return fmt.Sprintf("There are more than %d records, and these are of namespaces up to %s only: choose a namespace, or a shorter time.",
			recordsMost, last)
	}
	return fmt.Sprintf("There are more than %d records, and these are the newest: for all, use kubectl winnow history -n %s --limit 0.",
		recordsMost, namespace)
}
