// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package marks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/metrics"
)

// fixture is a writer, what it must store, and what it wrote. It has the time of package synctest.
type fixture struct {
	*testing.T
	*Writer
	lock     sync.Mutex
	unmarked sets.Set[string]
	wanted   map[string][]*memory.Marks
	unknown  sets.Set[string]
	wrote    []string
	// answer returns the error of a request; nil for none.
	answer func(namespace string) error
	logs   ktesting.Buffer
}

var register = sync.OnceFunc(metrics.Register)

func newFixture(t *testing.T) *fixture {
	register() // Counters that are not registered do not count.
	o := &fixture{
		T: t, unmarked: sets.New[string](), wanted: map[string][]*memory.Marks{}, unknown: sets.New[string](),
		answer: func(string) error { return nil },
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{Resource: "UsageMarksList"})
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		o.lock.Lock()
		o.wrote = append(o.wrote, describe(t, action))
		answer := o.answer
		o.lock.Unlock()
		return true, &unstructured.Unstructured{}, answer(action.GetNamespace()) // Which may take some time.
	})
	metrics.UsageMarksWrites.Reset()
	o.Writer = NewWriter(o, client, clock.RealClock{})
	return o
}

// describe returns a write in one line.
func describe(t *testing.T, action clienttesting.Action) string {
	at := action.GetVerb() + " " + action.GetNamespace() + "/"
	switch a := action.(type) {
	case clienttesting.DeleteAction:
		return at + a.GetName() + "@" + *a.GetDeleteOptions().Preconditions.ResourceVersion
	case clienttesting.UpdateAction: // And a CreateAction.
		object, err := meta.Accessor(a.GetObject())
		if err != nil {
			t.Error(err)
			return ""
		}
		m, err := Decode(a.GetObject().(*unstructured.Unstructured))
		if err != nil {
			t.Error(err)
		}
		return fmt.Sprintf("%s%s@%s %d", at, object.GetName(), object.GetResourceVersion(), len(m.Unused))
	}
	t.Errorf("unexpected %v", action)
	return ""
}

// TakeUnmarked implements Tracker.
func (o *fixture) TakeUnmarked() []string {
	o.lock.Lock()
	defer o.lock.Unlock()
	out := o.unmarked.UnsortedList()
	o.unmarked.Clear()
	return out
}

// MarksToStore implements Tracker.
func (o *fixture) MarksToStore(_ context.Context, namespace string, _ time.Time) memory.ChangedMarks {
	o.lock.Lock()
	defer o.lock.Unlock()
	return memory.ChangedMarks{All: o.wanted[namespace], Known: !o.unknown.Has(namespace)}
}

// want sets the marks that must be stored for a namespace.
func (o *fixture) want(namespace string, all ...*memory.Marks) {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.wanted[namespace] = all
	o.unmarked.Insert(namespace)
}

// known sets the marks of a namespace that were not known before.
func (o *fixture) known(namespace string, all ...*memory.Marks) {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.unknown.Delete(namespace)
	o.wanted[namespace] = all
}

// answers sets the errors of requests.
func (o *fixture) answers(answer func(namespace string) error) {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.answer = answer
}

// lead runs the writer until the returned function is called.
func (o *fixture) lead() (end func()) {
	logger := ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig(ktesting.BufferLogs(true)))
	o.logs = logger.GetSink().(ktesting.Underlier).GetBuffer()
	ctx, cancel := context.WithCancel(klog.NewContext(o.Context(), logger))
	var running sync.WaitGroup
	running.Go(func() { o.Writer.Run(ctx) })
	synctest.Wait()
	return func() {
		cancel()
		running.Wait()
	}
}

// after waits, and returns what was written since the last call, sorted.
func (o *fixture) after(d time.Duration) []string {
	time.Sleep(d)
	synctest.Wait()
	o.lock.Lock()
	defer o.lock.Unlock()
	out := o.wrote
	o.wrote = nil
	slices.Sort(out)
	return out
}

func (o *fixture) wantWrites(d time.Duration, want ...string) {
	o.Helper()
	if diff := cmp.Diff(want, o.after(d)); diff != "" {
		o.Errorf("wrote (-want +got):\n%s", diff)
	}
}

// results are the values of the metric.
func (o *fixture) results() string {
	o.Helper()
	var out []string
	for _, result := range []string{"ok", "conflict", "failed"} {
		value, err := testutil.GetCounterMetricValue(metrics.UsageMarksWrites.WithLabelValues(result))
		if err != nil {
			o.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s %v", result, value))
	}
	return strings.Join(out, ", ")
}

// bubble runs a test with the time of package synctest.
func bubble(t *testing.T, test func(*fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newFixture(t)) })
}
