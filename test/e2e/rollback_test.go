// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// installNewerStorage gives the storage a revision that no version has yet, until the test ends.
func installNewerStorage(t *testing.T) {
	t.Helper()
	const storage = "../../artifacts/storage/"
	t.Cleanup(func() {
		if _, stderr, err := suite.Kubectl(whole, "apply", "-f", storage); err != nil {
			t.Error(err, stderr)
		}
	})
	_, stderr, err := suite.Kubectl(t.Context(), "annotate", "--overwrite", "-f", storage, "internal.gc.winnow.dev/revision=1000")
	if err != nil {
		t.Fatal(err, stderr)
	}
}

// reformat replaces the format of each object of a resource in a namespace, and returns their contents by name.
func reformat(t *testing.T, resource, ns, content string, replace func(format string) string) map[string]string {
	t.Helper()
	contents := map[string]string{}
	eventually(t, func(ctx context.Context) string {
		clear(contents)
		list, err := inStorage(t, resource, ns).List(ctx, metav1.ListOptions{})
		must(t, err)
		for i := range list.Items {
			o := &list.Items[i]
			contents[o.GetName()], _ = o.Object[content].(string)
			before, _ := o.Object["format"].(string)
			if o.Object["format"] = replace(before); o.Object["format"] == before {
				continue
			}
			if _, err := inStorage(t, resource, ns).Update(ctx, o, metav1.UpdateOptions{}); err != nil {
				return err.Error()
			}
		}
		if len(contents) == 0 {
			return "there are no " + resource + " in " + ns
		}
		return ""
	})
	return contents
}

// expectContents fails if any of what was stored is missing or was written over.
func expectContents(t *testing.T, before, now map[string]string) {
	t.Helper()
	for name := range before {
		if now[name] != before[name] {
			t.Errorf("%s is %q, and was %q", name, now[name], before[name])
		}
	}
}

const newFormat = "newer+"

func toNewer(format string) string   { return newFormat + strings.TrimPrefix(format, newFormat) }
func fromNewer(format string) string { return strings.TrimPrefix(format, newFormat) }

// TestRollback: a newer version brought its storage, and wrote policies, records and copies that this version cannot read. This version
// starts nevertheless, deletes nothing that one of these policies could select, says what to do, and writes over nothing, so that the newer
// version finds all of it again.
func TestRollback(t *testing.T) {
	ns, other, g := newNamespace(t), newNamespace(t), newGroup()
	grantByCommand(t, "configmaps")
	finishedJobs(t, ns, 1)
	createPolicy(t, ns, "newer", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("1h")})
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{})
	spec := copying("0s")
	spec.TTLAfterFinished = ttl("0s")
	want := copied(t, other, 1)
	createPolicy(t, other, "p", spec)
	finish(t, createJob(t, other, job("before", unmanaged)), time.Now())
	want = append(want, "jobs/before p/default")
	expectDeletions(t, other, want...)
	expectRecords(t, other)

	kill(t, server.Replicas...)
	installNewerStorage(t)
	const known, unknown = `"ttlAfterFinished":"0s"`, `"ttlAfterFinished":"0s","unlessSomethingNew":true`
	damage(t, ns, "newer", `"ttlAfterFinished":"1h"`, unknown)
	damage(t, "", string(g), `"mode":"Enforce"`, `"mode":"Enforce","unlessSomethingNew":true`)
	records := reformat(t, "recordchunks", other, "records", toNewer)
	copies := reformat(t, "objectcopies", other, "content", toNewer)

	for _, r := range server.Replicas {
		must(t, r.Start(whole))
	}
	finish(t, createJob(t, other, job("after", unmanaged)), time.Now())
	unreadable := func(s *v1alpha1.CleanupPolicyStatus) bool {
		c := s.Conditions[0]
		return c.Reason == "PolicyUnreadable" && strings.Contains(c.Message, "Install the version that wrote it")
	}
	waitStatus(t, ns, "newer", unreadable)
	g.waitStatus(t, unreadable)
	waitStatus(t, other, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
		return s.Held == 1 && strings.Contains(s.Conditions[0].Message, string(g))
	})
	change := []byte(`{"spec":{"suspend":true}}`)
	_, err := gc.CleanupPolicies(ns).Patch(t.Context(), "newer", types.MergePatchType, change, metav1.PatchOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("a change of what is not understood: %v", err)
	}
	expectDeletions(t, ns)
	expectDeletions(t, other, want...)

	// The newer version knows the field, as this one knows what is without it.
	damage(t, "", string(g), `,"unlessSomethingNew":true`, "")
	want = append(want, "jobs/after p/default")
	expectDeletions(t, other, want...)
	expectDeletions(t, ns)
	damage(t, ns, "newer", unknown, known)
	expectDeletions(t, ns, "jobs/job-0000 newer/default")
	same := func(format string) string { return format }
	eventually(t, func(context.Context) string {
		if now := reformat(t, "recordchunks", other, "records", same); len(now) == len(records) {
			return "the record of what was deleted meanwhile is not in another chunk"
		}
		return ""
	})
	expectContents(t, records, reformat(t, "recordchunks", other, "records", fromNewer))
	expectContents(t, copies, reformat(t, "objectcopies", other, "content", fromNewer))
	got, err := recorded(t.Context(), other)
	must(t, err)
	if all := []string{"configmaps/m-000", "jobs/after", "jobs/before"}; !slices.Equal(got, all) {
		t.Errorf("records of %q, want %q", got, all)
	}
}
