// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/platforms"
)

// copied creates ConfigMaps that the rule copying deletes.
func copied(t *testing.T, ns string, n int) (want []string) {
	t.Helper()
	each(n, func(i int) { createConfigMap(t, ns, fmt.Sprintf("m-%03d", i)) })
	for i := range n {
		want = append(want, fmt.Sprintf("configmaps/m-%03d p/copies", i))
	}
	return want
}

// copying is a rule that keeps copies of ConfigMaps.
func copying(after v1alpha1.TTL) v1alpha1.CleanupPolicySpec {
	return v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{{
		Name: "copies", Resources: []string{"configmaps"}, After: v1alpha1.AfterCreated, TTL: ttl(after), KeepCopy: ttl("1d"),
		Selector: matching(map[string]string{"app": "web"}),
	}}}
}

// copyState is what is stored of an object from a time on: a copy of this version, or none.
type copyState struct {
	at      time.Time
	version string
}

// copiesByUID returns what was stored in a namespace, by the UIDs of objects, as the audit log has it.
func copiesByUID(t *testing.T, ns string) map[types.UID][]copyState {
	t.Helper()
	out := map[types.UID][]copyState{}
	events, err := suite.AuditTail(func(e *cluster.AuditEvent) bool {
		return e.ObjectRef != nil && e.ObjectRef.Resource == "objectcopies" && e.ObjectRef.Namespace == ns &&
			slices.Contains([]string{"create", "update", "delete"}, e.Verb) && e.ResponseStatus != nil && e.ResponseStatus.Code < 300
	}).Next()
	must(t, err)
	for _, e := range events {
		s := copyState{at: e.StageTimestamp.Time}
		if e.Verb == "delete" {
			s.at = e.RequestReceivedTimestamp.Time // From then on, it may be gone.
		} else {
			var written metav1.PartialObjectMetadata
			must(t, json.Unmarshal(e.RequestObject.Raw, &written))
			s.version = written.Annotations["internal.gc.winnow.dev/resource-version"]
		}
		uid := types.UID(e.ObjectRef.Name)
		out[uid] = append(out[uid], s)
	}
	return out
}

// expectCopiesFirst fails unless, by the audit log, a copy of exactly the version that was deleted was stored when each DELETE of a namespace
// arrived, and still is.
func expectCopiesFirst(t *testing.T, ns string) {
	t.Helper()
	all := copiesByUID(t, ns)
	for _, d := range deletions(t, ns) {
		options, err := cluster.DeleteOptions(&d.AuditEvent)
		must(t, err)
		if options.Preconditions == nil || options.Preconditions.UID == nil || options.Preconditions.ResourceVersion == nil {
			t.Errorf("%s was deleted without preconditions", d.object)
			continue
		}
		var then, now copyState
		for _, s := range all[*options.Preconditions.UID] {
			if now = s; !s.at.After(d.RequestReceivedTimestamp.Time) {
				then = s
			}
		}
		if want := *options.Preconditions.ResourceVersion; then.version != want || now.version != want {
			t.Errorf("version %s of %s was deleted; then the copy was of version %q, and now it is of %q", want, d.object, then.version, now.version)
		}
	}
}

// TestCopies: of each ConfigMap and custom resource a copy is stored before it is deleted, and what cannot be copied stays. The plugin
// creates objects again, and their policy keeps what is annotated.
func TestCopies(t *testing.T) {
	t.Parallel()
	client, ns, r := customClient(t), newNamespace(t), machine("molds", "v1")
	grantByCommand(t, "configmaps")
	grant(t, r)
	installCustom(t, client, r)
	createLifecycle(t, r, "object.status.at")
	spec := copying("1s")
	spec.Rules = append(spec.Rules, v1alpha1.CleanupRule{Name: "molds", Resources: []string{r.Name()}, TTL: ttl("0s"), KeepCopy: ttl("1d")})
	want := copied(t, ns, 20)
	noise := make([]byte, 700<<10)
	_, _ = rand.Read(noise) // It never fails.
	_, err := kube.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "large", Labels: map[string]string{"app": "web"}},
		Data:       map[string]string{"noise": base64.StdEncoding.EncodeToString(noise)},
	}, metav1.CreateOptions{})
	must(t, err)
	kubectl(t, "create", "configmap", "full", "-n", ns, "--from-literal=answer=42")
	kubectl(t, "annotate", "configmap", "full", "-n", ns, "example.com/note=a: \"b\"")
	kubectl(t, "patch", "configmap", "full", "-n", ns, "--type=merge", "-p",
		`{"metadata": {"finalizers": ["example.com/none"], "labels": {"app": "web"}}}`)
	createPolicy(t, ns, "p", spec)
	finished(t, client, r, ns, "done")
	want = append(want, "configmaps/full p/copies", "molds/done p/molds")
	expectDeletions(t, ns, want...)
	kubectl(t, "patch", "configmap", "full", "-n", ns, "--type=merge", "-p", `{"metadata": {"finalizers": null}}`)
	waitCandidate(t, ns, "configmaps/large", "reason: CopyTooLarge", "a copy may have 524288")
	expectCopiesFirst(t, ns)
	copies, err := gc.CleanupCopies(ns).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(copies.Items) != len(want) {
		t.Errorf("there are %d copies of %d objects", len(copies.Items), len(want))
	}

	waitPlugin(t, ns, 0, "COPY FOR", "history", "configmap/m-000")
	waitPlugin(t, ns, 0, r.Name()+"/done", "history", r.Name()+"/done") // What has no record is not restored with --yes.
	expectPlugin(t, ns, "", 0, []string{"created."}, "restore", "configmap/m-001", "--yes", "--keep-for", "30d")
	waitPlugin(t, ns, 0, "COPY FOR", "history", "configmap/full")
	kubectl(t, "delete", "cleanuppolicy", "p", "-n", ns) // Otherwise it would delete what is restored without --keep-for.
	expectPlugin(t, ns, "no\n", 2, []string{`answer: "42"`, "Type yes", "nothing was created"}, "restore", "configmap/full")
	expectPlugin(t, ns, "", 0, []string{"would be created (dry run)"}, "restore", "configmap/full", "--dry-run")
	expectPlugin(t, ns, "yes\n", 0, []string{"created. Winnow deletes it again"}, "restore", "configmap/full")
	got, err := kube.CoreV1().ConfigMaps(ns).Get(t.Context(), "full", metav1.GetOptions{})
	must(t, err)
	if got.Data["answer"] != "42" || got.Annotations["example.com/note"] != `a: "b"` || len(got.Finalizers)+len(got.OwnerReferences) > 0 {
		t.Errorf("restored: %+v", got)
	}
	expectPlugin(t, ns, "", 2, []string{"exists in namespace " + ns + " already"}, "restore", "configmap/full", "--yes")
	expectPlugin(t, ns, "", 2, []string{"--i-know-that-it-runs-again"}, "restore", r.Name()+"/done", "--yes")
	expectPlugin(t, ns, "", 0, []string{"created."}, "restore", r.Name()+"/done", "--yes", "--i-know-that-it-runs-again")
	expectPlugin(t, ns, "", 2, []string{"there is no copy of configmaps/none", "no record"}, "restore", "configmap/none")
	if _, err := kube.CoreV1().ConfigMaps(ns).Get(t.Context(), "m-001", metav1.GetOptions{}); err != nil {
		t.Errorf("the policy did not keep what was restored with --keep-for: %v", err)
	}
}

// TestRestoreTwentyKinds: objects of twenty kinds come back as they were, down to large numbers and odd texts, except for what is new or left
// out on purpose.
func TestRestoreTwentyKinds(t *testing.T) {
	t.Parallel()
	client, ns := customClient(t), newNamespace(t)
	rules := make([]v1alpha1.CleanupRule, 2) // A rule has sixteen resources at most.
	for i := range rules {
		rules[i] = v1alpha1.CleanupRule{
			Name: fmt.Sprint("kinds-", i), Selector: matching(map[string]string{"app": "web"}), After: v1alpha1.AfterCreated, TTL: ttl("1s"),
			KeepCopy: ttl("1d"),
		}
	}
	var kinds []platforms.Resource
	var want []string
	for i := range 20 {
		r := machine(fmt.Sprintf("restored%cs", 'a'+i), "v1")
		grant(t, r)
		installCustom(t, client, r)
		rule := &rules[i%len(rules)]
		kinds, rule.Resources = append(kinds, r), append(rule.Resources, r.Name())
		want = append(want, r.Plural+"/w p/"+rule.Name)
	}
	before := map[string]*unstructured.Unstructured{}
	for i, r := range kinds {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": r.GroupVersionResource().GroupVersion().String(), "kind": r.Kind,
			"metadata": map[string]any{
				"name": "w", "labels": map[string]any{"app": "web"}, "annotations": map[string]any{"example.com/note": "a: \"b\"\n\u2028"},
			},
			"spec": map[string]any{
				"large": int64(1<<53 + 1 + i), "fraction": 0.1, "text": " \t\n\u2028é", "empty": map[string]any{},
				"list": []any{int64(i), "1", true, map[string]any{"deep": []any{}}},
			},
		}}
		created, err := client.Resource(r.GroupVersionResource()).Namespace(ns).Create(t.Context(), object, metav1.CreateOptions{})
		must(t, err)
		before[r.Name()] = created
	}
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{Rules: rules})
	expectDeletions(t, ns, want...)
	expectCopiesFirst(t, ns)
	kubectl(t, "delete", "cleanuppolicy", "p", "-n", ns)
	for _, r := range kinds {
		expectPlugin(t, ns, "yes\n", 0, []string{"created."}, "restore", r.Name()+"/w")
		got, err := client.Resource(r.GroupVersionResource()).Namespace(ns).Get(t.Context(), "w", metav1.GetOptions{})
		must(t, err)
		old := before[r.Name()]
		if got.GetUID() == old.GetUID() || len(got.GetFinalizers())+len(got.GetOwnerReferences()) > 0 {
			t.Errorf("%s: the metadata is %v", r.Name(), got.Object["metadata"])
		}
		for _, field := range [][]string{{"spec"}, {"metadata", "labels"}, {"metadata", "annotations"}} {
			was, _, _ := unstructured.NestedFieldNoCopy(old.Object, field...) // Both are missing, or none is.
			is, _, _ := unstructured.NestedFieldNoCopy(got.Object, field...)
			if diff := cmp.Diff(was, is); diff != "" {
				t.Errorf("%s: %q differs (-want +got):\n%s", r.Name(), field, diff)
			}
		}
	}
}

// The test below stops replicas, so it is not parallel.

// TestCopiesOutliveLeaders: also if the leader is killed between copies and deletions, no object is deleted without its copy.
func TestCopiesOutliveLeaders(t *testing.T) {
	const objects = 300
	ns := newNamespace(t)
	grantByCommand(t, "configmaps")
	want := copied(t, ns, objects)
	createPolicy(t, ns, "p", copying("0s"))
	eventually(t, func(context.Context) string {
		if n := len(deletions(t, ns)); n < objects/4 {
			return fmt.Sprintf("%d ConfigMaps are deleted", n)
		}
		return ""
	})
	kill(t, leader(t))
	eventually(t, func(ctx context.Context) string {
		left, err := kube.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil {
			return err.Error()
		}
		if len(left.Items) > 0 {
			return fmt.Sprintf("%d ConfigMaps are left", len(left.Items))
		}
		return ""
	})
	restart(t)
	expectCopiesFirst(t, ns)
	var gone []string
	for _, d := range deletions(t, ns) {
		gone = append(gone, d.object+" "+d.decider(ns))
	}
	if lost := without(want, slices.Sorted(slices.Values(gone))); len(lost) > 0 {
		t.Errorf("nobody deleted\n  %s", strings.Join(lost, "\n  "))
	}
	copies := 0
	for options := (metav1.ListOptions{Limit: 50}); ; {
		page, err := gc.CleanupCopies(ns).List(t.Context(), options)
		must(t, err)
		copies += len(page.Items)
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	if copies != objects {
		t.Errorf("there are %d copies of %d objects", copies, objects)
	}
}
