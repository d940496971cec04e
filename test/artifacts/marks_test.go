// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/write/marks"
)

// marksClient is one with the rights of Winnow.
func marksClient(t *testing.T) dynamic.Interface {
	t.Helper()
	user := serviceAccount("winnow")
	config, err := shared.UserConfig(user.name, user.groups...)
	if err != nil {
		t.Fatal(err)
	}
	return dynamic.NewForConfigOrDie(config)
}

// wantedMarks are marks that a writer must store. Like a tracker, it has what is stored as it was observed last.
type wantedMarks struct {
	lock sync.Mutex
	all  []*memory.Marks
}

// TakeUnmarked implements marks.Tracker.
func (w *wantedMarks) TakeUnmarked() []string {
	w.lock.Lock()
	defer w.lock.Unlock()
	var out []string
	for _, m := range w.all {
		out = append(out, m.Namespace)
	}
	return out
}

// MarksToStore implements marks.Tracker.
func (w *wantedMarks) MarksToStore(context.Context, string, time.Time) memory.ChangedMarks {
	w.lock.Lock()
	defer w.lock.Unlock()
	out := memory.ChangedMarks{All: w.all, Known: true}
	w.all = nil
	return out
}

// writeMarks has a writer store marks, and returns once they are.
func writeMarks(t *testing.T, client dynamic.Interface, all ...*memory.Marks) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	writer := marks.NewWriter(&wantedMarks{all: all}, client, clock.RealClock{})
	var running sync.WaitGroup
	running.Go(func() { writer.Run(ctx) })
	defer running.Wait()
	defer cancel()
	eventually(t, func() error {
		for _, m := range all {
			stored, err := readMarks(ctx, client, m.NamespacedName)
			if len(m.Unused) == 0 && apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return err
			}
			if diff := cmp.Diff(m.Unused, stored.Unused); diff != "" {
				return errors.New(diff[:min(len(diff), 1000)])
			}
		}
		return nil
	})
}

// readMarks lists, because Winnow may not get.
func readMarks(ctx context.Context, client dynamic.Interface, name types.NamespacedName) (*memory.Marks, error) {
	list, err := client.Resource(marks.Resource).Namespace(name.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + name.Name,
	})
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, apierrors.NewNotFound(marks.Resource.GroupResource(), name.Name)
	}
	return marks.Decode(&list.Items[0])
}

func marksOf(ns string, objects int) *memory.Marks {
	m := &memory.Marks{NamespacedName: types.NamespacedName{Namespace: ns, Name: "marks-0"}, Unused: map[types.UID]time.Time{}}
	for i := range objects {
		uid := types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i))
		m.Unused[uid] = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Second)
	}
	return m
}

// TestMarks: as many as possible are stored, changed and deleted with the rights of Winnow, and a write on top of an old state fails.
func TestMarks(t *testing.T) {
	const ns = "marks"
	kubectl(t, "create", "namespace", ns)
	client := marksClient(t)
	eventually(t, func() error { // Once the role of Winnow is known.
		_, err := client.Resource(marks.Resource).List(t.Context(), metav1.ListOptions{})
		return err
	})
	largest := marksOf(ns, knowledge.MaxMarks)
	writeMarks(t, client, largest)
	first, err := readMarks(t.Context(), client, largest.NamespacedName)
	if err != nil {
		t.Fatal(err)
	}
	few := marksOf(ns, 2)
	few.ResourceVersion = first.ResourceVersion
	writeMarks(t, client, few)

	stored := client.Resource(marks.Resource).Namespace(ns)
	stale := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": marks.Resource.GroupVersion().String(), "kind": "UsageMarks", "unused": map[string]any{},
		"metadata": map[string]any{"name": "marks-0", "namespace": ns, "resourceVersion": first.ResourceVersion},
	}}
	if _, err := stored.Update(t.Context(), stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old state: got %v", err)
	}
	old := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &first.ResourceVersion}}
	if err := stored.Delete(t.Context(), "marks-0", old); !apierrors.IsConflict(err) {
		t.Errorf("a delete of an old state: got %v", err)
	}

	second, err := readMarks(t.Context(), client, largest.NamespacedName)
	if err != nil {
		t.Fatal(err)
	}
	none := marksOf(ns, 0)
	none.ResourceVersion = second.ResourceVersion
	writeMarks(t, client, none)
}

const marksResource = "usagemarks.internal.gc.winnow.dev"

// TestMarksAreReserved: nobody but Winnow may write marks, whatever the rights, and everybody with the right may delete them. They go with
// their namespace. What is not of the form of marks is refused.
func TestMarksAreReserved(t *testing.T) {
	const ns, unused = "reserved-marks", `{"a": "2026-11-25T12:00:00Z"}`
	kubectl(t, "create", "namespace", ns)
	manifest := func(name, unused string) string {
		return fmt.Sprintf(`{"apiVersion": "internal.gc.winnow.dev/v1alpha1", "kind": "UsageMarks",
			"metadata": {"name": %q, "namespace": %q}, "unused": %s}`, name, ns, unused)
	}
	user := serviceAccount("winnow")
	kubeconfig, err := shared.KubeconfigFor(user.name, user.groups...)
	if err != nil {
		t.Fatal(err)
	}
	create := func(manifest string, args ...string) error {
		_, _, err := shared.KubectlStdin(t.Context(), manifest, append([]string{"create", "-f", "-"}, args...)...)
		return err
	}
	for _, name := range []string{"kept", "deleted"} {
		eventually(t, func() error { return create(manifest(name, unused), "--kubeconfig", kubeconfig) }) // Once its role is known.
	}
	patch := func(body string) error {
		_, _, err := shared.Kubectl(t.Context(), "patch", "-n", ns, marksResource, "kept", "--type=merge", "-p", body)
		return err
	}
	eventually(t, func() error {
		if create(manifest("dry", unused), "--dry-run=server") == nil {
			return errors.New("the admission policy is not in force yet")
		}
		return nil
	})
	const alone = "written by Winnow alone"
	wantRefusal(t, "create", create(manifest("new", unused)), alone)
	wantRefusal(t, "older", patch(`{"unused": {"a": "2020-01-01T00:00:00Z"}}`), alone)
	wantRefusal(t, "more", patch(`{"unused": {"b": "2026-11-25T12:00:00Z"}}`), alone)
	wantRefusal(t, "a label", patch(`{"metadata": {"labels": {"l": "v"}}}`), alone)
	kubectl(t, "delete", "-n", ns, marksResource, "deleted", "--timeout=5m")

	var many []string
	for i := range knowledge.MaxMarks + 1 {
		many = append(many, fmt.Sprintf(`"%d": "2026-11-25T12:00:00Z"`, i))
	}
	for want, unused := range map[string]string{
		"Too many":                   "{" + strings.Join(many, ",") + "}",
		"must be of type date-time":  `{"a": "yesterday"}`,
		"may not be more than 30":    `{"a": "2026-11-25T12:00:00.1234567890Z"}`,
		"must be of type date-time:": `{"a": 7}`,
		"unused in body must be of ": `"a"`,
	} {
		wantRefusal(t, want, create(manifest("form", unused), "--kubeconfig", kubeconfig), "is invalid", want)
	}
	wantRefusal(t, "none", create(`{"apiVersion": "internal.gc.winnow.dev/v1alpha1", "kind": "UsageMarks",
		"metadata": {"name": "form", "namespace": "`+ns+`"}}`, "--kubeconfig", kubeconfig), "unused: Required value")

	kubectl(t, "delete", "namespace", ns, "--timeout=5m")
	kubectl(t, "create", "namespace", ns)
	if left := kubectl(t, "get", "-n", ns, marksResource, "-o", "name"); left != "" {
		t.Errorf("the namespace came back with %s", left)
	}
}
