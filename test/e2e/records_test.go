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
	"github.com/winnow-dev/winnow/pkg/controller/write/records"
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

// accepted returns the objects of a namespace whose DELETE the API server accepted, sorted, and those that were accepted before a time.
func accepted(t *testing.T, ns string, before time.Time) (all, earlier []string) {
	t.Helper()
	for _, d := range deletions(t, ns) {
		if d.ResponseStatus != nil && d.ResponseStatus.Code >= 300 {
			continue
		}
		all = append(all, d.object)
		if d.StageTimestamp.Time.Before(before) {
			earlier = append(earlier, d.object)
		}
	}
	slices.Sort(all)
	slices.Sort(earlier)
	return all, earlier
}

// TestRecordsOutliveLeaders: each accepted DELETE in the audit log has exactly one record. A leader that ends by SIGTERM in the middle of
// its deletions loses none, and one that is killed loses at most those of the last five seconds.
func TestRecordsOutliveLeaders(t *testing.T) {
	for name, end := range map[string]func(r *winnow.Replica) (lost time.Duration){
		"SIGTERM": func(r *winnow.Replica) time.Duration {
			must(t, r.Stop())
			must(t, r.Start(whole))
			return 0
		},
		"SIGKILL": func(r *winnow.Replica) time.Duration {
			kill(t, r)
			return records.LostAtMost
		},
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
				if all, _ := accepted(t, ns, time.Time{}); len(all) < jobs*2/3 {
					return fmt.Sprintf("%d Jobs are deleted", len(all))
				}
				return ""
			})
			r, ended := leader(t), time.Now()
			lost := end(r)
			waitJobs(t, ns, 0)
			eventually(t, func(ctx context.Context) string {
				got, err := recorded(ctx, ns)
				if err != nil {
					return err.Error()
				}
				all, before := accepted(t, ns, ended.Add(-lost))
				if lost == 0 {
					before = all
				}
				if unique := slices.Compact(slices.Clone(got)); len(unique) < len(got) {
					t.Fatalf("%d records of %d objects", len(got), len(unique))
				}
				if more := without(got, all); len(more) > 0 {
					return fmt.Sprintf("records of objects whose DELETE was not accepted: %q", more)
				}
				if missing := without(before, got); len(missing) > 0 {
					return fmt.Sprintf("%d records of %d deletions, %d of them certain; missing: %q", len(got), len(all), len(before), missing)
				}
				t.Logf("%d records of %d deletions, %d of them certain", len(got), len(all), len(before))
				return ""
			})
		})
	}
}
