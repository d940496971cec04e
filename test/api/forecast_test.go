// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/winnow-dev/winnow/test/jobs"
)

// warned runs kubectl and returns the warnings that it shows, a line each.
func warned(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	_, stderr, err := shared.KubectlStdin(t.Context(), stdin, args...)
	if err != nil {
		t.Fatal(err)
	}
	return stderr
}

// finishedJobs makes so many Jobs that have just finished.
func finishedJobs(t *testing.T, namespace string, n int) {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(shared.RESTConfig())
	made, err := jobs.Create(t.Context(), client, namespace, n)
	if err == nil {
		err = jobs.Finish(t.Context(), client, made, func(int) time.Time { return time.Now() })
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestWarnedOfWhatBecomesDue runs beside no other test: cluster policies of theirs would concern its Jobs.
func TestWarnedOfWhatBecomesDue(t *testing.T) {
	p := scope{ofNamespace, t, namespace(t)}
	defaults := scope{ofCluster, t, identifier(t)}
	t.Cleanup(func() {
		for _, args := range [][]string{{"delete", "ccup", "--selector=" + defaults.selector()}, {"delete", "namespace", p.id}} {
			if _, _, err := shared.Kubectl(context.Background(), args...); err != nil {
				t.Error(err)
			}
		}
	})
	finishedJobs(t, p.id, 7)
	due := func(verb string) string {
		return fmt.Sprintf("Warning: 6 Jobs in %s are over this capacity and %s be deleted now\n", p.id, verb)
	}
	expect := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got\n%swant\n%s", what, got, want)
		}
	}
	tries := func(want, stdin string, args ...string) { // once Winnow knows enough, and has time to count
		t.Helper()
		eventually(t, func(context.Context) error {
			_, got, err := shared.KubectlStdin(t.Context(), stdin, append(args, "--dry-run=server")...)
			if err != nil || got != want {
				return fmt.Errorf("a dry run of kubectl %q warns of %q, want %q, error %v", args, got, want, err)
			}
			return nil
		})
	}

	manifest := p.manifest("a", `{capacity: {maxObjects: 1}}`)
	tries(due("would"), manifest, "create", "-f", "-")
	tries(due("would"), manifest, "apply", "--server-side", "-f", "-")
	contains(t, refused(t, "", p.on("get", "a")...), "not found")
	contains(
		t,
		warned(t, p.manifest("a", `{rules: [{name: all, resources: [jobs.batch], ttl: 0s}]}`), "create", "--dry-run=server", "-f", "-"),
		fmt.Sprintf(
			"Warning: 7 Jobs in %s are past this TTL and would be deleted now\nWarning: spec.rules[0].ttl: 0s is under a minute",
			p.id,
		),
	)
	expect("create", warned(t, manifest, "create", "-f", "-"), due("will"))
	expect("a label", warned(t, "", p.on("label", "a", "team=blue")...), "")
	expect("more that are kept", warned(t, "", p.on("patch", "a", "--type=merge", "-p", `{"spec":{"capacity":{"maxObjects":7}}}`)...), "")
	tries(due("would"), "", p.on("patch", "a", "--type=merge", "-p", `{"spec":{"capacity":{"maxObjects":1}}}`)...)
	expect(
		"fewer",
		warned(t, "", p.on("patch", "a", "--type=merge", "-p", `{"spec":{"capacity":{"maxObjects":1}}}`)...),
		due("will"),
	)

	expect("a cluster policy that decides for nothing", warned(t, defaults.manifest(
		"defaults",
		fmt.Sprintf(
			`{capacity: {maxObjects: 1}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}, guardrails: {holdAbove: {objects: 5}}}`,
			p.id,
		),
	),
		"create", "-f", "-"), "")
	expect("more again", warned(t, "", p.on("patch", "a", "--type=merge", "-p", `{"spec":{"capacity":{"maxObjects":7}}}`)...), "")
	before := kubectl(t, "get", "cup,jobs", "-n", p.id, "-o", "name")
	without := fmt.Sprintf(
		`Warning: without this policy, cluster policy %q makes 6 Jobs in %s due; they would wait for approval, because the deletion of `+
			"cleanuppolicies.gc.winnow.dev/a made more objects due at once than spec.guardrails.holdAbove.objects of clustercleanuppolicies.gc.winnow.dev/%s "+
			"allows (5 in ten minutes). To look at them: kubectl get jobs.batch -n %s; to approve: "+
			"kubectl annotate --overwrite clustercleanuppolicies.gc.winnow.dev %s gc.winnow.dev/approved-hold=",
		defaults.called("defaults"),
		p.id,
		defaults.called("defaults"),
		p.id,
		defaults.called("defaults"),
	)
	eventually(t, func(context.Context) error { // once Winnow knows of the cluster policy
		if got := warned(t, "", p.on("delete", "a", "--dry-run=server")...); !strings.HasPrefix(got, without) {
			return fmt.Errorf("a dry run of delete warns of %q, want %q", got, without)
		}
		return nil
	})
	expect("what a dry run leaves", kubectl(t, "get", "cup,jobs", "-n", p.id, "-o", "name"), before)
	deleted, want := warned(t, "", p.on("delete", "a")...), strings.Replace(without, "would wait", "wait", 1)
	if !strings.HasPrefix(deleted, want) {
		t.Errorf("delete: got\n%swant\n%s", deleted, want)
	}

	id := strings.TrimSpace(strings.TrimPrefix(deleted, want))
	kubectl(t, defaults.on("patch", "defaults", "--subresource=status", "--type=merge", "-p",
		fmt.Sprintf(`{"status":{"observedGeneration":1,"holds":[{"id":%q,"namespace":%q,"objects":6}]}}`, id, p.id))...)
	approval := "gc.winnow.dev/approved-hold="
	eventually(t, func(context.Context) error { // once there is time to find that out
		why := refused(t, "", defaults.on("annotate", "defaults", "--dry-run=server", approval+"5f3c")...)
		if !strings.Contains(why, `"5f3c": is not the ID of a hold of this policy; these wait for approval: `+id) {
			return errors.New(why)
		}
		return nil
	})
	tries(due("would"), "", defaults.on("annotate", "defaults", "--overwrite", approval+id)...)
	expect("the approval", warned(t, "", defaults.on("annotate", "defaults", "--overwrite", approval+id)...), due("will"))
}

// TestWarnedOfWhatHasNoEffect: a policy that a protected namespace, or the lack of a quota, keeps from doing anything.
func TestWarnedOfWhatHasNoEffect(t *testing.T) {
	t.Parallel()
	p := scoped(t, ofNamespace)
	system := scope{ofNamespace, t, "kube-system"}
	noQuota := fmt.Sprintf(
		"Warning: no ResourceQuota in namespace %q limits count/jobs.batch, so percentOfQuota has no effect there\n",
		p.id,
	)
	percent := p.manifest("a", `{rules: [{name: jobs, resources: [jobs.batch], capacity: {percentOfQuota: 50}}]}`)
	for manifest, want := range map[string]string{
		system.manifest("a", `{ttlAfterFinished: 1h}`): "Warning: namespace \"kube-system\" is protected: this policy deletes nothing in it\n",
		percent: noQuota,
	} {
		eventually(t, func(context.Context) error { // once Winnow knows of the namespace, and has time to count
			if got := warned(t, manifest, "create", "--dry-run=server", "-f", "-"); got != want {
				return fmt.Errorf("got %q, want %q", got, want)
			}
			return nil
		})
	}
	kubectl(t, "create", "quota", "jobs", "-n", p.id, "--hard=count/jobs.batch=10")
	eventually(t, func(context.Context) error {
		if got := warned(t, percent, "create", "--dry-run=server", "-f", "-"); got != "" {
			return fmt.Errorf("with a quota: got %q", got)
		}
		return nil
	})
}
