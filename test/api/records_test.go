// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	facts "github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/write/records"
	"github.com/winnow-dev/winnow/test/winnow"
)

// storeRecords stores records as a replica does, although none leads here: of Jobs job-0000 and so on, each deleted a second after the one
// before, and of a Pod that was deleted last.
func storeRecords(t *testing.T, ns string, jobs int) {
	t.Helper()
	config, err := shared.UserConfig(winnow.User, "system:serviceaccounts", "system:serviceaccounts:"+winnow.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	w := records.NewWriter(records.Config{
		Client: dynamic.NewForConfigOrDie(config), Metadata: metadata.NewForConfigOrDie(config), Clock: clock.RealClock{},
		Retention: time.Hour, PerNamespace: 10_000,
	})
	begun := time.Now().Add(-30 * time.Minute)
	for i := range jobs + 1 {
		f := &facts.Fact{
			Resource: gc.ResourceJobs, Namespace: ns, Name: fmt.Sprintf("job-%04d", i), UID: types.UID(fmt.Sprintf("%s-%04d", ns, i)),
		}
		if i == jobs {
			f.Resource, f.Name = gc.ResourcePods, "pod"
		}
		at := begun.Add(time.Duration(i) * time.Second)
		w.Add(&deletion.Order{
			Fact: f, Policy: types.NamespacedName{Namespace: ns, Name: "ci"}, PolicyGeneration: 2, Rule: "fast", Reason: "Expired",
			After: gc.AfterFinished, Since: at.Add(-time.Minute), Due: at.Add(-23 * time.Millisecond),
		}, at, false)
	}
	w.Flush(t.Context())
}

const recordNames = `jsonpath={range .items[*]}{.status.object.resource}/{.status.object.name}{"\n"}{end}`

// TestRecords: records are served newest first, in pages, by field selectors and as a table, and only to those who may list the resource.
func TestRecords(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	const jobs = 700 // More than a page, and several chunks.
	storeRecords(t, ns, jobs)
	want := []string{"pods/pod"}
	for i := range jobs {
		want = append(want, fmt.Sprintf("jobs.batch/job-%04d", jobs-1-i))
	}
	for _, size := range []string{"100", "499", "500"} {
		got := strings.Fields(kubectl(t, "get", "crec", "-n", ns, "--chunk-size="+size, "-o", recordNames))
		if !slices.Equal(got, want) {
			t.Errorf("pages of %s: got %d records, want %d, the newest first", size, len(got), len(want))
		}
	}
	for selector, want := range map[string]string{
		"object=job-0005":                  "jobs.batch/job-0005",
		"object=jobs.batch/job-0699":       "jobs.batch/job-0699",
		"resource=pods":                    "pods/pod",
		"policy=other":                     "",
		"policy=ci,object!=pod":            strings.Join(want[1:], "\n"),
		"metadata.name=" + ns + "-0003":    "jobs.batch/job-0003",
		"resource=pods,object=job-0005":    "",
		"object=jobs.batch/none":           "",
		"metadata.namespace=" + ns + "-no": "",
	} {
		if got := strings.TrimSpace(kubectl(t, "get", "crec", "-n", ns, "--field-selector="+selector, "-o", recordNames)); got != want {
			t.Errorf("%s: got %.200q, want %.200q", selector, got, want)
		}
	}
	contains(t, refused(t, "", "get", "crec", "-n", ns, "--field-selector=state=Due"), `use one of`)
	contains(t, refused(t, "", "get", "crec", "-n", ns, "-l", "a=b"), "records have no labels")
	contains(t, refused(t, "", "get", "crec", "-n", ns, "--field-selector=since=yesterday"), "since=TIME")
	deleted := kubectl(t, "get", "crec", "-n", ns, ns+"-0690", "-o", "jsonpath={.status.deletionTime}")
	if got := lines(kubectl(t, "get", "crec", "-n", ns, "--field-selector=since="+deleted, "--no-headers")); len(got) != jobs+1-690 {
		t.Errorf("got %d records since %s", len(got), deleted)
	}

	table := lines(kubectl(t, "get", "crec", "-n", ns, "--field-selector=object=job-0005", "--no-headers"))
	if len(table) != 1 || !slices.Contains(table[0], "cup/ci") || !slices.Contains(table[0], "23ms") {
		t.Errorf("got the table %q", table)
	}
	contains(t, kubectl(t, "get", "crec", "-n", ns, ns+"-0005", "-o", "yaml"), "kind: CleanupRecord", "generation: 2", "lateness: 23ms",
		"reason: Expired")
	contains(t, refused(t, "", "delete", "crec", "-n", ns, ns+"-0005"), "the server does not allow this method")
}

// TestRecordsOfTenants: a user sees the records of resources that they may list, and a warning says what is hidden, whatever they select.
func TestRecordsOfTenants(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	storeRecords(t, ns, 2)
	as := func(user string) func(ctx context.Context, args ...string) (string, string, error) {
		path, err := shared.KubeconfigFor(user + "-" + ns)
		if err != nil {
			t.Fatal(err)
		}
		return func(ctx context.Context, args ...string) (string, string, error) {
			return shared.Kubectl(ctx, append([]string{"--kubeconfig", path, "-n", ns}, args...)...)
		}
	}
	viewer, counter, stranger := as("viewer"), as("counter"), as("stranger")
	kubectl(t, "create", "rolebinding", "viewer", "-n", ns, "--clusterrole=view", "--user=viewer-"+ns)
	kubectl(t, "create", "role", "counter", "-n", ns, "--verb=list,get", "--resource=cleanuprecords.gc.winnow.dev,pods")
	kubectl(t, "create", "rolebinding", "counter", "-n", ns, "--role=counter", "--user=counter-"+ns)
	sees := func(who func(context.Context, ...string) (string, string, error), want []string, warning string, args ...string) {
		t.Helper()
		eventually(t, func(ctx context.Context) error {
			stdout, stderr, err := who(ctx, append([]string{"get", "cleanuprecords", "-o", recordNames}, args...)...)
			if got := strings.Fields(stdout); err != nil || !slices.Equal(got, want) || !strings.Contains(stderr, warning) ||
				warning == "" && stderr != "" {
				return fmt.Errorf("sees %q with %q, %w; want %q with %q", got, stderr, err, want, warning)
			}
			return nil
		})
	}
	sees(viewer, []string{"pods/pod", "jobs.batch/job-0001", "jobs.batch/job-0000"}, "")
	hidden := "hidden records: you may not list their resources: kubectl auth can-i list jobs.batch -n " + ns
	sees(counter, []string{"pods/pod"}, hidden)
	for _, object := range []string{"job-0000", "none"} {
		sees(counter, nil, hidden, "--field-selector=object="+object)
	}
	if _, stderr, err := stranger(t.Context(), "get", "cleanuprecords"); err == nil || !strings.Contains(stderr, "cannot list resource") {
		t.Errorf("a stranger gets %v: %s", err, stderr)
	}
}

// TestRecordsAreReserved: nobody but Winnow can write chunks. If somebody deletes one, or one cannot be read, readers are told.
func TestRecordsAreReserved(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	storeRecords(t, ns, 1200) // Thirteen chunks.
	const chunks = "recordchunks.internal.gc.winnow.dev"
	const alone = "written by Winnow alone"
	contains(t, refused(t, "", "patch", "-n", ns, chunks, "records-0000000000", "--type=merge", "-p", `{"records":"AAAA"}`), alone)
	contains(t, refused(t, fmt.Sprintf(`{"apiVersion": "internal.gc.winnow.dev/v1alpha1", "kind": "RecordChunk", "format": "f", "records": "AAAA",
		"metadata": {"name": "records-0000000099", "namespace": %q}}`, ns), "create", "-f", "-"), alone)
	kubectl(t, "delete", "-n", ns, chunks, "records-0000000001")
	stdout, stderr, err := shared.Kubectl(t.Context(), "get", "crec", "-n", ns, "-o", recordNames)
	if got := len(strings.Fields(stdout)); err != nil || got != 1101 {
		t.Errorf("got %d records, %v", got, err)
	}
	contains(t, stderr, "Warning: records of namespace "+ns, "somebody has deleted 1 recordchunks")
}
