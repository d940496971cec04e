// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	gcfake "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/fake"
	gcclient "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/typed/gc/v1alpha1"
)

const (
	waitMost = time.Minute
	jobsets  = "jobsets.jobset.x-k8s.io"
	runs     = "runs.example.com"
)

// tracker has a table, and passes on what each new one changes.
type tracker struct {
	lock    sync.Mutex
	table   *kinds.Table
	changes chan string
}

func (t *tracker) Kinds() *kinds.Table {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.table
}

func (t *tracker) SetKinds(table *kinds.Table, _ time.Time) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.changes <- strings.Join(slices.Sorted(slices.Values(table.Changed(t.table).UnsortedList())), " ")
	t.table = table
}

// changing is a cluster that another one can replace. It counts how often it was read.
type changing struct {
	discovery.AggregatedDiscoveryInterfaceWithContext
	lock  sync.Mutex
	now   *cluster
	reads int
}

func (c *changing) GroupsAndMaybeResourcesWithContext(ctx context.Context) (
	*metav1.APIGroupList, map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error, error,
) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.reads++
	return c.now.GroupsAndMaybeResourcesWithContext(ctx)
}

func (c *changing) set(now *cluster) (reads int) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.now = now
	return c.reads
}

func (c *changing) readsAfter(n int) bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.reads > n
}

// unstreamed says that the fake client cannot stream its first list.
type unstreamed struct {
	gcclient.ResourceLifecycleInterface
}

func (unstreamed) IsWatchListSemanticsUnSupported() bool { return true }

// world is a Follower of a cluster that the test changes.
type world struct {
	*Follower
	t           *testing.T
	cluster     *changing
	tracker     *tracker
	clock       *clocktesting.FakeClock
	own         *gcfake.Clientset
	definitions *metadatafake.FakeMetadataClient
	services    *fake.FakeDynamicClient
}

func newWorld(t *testing.T, now *cluster) *world {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	services := now.reader().APIServices
	w := &world{
		t: t, cluster: &changing{now: now}, tracker: &tracker{table: kinds.Builtin(), changes: make(chan string, 10)},
		clock: clocktesting.NewFakeClock(time.Now()), own: gcfake.NewSimpleClientset(), definitions: metadatafake.NewSimpleMetadataClient(scheme),
		services: services.(*fake.FakeDynamicClient),
	}
	f, err := New(Config{
		Reader: Reader{Discovery: w.cluster, APIServices: services}, Metadata: w.definitions,
		Lifecycles: unstreamed{w.own.GcV1alpha1().ResourceLifecycles()}, Tracker: w.tracker, Clock: w.clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Follower = f
	return w
}

// run runs the Follower, and returns when it watches: a fake client never reports what changes between a list and the watch that follows.
func (w *world) run() {
	w.t.Helper()
	done := make(chan struct{})
	ctx, stop := context.WithCancel(w.t.Context())
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	w.t.Cleanup(func() {
		stop()
		<-done
	})
	watching := func(c interface{ Actions() []clienttesting.Action }) bool {
		return slices.ContainsFunc(c.Actions(), func(a clienttesting.Action) bool { return a.GetVerb() == "watch" })
	}
	err := wait.PollUntilContextTimeout(ctx, time.Millisecond, waitMost, true, func(context.Context) (bool, error) {
		return watching(w.own) && watching(w.definitions), nil
	})
	if err != nil {
		w.t.Fatalf("it does not watch: %v", err)
	}
}

// changes waits until a table changes these resources. Meanwhile time passes, in steps.
func (w *world) changes(want string, step time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(waitMost); time.Now().Before(end); {
		select {
		case got := <-w.tracker.changes:
			if got != want {
				w.t.Errorf("%s changed, want %s", got, want)
			}
			return
		case <-time.After(10 * time.Millisecond):
			w.clock.Step(step)
		}
	}
	w.t.Fatalf("%s did not change", want)
}

// unchanged lets time pass until the cluster was read again, and expects no change.
func (w *world) unchanged(reads int) {
	w.t.Helper()
	for end := time.Now().Add(waitMost); !w.cluster.readsAfter(reads + 1); w.clock.Step(readEvery) {
		if time.Now().After(end) {
			w.t.Fatal("it was not read again")
		}
		time.Sleep(10 * time.Millisecond)
	}
	select {
	case got := <-w.tracker.changes:
		w.t.Errorf("%s changed", got)
	default:
	}
}

func runLifecycle(generation int64) *v1alpha1.ResourceLifecycle {
	return &v1alpha1.ResourceLifecycle{
		ObjectMeta: metav1.ObjectMeta{Name: runs, UID: "uid", Generation: generation},
		Spec: v1alpha1.ResourceLifecycleSpec{Finished: &v1alpha1.FinishedExpressions{
			When: "object.status.done == true", Succeeded: "true", At: "object.status.at",
		}},
	}
}

func (w *world) define(name string) {
	w.t.Helper()
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.SetGroupVersionKind(definitionsResource.GroupVersion().WithKind("CustomResourceDefinition"))
	if err := w.definitions.Tracker().Create(definitionsResource, m, ""); err != nil {
		w.t.Fatal(err)
	}
}

// TestFollow: the table follows definitions, lifecycles and what the cluster serves.
func TestFollow(t *testing.T) {
	both := new(cluster).serve("jobset.x-k8s.io", "v1alpha2", "jobsets").serve("example.com", "v1", "runs")
	w := newWorld(t, new(cluster).serve("jobset.x-k8s.io", "v1alpha2", "jobsets"))
	w.Start(t.Context())
	w.changes(jobsets, 0)
	w.run()

	w.cluster.set(both)
	w.define(runs)
	w.changes(runs, readAfter[0])

	lifecycles := w.own.GcV1alpha1().ResourceLifecycles()
	if _, err := lifecycles.Create(t.Context(), runLifecycle(1), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.changes(runs, 0)
	if _, err := lifecycles.Update(t.Context(), runLifecycle(2), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.changes(runs, 0)
	if k, err := w.tracker.Kinds().For(runs); err != nil || !k.Finishes || !strings.HasPrefix(k.Source.Text, "generation 2 of ") {
		t.Errorf("the kind is %+v, %v", k, err)
	}
	if err := lifecycles.Delete(t.Context(), runs, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.changes(runs, 0)

	w.cluster.set(&cluster{err: errors.New("no connection")})
	w.changes("", readEvery)
	w.cluster.set(both)
	w.changes("", readEvery)
	w.cluster.set(new(cluster).serve("example.com", "v1", "runs"))
	w.changes(jobsets, readEvery)
}

// TestFollowReferrers: the table has what may refer to ConfigMaps and Secrets, with the lifecycles of users, and says if that is not all. A
// referrer that nothing has changed is the same.
func TestFollowReferrers(t *testing.T) {
	serve := func() *cluster {
		return new(cluster).serve("", "v1", "pods").serve("example.com", "v1", "runs", "cluster:racks")
	}
	w := newWorld(t, serve())
	sources := func() string {
		var out []string
		for _, r := range w.tracker.Kinds().Referrers {
			out = append(out, r.Sources()...)
		}
		return strings.Join(out, " ")
	}
	expect := func(step, want, undiscovered string, stays ...*kinds.Referrer) {
		t.Helper()
		table := w.tracker.Kinds()
		if got := sources(); got != want || !strings.Contains(table.Undiscovered, undiscovered) || (table.Undiscovered == "") != (undiscovered == "") {
			t.Errorf("%s: %s may refer, %q", step, got, table.Undiscovered)
		}
		for _, r := range stays {
			if !slices.Contains(table.Referrers, r) {
				t.Errorf("%s: %s is another one", step, r.Resource())
			}
		}
	}
	const all = "pods racks.example.com runs.example.com"
	expect("before the first reading", "", "has not found out yet")
	w.Start(t.Context())
	w.changes(runs, 0)
	expect("at first", all, "")
	w.run()
	pods, racks, runs := w.tracker.Kinds().Referrers[0], w.tracker.Kinds().Referrers[1], w.tracker.Kinds().Referrers[2]

	lifecycles := w.own.GcV1alpha1().ResourceLifecycles()
	l := &v1alpha1.ResourceLifecycle{
		ObjectMeta: metav1.ObjectMeta{Name: racks.Resource(), UID: "uid", Generation: 1},
		Spec: v1alpha1.ResourceLifecycleSpec{References: []v1alpha1.LifecycleReference{{
			To: v1alpha1.ReferenceToSecrets, Names: "object.spec.key",
		}}},
	}
	if _, err := lifecycles.Create(t.Context(), l, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.changes("", 0)
	expect("declared", all, "", pods, runs)
	if slices.Contains(w.tracker.Kinds().Referrers, racks) {
		t.Error("the references are read as before")
	}
	if err := lifecycles.Delete(t.Context(), l.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.changes("", 0)
	expect("no longer declared", all, "", pods, runs)

	w.cluster.set(serve().serve("other.io", "v1", "builds").stale("other.io", "v1"))
	w.changes("", readEvery)
	expect("a new group fails", all, "other.io/v1", pods, runs)
	w.cluster.set(serve().serve("other.io", "v1", "builds"))
	w.changes("builds.other.io", readEvery)
	expect("the group recovers", "builds.other.io "+all, "", pods, runs)
	w.unchanged(w.cluster.set(serve().serve("other.io", "v1", "builds").stale("other.io", "v1")))
	expect("the group fails again", "builds.other.io "+all, "", pods, runs)
	w.cluster.set(&cluster{err: errors.New("no connection")})
	w.changes("", readEvery)
	expect("nothing can be read", "builds.other.io "+all, "no connection", pods, runs)
	w.cluster.set(new(cluster).serve("", "v1", "pods").serve("example.com", "v2", "runs"))
	w.changes("builds.other.io runs.example.com", readEvery)
	expect("another version", "pods runs.example.com", "", pods)
	if slices.Contains(w.tracker.Kinds().Referrers, runs) {
		t.Error("the runs are read in their former version")
	}
}

// TestDefinitionsThatChangeAllTheTime: what the cluster serves is read although definitions go on changing.
func TestDefinitionsThatChangeAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, new(cluster).serve("", "v1", "pods"))
		w.Follower.Clock = clock.RealClock{}
		w.run()
		synctest.Wait()
		before := w.cluster.set(w.cluster.now)
		for i := range 50 {
			w.define(fmt.Sprint("definition-", i))
			time.Sleep(readAfter[0] / 2)
		}
		if n := w.cluster.set(w.cluster.now) - before; n < 10 || n > 50 {
			t.Errorf("read %d times in five seconds", n)
		}
	})
}

// TestKindAfter: a lifecycle is tried on the resource that the cluster serves, in the version that is read.
func TestKindAfter(t *testing.T) {
	w := newWorld(t, new(cluster).serve("jobset.x-k8s.io", "v1alpha2", "jobsets").serve("example.com", "v1", "runs"))
	lifecycle := func(name string, generation int64) *gc.ResourceLifecycle {
		stored := runLifecycle(generation)
		stored.Name = name
		l, err := convert(stored)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	if k := w.KindAfter(gc.LifecycleChange{After: lifecycle(runs, 1)}); k != nil {
		t.Errorf("before there is a table: %+v", k)
	}
	if _, err := w.own.GcV1alpha1().ResourceLifecycles().Create(t.Context(), runLifecycle(1), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Start(t.Context())
	w.changes(jobsets+" "+runs, 0)
	for name, tc := range map[string]struct {
		before, after *gc.ResourceLifecycle
		want          string // the source of the kind; empty if there is none
		finishes      bool
	}{
		"another generation":        {lifecycle(runs, 1), lifecycle(runs, 2), "generation 2 of uid, served in example.com/v1", true},
		"the same generation":       {lifecycle(runs, 1), lifecycle(runs, 1), "", false},
		"deleted":                   {lifecycle(runs, 1), nil, "served in example.com/v1", false},
		"in place of a built-in":    {nil, lifecycle(jobsets, 1), "generation 1 of uid, served in jobset.x-k8s.io/v1alpha2", true},
		"deleted, built-in applies": {lifecycle(jobsets, 1), nil, "", false},
		"not served":                {nil, lifecycle("others.example.com", 1), "", false},
	} {
		k := w.KindAfter(gc.LifecycleChange{Before: tc.before, After: tc.after})
		if tc.want == "" && k != nil || tc.want != "" && (k == nil || k.Source.ID != tc.want || k.Finishes != tc.finishes) {
			t.Errorf("%s: got %+v, want %q, finishes: %t", name, k, tc.want, tc.finishes)
		}
	}
}

// TestALifecycleThatCannotBeConverted: the objects of its resource are held, whatever a built-in lifecycle says of them.
func TestALifecycleThatCannotBeConverted(t *testing.T) {
	w := newWorld(t, new(cluster).serve("jobset.x-k8s.io", "v1alpha2", "jobsets"))
	l := runLifecycle(1)
	l.Name = jobsets
	w.convert = func(*v1alpha1.ResourceLifecycle) (*gc.ResourceLifecycle, error) {
		return nil, errors.New("an unknown field")
	}
	if _, err := w.own.GcV1alpha1().ResourceLifecycles().Create(t.Context(), l, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Start(t.Context())
	w.changes(jobsets, 0)
	k, err := w.tracker.Kinds().For(jobsets)
	if err != nil {
		t.Fatal(err)
	}
	f, err := k.Fact(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b", UID: "c", ResourceVersion: "1"}})
	if err != nil || f.Failed != "ResourceLifecycle "+jobsets+": an unknown field" {
		t.Errorf("the object is not held: %+v, %v", f, err)
	}
	if c := w.acceptedOf(l); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "an unknown field") {
		t.Errorf("the condition is %+v", c)
	}
}

// TestStart: it ends once there is a table. Without the right to read what other servers serve, there are only Jobs and Pods.
func TestStart(t *testing.T) {
	w := newWorld(t, new(cluster).serve("jobset.x-k8s.io", "v1alpha2", "jobsets"))
	failures := 2
	w.services.PrependReactor("list", "apiservices", func(clienttesting.Action) (bool, runtime.Object, error) {
		failures--
		return failures >= 0, nil, errors.New("no connection")
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Start(t.Context())
	}()
	w.changes(jobsets, time.Second)
	<-done

	w = newWorld(t, new(cluster).serve("jobset.x-k8s.io", "v1alpha2", "jobsets"))
	w.services.PrependReactor("list", "apiservices", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(apiServices.GroupResource(), "", errors.New("no right"))
	})
	w.Start(t.Context())
	if w.tracker.Kinds() != kinds.Builtin() {
		t.Error("the table has changed")
	}
}

// TestConfirm: only lifecycles that the table was made with agree.
func TestConfirm(t *testing.T) {
	w := newWorld(t, new(cluster).serve("example.com", "v1", "runs"))
	if err := w.Confirm(nil); err != nil || len(w.own.Actions()) > 0 {
		t.Errorf("before there is a table: %v", err)
	}
	w.Start(t.Context())
	w.changes(runs, 0)
	confirm := func(step string, want error) {
		t.Helper()
		all, err := w.own.GcV1alpha1().ResourceLifecycles().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		present := map[types.NamespacedName]freshness.Revision{}
		for i := range all.Items {
			present[types.NamespacedName{Name: all.Items[i].Name}] = revision(&all.Items[i])
		}
		if err := w.Confirm(present); !errors.Is(err, want) {
			t.Errorf("%s: %v", step, err)
		}
	}
	lifecycles := w.own.GcV1alpha1().ResourceLifecycles()
	written := func(l *v1alpha1.ResourceLifecycle, err error) *v1alpha1.ResourceLifecycle {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	confirm("as it was", nil)
	l := written(lifecycles.Create(t.Context(), runLifecycle(1), metav1.CreateOptions{}))
	confirm("created", errLifecyclesChanged)
	observe := func() {
		t.Helper()
		if err := w.start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	observe()
	w.changes(runs, 0)
	confirm("created and seen", nil)
	l.Status.Conditions = []metav1.Condition{{Type: "Accepted"}}
	written(lifecycles.UpdateStatus(t.Context(), l, metav1.UpdateOptions{}))
	confirm("another status", nil)
	written(lifecycles.Update(t.Context(), runLifecycle(2), metav1.UpdateOptions{}))
	confirm("changed", errLifecyclesChanged)
	observe()
	w.changes(runs, 0)
	confirm("changed and seen", nil)
	if err := lifecycles.Delete(t.Context(), runs, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	confirm("deleted", errLifecyclesChanged)
}
