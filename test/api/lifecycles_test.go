// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	applyv1alpha1 "github.com/winnow-dev/winnow/pkg/generated/applyconfiguration/gc/v1alpha1"
)

// lifecycle is the manifest of one; succeeded is an expression.
func lifecycle(name, succeeded string) string {
	return `apiVersion: gc.winnow.dev/v1alpha1
kind: ResourceLifecycle
metadata: {name: ` + name + `}
spec:
  finished:
    when: "object.?status.phase.orValue('') in ['Succeeded', 'Failed', 'Error']"
    succeeded: "` + succeeded + `"
    at: "object.status.finishedAt"
`
}

const succeeds = "object.status.phase == 'Succeeded'"

// TestLifecycle writes one as an operator does, with kubectl alone.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	const name = "applied.example.com"
	lifecycles := client.GcV1alpha1().ResourceLifecycles()
	get := func() *v1alpha1.ResourceLifecycle {
		t.Helper()
		l, err := lifecycles.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	w, err := lifecycles.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	contains(t, kubectlStdin(t, lifecycle(name, succeeds), "apply", "-f", "-"), "created")
	contains(t, kubectlStdin(t, lifecycle(name, succeeds), "apply", "-f", "-"), "unchanged")
	if l := get(); l.Generation != 1 || l.Spec.Dependents != v1alpha1.LifecycleLeaveToOwner {
		t.Errorf("got %+v", l)
	}

	stderr := refused(t, lifecycle(name, "object.status.phase = 'Succeeded'"), "apply", "-f", "-")
	contains(t, stderr, "spec.finished.succeeded: Invalid value", "<input>:1:21: Syntax error", "| object.status.phase = 'Succeeded'", "....^")
	stderr = refused(t, strings.Replace(lifecycle(name, succeeds), "succeeded:", "succeeds:", 1), "apply", "--validate=strict", "-f", "-")
	contains(t, stderr, `unknown field "spec.finished.succeeds"; did you mean "succeeded"?`)

	contains(t, kubectlStdin(t, lifecycle(name, "true"), "apply", "--server-side", "--force-conflicts", "-f", "-"), "serverside-applied")
	if l := get(); l.Generation != 2 || l.Spec.Finished.Succeeded != "true" {
		t.Errorf("after a change: %+v", l)
	}
	kubectl(t, "delete", "rlc", name)
	var seen []watch.EventType
	for event := range w.ResultChan() {
		if l, ok := event.Object.(*v1alpha1.ResourceLifecycle); !ok || l.Name != name {
			t.Fatalf("watched %+v", event)
		}
		if seen = append(seen, event.Type); event.Type == watch.Deleted {
			break
		}
	}
	seen = slices.Compact(seen) // Server-side apply also writes who owns which fields.
	if want := []watch.EventType{watch.Added, watch.Modified, watch.Deleted}; !slices.Equal(seen, want) {
		t.Errorf("watched %v, want %v", seen, want)
	}
}

// TestLifecycleStatus: whoever writes the status changes nothing else, and the columns show it.
func TestLifecycleStatus(t *testing.T) {
	t.Parallel()
	const name = "status.example.com"
	kubectlStdin(t, lifecycle(name, succeeds), "apply", "-f", "-")
	row := func() []string {
		t.Helper()
		table := lines(kubectl(t, "get", "rlc", name))
		if want := strings.Fields("NAME ACCEPTED ESTABLISHED OBJECTS UNUSED AGE"); !slices.Equal(table[0], want) {
			t.Errorf("columns %v, want %v", table[0], want)
		}
		return table[1][:len(table[1])-1]
	}
	if got, want := row(), []string{name, "Unknown", "Unknown"}; !slices.Equal(got, want) {
		t.Errorf("new: %v, want %v", got, want)
	}
	for _, condition := range []string{
		`{"type":"Accepted","status":"True","reason":"Compiled","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}`,
		`{"type":"Established","status":"False","reason":"NotServed","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}`,
	} {
		patch := `{"status":{"conditions":[` + condition + `]},"spec":{"nativeTTL":"object.spec.ttl"}}`
		kubectl(t, "patch", "rlc", name, "--subresource=status", "--type=strategic", "-p", patch)
	}
	if got, want := row(), []string{name, "True", "False", "(NotServed)"}; !slices.Equal(got, want) {
		t.Errorf("with a status: %v, want %v", got, want)
	}
	contains(t, kubectl(t, "get", "rlc", name, "-o", "wide"), "LeaveToOwner", "object.?status.phase.orValue('') in")

	status := applyv1alpha1.ResourceLifecycle(name).WithStatus(applyv1alpha1.ResourceLifecycleStatus())
	l, err := client.GcV1alpha1().ResourceLifecycles().ApplyStatus(t.Context(), status, metav1.ApplyOptions{FieldManager: "winnow", Force: true})
	if err != nil || l.Spec.NativeTTL != "" || l.Generation != 1 || len(l.Status.Conditions) != 2 {
		t.Errorf("got %+v, %v", l, err)
	}
	kubectlStdin(t, lifecycle(name, "true")+"status: {conditions: []}\n", "apply", "--server-side", "--force-conflicts", "-f", "-")
	if got, want := row(), []string{name, "True", "False", "(NotServed)"}; !slices.Equal(got, want) {
		t.Errorf("after a write of the spec: %v, want %v", got, want)
	}
}
