// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/winnow"
)

// recorded returns the objects of a namespace that have a record, sorted, each as often as it has one, as "jobs/name".
func recorded(ctx context.Context, ns string) ([]string, error) {
	var out []string
	for options := (metav1.ListOptions{Limit: 100}); ; {
		page, err := gc.CleanupRecords(ns).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			o := page.Items[i].Status.Object
			resource, _, _ := strings.Cut(o.Resource, ".")
			out = append(out, resource+"/"+o.Name)
		}
		if options.Continue = page.Continue; options.Continue == "" {
			slices.Sort(out)
			return out, nil
		}
	}
}

// accepted returns the objects of a namespace whose DELETE the API server accepted, sorted, and those that have a record for certain.
func accepted(t *testing.T, ns string, losses []loss) (all, certain []string) {
	t.Helper()
	for _, d := range deletions(t, ns) {
		if d.ResponseStatus != nil && d.ResponseStatus.Code >= 300 {
			continue
		}
		all = append(all, d.object)
		at := d.StageTimestamp.Time
		if !slices.ContainsFunc(losses, func(l loss) bool { return at.After(l.from) && at.Before(l.until) }) {
			certain = append(certain, d.object)
		}
	}
	slices.Sort(all)
	slices.Sort(certain)
	return all, certain
}

// TestRecordsOutliveLeaders: each accepted DELETE in the audit log has exactly one record. A leader that ends by SIGTERM in the middle of
// its deletions loses none, and one that is killed loses at most those of the last five seconds.
func TestRecordsOutliveLeaders(t *testing.T) {
	for name, end := range map[string]func(r *winnow.Replica) []loss{
		"SIGTERM": func(r *winnow.Replica) []loss {
			must(t, r.Stop())
			must(t, r.Start(whole))
			return nil
		},
		"SIGKILL": func(r *winnow.Replica) []loss { return []loss{killLosing(t, r)} },
	} {
		t.Run(name, func(t *testing.T) {
			const jobs, over, lead = 600, 20 * time.Second, 15 * time.Second
			ns := newNamespace(t)
			first := time.Now()
			each(jobs, func(i int) {
				j := createJob(t, ns, job(fmt.Sprintf("job-%04d", i), unmanaged))
				finish(t, j, first.Add(over*time.Duration(i)/jobs))
			})
			after := fmt.Sprintf("%ds", int((time.Since(first) + lead).Seconds()))
			createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl(v1alpha1.TTL(after))})
			eventually(t, func(context.Context) string {
				if deleted := deletions(t, ns); len(deleted) < jobs*2/3 {
					return fmt.Sprintf("%d Jobs are deleted", len(deleted))
				}
				return ""
			})
			losses := end(leader(t))
			waitJobs(t, ns, 0)
			expectRecords(t, ns, losses...)
		})
	}
}
