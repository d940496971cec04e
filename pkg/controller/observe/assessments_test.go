// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	clienttesting "k8s.io/client-go/testing"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/assessment"
	"github.com/winnow-dev/winnow/pkg/controller/write/assessments"
)

// toldAssessments writes down what it is told.
type toldAssessments struct {
	mu    sync.Mutex
	lines []string
}

func (a *toldAssessments) tell(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lines = append(a.lines, fmt.Sprintf(format, args...))
}

// SetAssessment implements AssessmentsTracker.
func (a *toldAssessments) SetAssessment(o *assessment.Object, _ time.Time) {
	a.tell("set %s@%s", o.Name, o.ResourceVersion)
}

// RemoveAssessment implements AssessmentsTracker.
func (a *toldAssessments) RemoveAssessment(name string, _ time.Time) { a.tell("remove %s", name) }

// AssessmentsListed implements AssessmentsTracker.
func (a *toldAssessments) AssessmentsListed(present sets.Set[string], _ time.Time) {
	a.tell("listed %q", sets.List(present))
}

// AssessmentUnreadable implements AssessmentsTracker.
func (a *toldAssessments) AssessmentUnreadable(name, resourceVersion, why string, _ time.Time) {
	a.tell("unreadable %s@%s: %s", name, resourceVersion, why)
}

// AssessmentsUnavailable implements AssessmentsTracker.
func (a *toldAssessments) AssessmentsUnavailable(why string, _ time.Time) {
	if why == "" {
		a.tell("available")
		return
	}
	a.tell("unavailable: %s", why)
}

func (a *toldAssessments) told() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.lines)
}

// wasTold waits until the observer has told exactly this.
func (o *observed) wasTold(want ...string) {
	o.Helper()
	defer func() {
		if o.Failed() {
			o.Log(cmp.Diff(want, o.assessed.told()))
		}
	}()
	o.until("the tracker is told of assessments", func() bool { return len(o.assessed.told()) >= len(want) })
	if got := o.assessed.told(); !slices.Equal(got, want) {
		o.Fatalf("told %q", got)
	}
}

// storedAssessment is an assessment as the cluster stores it.
func storedAssessment(name, resourceVersion string, format int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": assessments.Resource.GroupVersion().String(), "kind": "Assessment",
		"metadata": map[string]any{"name": name, "resourceVersion": resourceVersion},
		"format":   format, "holds": map[string]any{},
	}}
}

func (o *observed) storedAssessments() dynamic.ResourceInterface {
	return o.marks.Resource(assessments.Resource)
}

const newerFormat = `Assessment "holds-1" cannot be read: it has format 2, and this version of Winnow knows formats up to 1 only: ` +
	`a newer version has written it`

// TestObservesAssessments: assessments are listed and watched in order, and those that cannot be read are known to be there.
func TestObservesAssessments(t *testing.T) {
	o := newObserved(t)
	for _, stored := range []*unstructured.Unstructured{storedAssessment("holds-0", "8", 1), storedAssessment("holds-1", "6", 2)} {
		if err := o.marks.Tracker().Create(assessments.Resource, stored, ""); err != nil {
			t.Fatal(err)
		}
	}
	o.run()
	listed := []string{"set holds-0@8", "unreadable holds-1@6: " + newerFormat, `listed ["holds-0" "holds-1"]`, "available", "available"}
	o.wasTold(listed...)
	ctx := context.Background()
	if _, err := o.storedAssessments().Create(ctx, storedAssessment("holds-2", "9", 1), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := o.storedAssessments().Update(ctx, storedAssessment("holds-1", "10", 1), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := o.storedAssessments().Update(ctx, storedAssessment("holds-0", "11", 1), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := o.storedAssessments().Delete(ctx, "holds-0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	o.wasTold(append(listed, "set holds-2@9", "set holds-1@10", "set holds-0@11", "remove holds-0")...)
}

// TestAssessmentsCannotBeListed: the tracker is told why and what to do, each time, until they can be.
func TestAssessmentsCannotBeListed(t *testing.T) {
	resource := assessments.Resource.GroupResource()
	for want, err := range map[string]error{
		"apply artifacts/storage of this version": apierrors.NewNotFound(resource, ""),
		"apply artifacts/install of this version": apierrors.NewForbidden(resource, "", nil),
		"etcdserver: no leader":                   apierrors.NewInternalError(fmt.Errorf("etcdserver: no leader")),
	} {
		o := newObserved(t)
		var served atomic.Bool
		o.marks.PrependReactor("list", assessments.Resource.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return !served.Load(), nil, err
		})
		o.run()
		o.create(testbuilders.Policy("p").Default("1h"))
		o.until("the policy is observed", func() bool { return o.due("p") == 0 })
		for n := 1; n <= 3; n++ {
			o.until("the observer waits", func() bool { return len(o.assessed.told()) == n && o.clock.HasWaiters() })
			if got := o.assessed.told()[n-1]; !strings.HasPrefix(got, "unavailable: ") || !strings.Contains(got, want) {
				t.Errorf("told %q, want %q", got, want)
			}
			served.Store(n == 3)
			o.clock.Step(assessmentsRetry)
		}
		o.until("they are available", func() bool { return slices.Contains(o.assessed.told(), "available") })
		if told := o.assessed.told(); told[3] != "listed []" {
			t.Errorf("told %q", told)
		}
	}
}

// TestAssessmentsCannotBeWatched: the tracker is told so, and that they are available once they are watched again.
func TestAssessmentsCannotBeWatched(t *testing.T) {
	o := newObserved(t)
	var watches atomic.Int32
	o.marks.PrependWatchReactor(assessments.Resource.Resource, func(clienttesting.Action) (bool, watch.Interface, error) {
		return watches.Add(1) <= 2, nil, apierrors.NewInternalError(fmt.Errorf("etcdserver: no leader"))
	})
	o.run()
	o.until("they are watched", func() bool { return watches.Load() >= 3 && o.assessed.told()[len(o.assessed.told())-1] == "available" })
	refused := 0
	for _, line := range o.assessed.told() {
		if strings.HasPrefix(line, "unavailable: ") && strings.Contains(line, "no leader") {
			refused++
		}
	}
	if refused != 2 {
		t.Errorf("told %q", o.assessed.told())
	}
}
