// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package assessments

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/controller/metrics"
	"github.com/winnow-dev/winnow/pkg/controller/rules/assessment"
)

// fixture is a writer, what it must store, and what it wrote. It has the time of package synctest.
type fixture struct {
	*testing.T
	*Writer
	lock     sync.Mutex
	wanted   []*assessment.Object
	again    map[string]*assessment.Object // what is wanted again when it fails
	unstored chan struct{}
	wrote    []string
	said     []string // of failures
	relists  int
	// answer and confirmed return the error of a request, and why the lease is not confirmed; nil for none.
	answer    func(name string) error
	confirmed error
	logs      ktesting.Buffer
}

var register = sync.OnceFunc(metrics.Register)

func newFixture(t *testing.T) *fixture {
	register() // Counters that are not registered do not count.
	o := &fixture{T: t, unstored: make(chan struct{}, 1), answer: succeed, again: map[string]*assessment.Object{}}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{Resource: "AssessmentList"})
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		o.lock.Lock()
		defer o.lock.Unlock()
		name, wrote := describe(t, action)
		o.wrote = append(o.wrote, wrote)
		return true, &unstructured.Unstructured{}, o.answer(name)
	})
	metrics.AssessmentWrites.Reset()
	o.Writer = NewWriter(Config{Tracker: o, Client: client, Clock: clock.RealClock{}, Confirm: o.confirm, Relist: o.relist})
	return o
}

// describe returns the name of what is written, and the write in one line.
func describe(t *testing.T, action clienttesting.Action) (name, wrote string) {
	if action.GetNamespace() != "" {
		t.Errorf("%v is in a namespace", action)
	}
	switch a := action.(type) {
	case clienttesting.DeleteAction:
		return a.GetName(), "delete " + a.GetName() + "@" + *a.GetDeleteOptions().Preconditions.ResourceVersion
	case clienttesting.UpdateAction: // And a CreateAction.
		o, err := Decode(a.GetObject().(*unstructured.Unstructured))
		if err != nil {
			t.Error(err)
		}
		return o.Name, action.GetVerb() + " " + o.Name + "@" + o.ResourceVersion
	}
	t.Errorf("unexpected %v", action)
	return "", ""
}

func (o *fixture) do(f func()) {
	o.lock.Lock()
	defer o.lock.Unlock()
	f()
}

func (o *fixture) confirm(context.Context) (err error) {
	o.do(func() { err = o.confirmed })
	return err
}

func (o *fixture) relist() { o.do(func() { o.relists++ }) }

// AssessmentsToStore implements Tracker. As the engine, it returns each object once.
func (o *fixture) AssessmentsToStore(time.Time) (all []*assessment.Object) {
	o.do(func() { all, o.wanted = o.wanted, nil })
	return all
}

// Unstored implements Tracker.
func (o *fixture) Unstored() <-chan struct{} { return o.unstored }

// AssessmentFailed implements Tracker. As the engine, it wants what has failed again.
func (o *fixture) AssessmentFailed(name, why string, _ time.Time) {
	o.do(func() {
		o.said = append(o.said, name+": "+why)
		if why != "" && o.again[name] != nil {
			o.wanted = append(o.wanted, o.again[name])
			o.wake()
		}
	})
}

// want sets what must be stored.
func (o *fixture) want(all ...*assessment.Object) {
	o.do(func() {
		o.wanted = all
		for _, object := range all {
			o.again[object.Name] = object
		}
		o.wake()
	})
}

func (o *fixture) wake() {
	select {
	case o.unstored <- struct{}{}:
	default:
	}
}

// answers sets the errors of requests.
func (o *fixture) answers(answer func(name string) error) { o.do(func() { o.answer = answer }) }

// succeed lets requests succeed.
func succeed(string) error { return nil }

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

// after waits, and returns what was written since the last call.
func (o *fixture) after(d time.Duration) (out []string) {
	time.Sleep(d)
	synctest.Wait()
	o.do(func() { out, o.wrote = o.wrote, nil })
	return out
}

func (o *fixture) wantWrites(d time.Duration, want ...string) {
	o.Helper()
	if diff := cmp.Diff(want, o.after(d)); diff != "" {
		o.Errorf("wrote (-want +got):\n%s", diff)
	}
}

// wantSaid compares what the tracker was told of failures since the last call.
func (o *fixture) wantSaid(want ...string) {
	o.Helper()
	o.do(func() {
		if diff := cmp.Diff(want, o.said); diff != "" {
			o.Errorf("told of failures (-want +got):\n%s", diff)
		}
		o.said = nil
	})
}

// results are the values of the metric.
func (o *fixture) results() string {
	o.Helper()
	var out []string
	for _, result := range []string{"ok", "conflict", "failed"} {
		value, err := testutil.GetCounterMetricValue(metrics.AssessmentWrites.WithLabelValues(result))
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

// holding returns an object with a hold of so many members.
func holding(name, version string, members int) *assessment.Object {
	hold := assessment.Hold{ID: "1a2b", Namespace: "team-a", Since: noon, Why: "somebody changed it", Number: 3}
	for i := range members {
		hold.Members = append(hold.Members, types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)))
	}
	return &assessment.Object{
		Name: name, ResourceVersion: version, Seen: map[string]uint64{"jobs.batch": 1234},
		Holds: &assessment.Holds{Holds: []assessment.Hold{hold}},
	}
}
