// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/controller/rules/assessment"
	"github.com/winnow-dev/winnow/pkg/controller/write/assessments"
)

// wantedAssessments are objects that a writer must store.
type wantedAssessments struct {
	lock     sync.Mutex
	all      []*assessment.Object
	unstored chan struct{}
	failed   string
}

// AssessmentsToStore implements assessments.Tracker.
func (w *wantedAssessments) AssessmentsToStore(time.Time) []*assessment.Object {
	w.lock.Lock()
	defer w.lock.Unlock()
	out := w.all
	w.all = nil
	return out
}

// Unstored implements assessments.Tracker.
func (w *wantedAssessments) Unstored() <-chan struct{} { return w.unstored }

// AssessmentFailed implements assessments.Tracker.
func (w *wantedAssessments) AssessmentFailed(_, why string, _ time.Time) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.failed = why
}

// writeAssessments has a writer store objects with the rights of Winnow, and returns once they are.
func writeAssessments(t *testing.T, client dynamic.Interface, all ...*assessment.Object) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	want := &wantedAssessments{all: all, unstored: make(chan struct{}, 1)}
	want.unstored <- struct{}{}
	writer := assessments.NewWriter(assessments.Config{
		Tracker: want, Client: client, Clock: clock.RealClock{},
		Confirm: func(context.Context) error { return nil }, Relist: func() {},
	})
	var running sync.WaitGroup
	running.Go(func() { writer.Run(ctx) })
	defer running.Wait()
	defer cancel()
	eventually(t, func() error {
		for _, o := range all {
			want.lock.Lock()
			failed := want.failed
			want.lock.Unlock()
			if failed != "" {
				return errors.New(failed)
			}
			stored, err := readAssessment(ctx, client, o.Name)
			if err != nil {
				return err
			}
			if o.Cluster == nil && o.Holds == nil && len(o.Namespaces) == 0 {
				if stored != nil {
					return fmt.Errorf("%s is still there", o.Name)
				}
				continue
			}
			if stored == nil {
				return fmt.Errorf("%s is not there yet", o.Name)
			}
			stored.ResourceVersion = o.ResourceVersion
			if diff := cmp.Diff(o, stored); diff != "" {
				return errors.New(diff[:min(len(diff), 1000)])
			}
		}
		return nil
	})
}

// readAssessment lists, because Winnow may not get. It returns nil if there is no such object.
func readAssessment(ctx context.Context, client dynamic.Interface, name string) (*assessment.Object, error) {
	list, err := client.Resource(assessments.Resource).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	return assessments.Decode(&list.Items[0])
}

// TestAssessments: every field of what Winnow stores survives the schema, also in the largest object, which is created, changed and deleted
// with the rights of Winnow.
func TestAssessments(t *testing.T) {
	client := marksClient(t)
	eventually(t, func() error { // Once its role is known.
		_, err := readAssessment(t.Context(), client, "holds-9")
		return err
	})
	at := time.Date(2026, 11, 25, 12, 0, 0, 123456789, time.UTC)
	hold := assessment.Hold{
		ID: "1a2b", Namespace: "team-a", Owner: "p", Former: []string{"0a1b"}, Total: true, Since: at, Why: "a change", Number: 7,
	}
	for i := range 5000 {
		hold.Members = append(hold.Members, types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)))
	}
	holds := &assessment.Object{
		Name: "holds-9", Seen: map[string]uint64{"jobs.batch": 1<<53 + 1}, Holds: &assessment.Holds{Holds: []assessment.Hold{hold}},
	}
	namespaces := &assessment.Object{Name: "namespaces-9", Namespaces: []assessment.Namespace{{
		UID: "uid-a", Number: 1<<53 + 1,
		Inputs: assessment.Inputs{
			Policies: []assessment.Policy{{UID: "p", Title: "team-a/p", Wide: true, Generation: 4, Digest: "d"}},
			Quotas:   map[types.UID]string{"q": "5"},
		},
		Unlisted: []string{"pods"}, HoldAbove: &assessment.Limit{Objects: -1, Total: 5, TotalOf: "limits"},
		Counts: []assessment.Count{{At: at, Objects: 3, Policies: []types.UID{"p"}}},
	}}}
	leader := &assessment.Object{Name: "cluster", Cluster: &assessment.Cluster{Leader: "winnow-0", Term: 3}}
	writeAssessments(t, client, holds, namespaces, leader)
	var none []*assessment.Object
	for _, name := range []string{holds.Name, namespaces.Name, leader.Name} {
		stored, err := readAssessment(t.Context(), client, name)
		if err != nil {
			t.Fatal(err)
		}
		none = append(none, &assessment.Object{Name: name, ResourceVersion: stored.ResourceVersion})
	}
	writeAssessments(t, client, none...)
}

const assessmentsResource = "assessments.internal.gc.winnow.dev"

// TestAssessmentsAreReserved: nobody but Winnow may write assessments, whatever the rights, and everybody with the right may delete them.
func TestAssessmentsAreReserved(t *testing.T) {
	manifest := func(name, rest string) string {
		return fmt.Sprintf(`{"apiVersion": "internal.gc.winnow.dev/v1alpha1", "kind": "Assessment", "metadata": {"name": %q}%s}`, name, rest)
	}
	const valid = `, "format": 1, "holds": {"holds": []}`
	user := serviceAccount("winnow")
	kubeconfig, err := shared.KubeconfigFor(user.name, user.groups...)
	if err != nil {
		t.Fatal(err)
	}
	create := func(manifest string, args ...string) error {
		_, _, err := shared.KubectlStdin(t.Context(), manifest, append([]string{"create", "-f", "-"}, args...)...)
		return err
	}
	eventually(t, func() error { return create(manifest("holds-7", valid), "--kubeconfig", kubeconfig) }) // Once its role is known.
	eventually(t, func() error {
		if create(manifest("holds-8", valid), "--dry-run=server") == nil {
			return errors.New("the admission policy is not in force yet")
		}
		return nil
	})
	const alone = "written by Winnow alone"
	wantRefusal(t, "create", create(manifest("holds-8", valid)), alone)
	_, _, err = shared.Kubectl(t.Context(), "patch", assessmentsResource, "holds-7", "--type=merge", "-p", `{"holds": null}`)
	wantRefusal(t, "no holds", err, alone)
	for want, rest := range map[string]string{
		"format: Required value":            `, "holds": {}`,
		"greater than or equal to 1":        `, "format": 0, "holds": {}`,
		"holds in body must be of type obj": `, "format": 1, "holds": "a"`,
	} {
		wantRefusal(t, want, create(manifest("holds-8", rest), "--kubeconfig", kubeconfig), want)
	}
	kubectl(t, "delete", assessmentsResource, "holds-7", "--timeout=5m")
}
