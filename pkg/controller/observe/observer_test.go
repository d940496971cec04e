// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/fakecluster"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/tracker"
	"github.com/winnow-dev/winnow/pkg/controller/write/marks"
	gcfake "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/fake"
	gcclient "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/typed/gc/v1alpha1"
)

// pagesOnly is the client of a fake clientset, which cannot stream lists.
type pagesOnly struct{ gcclient.GcV1alpha1Interface }

// IsWatchListSemanticsUnSupported implements an interface that client-go looks for.
func (pagesOnly) IsWatchListSemanticsUnSupported() bool { return true }

// observed is a running observer, and the cluster that it observes.
type observed struct {
	*testing.T
	*Observer
	Tracker  *tracker.Tracker
	cluster  *fakecluster.Cluster
	metadata *metadatafake.FakeMetadataClient
	policies gcclient.CleanupPolicyInterface
	gc       *gcfake.Clientset
	marks    *dynamicfake.FakeDynamicClient
	clock    *clocktesting.FakeClock
	versions int
}

func newObserved(t *testing.T, objects ...runtime.Object) *observed {
	return newObservedOf(t, fakecluster.New(objects...))
}

func newObservedOf(t *testing.T, cluster *fakecluster.Cluster) *observed {
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	o := &observed{
		T:        t,
		Tracker:  tracker.New(memory.Config{HoldAbove: -1, HoldAboveTotal: -1}, nil),
		cluster:  cluster,
		metadata: metadatafake.NewSimpleMetadataClient(scheme),
		gc:       gcfake.NewSimpleClientset(),
		marks: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(
			runtime.NewScheme(), map[schema.GroupVersionResource]string{marks.Resource: "UsageMarksList"}),
		clock: clocktesting.NewFakeClock(testbuilders.Now),
	}
	o.policies = o.gc.GcV1alpha1().CleanupPolicies(testbuilders.Home)
	client, err := NewClient(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	o.Observer = New(Config{
		Tracker: o.Tracker, Policies: pagesOnly{o.gc.GcV1alpha1()}, Stored: o.marks, Client: client,
		Metadata: o.metadata, Clock: o.clock, WentBack: func(err error) { t.Error(err) },
	})
	return o
}

// run runs the observer until the test ends, and creates a namespace.
func (o *observed) run() {
	o.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { o.Observer.Run(ctx) })
	o.Cleanup(func() {
		cancel()
		running.Wait()
	})
	o.until("policies and namespaces are watched", func() bool {
		return watches(&o.gc.Fake, "cleanuppolicies") > 0 && watches(&o.metadata.Fake, "namespaces") > 0 && o.Synced()
	})
	m := testbuilders.Namespace(testbuilders.Home, o.version())
	m.APIVersion, m.Kind = "v1", "Namespace"
	if _, err := o.metadata.Resource(namespaceResource).(metadatafake.MetadataClient).CreateFake(m, metav1.CreateOptions{}); err != nil {
		o.Fatal(err)
	}
}

// until waits for a condition that other goroutines make true.
func (o *observed) until(what string, condition func() bool) {
	o.Helper()
	err := wait.PollUntilContextTimeout(context.Background(), time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		o.Fatalf("timed out: %s", what)
	}
}

func watches(f *clienttesting.Fake, resource string) (n int) {
	for _, action := range f.Actions() {
		if action.Matches("watch", resource) {
			n++
		}
	}
	return n
}

// watched waits until the resources are watched, for the nth time.
func (o *observed) watched(n int, resources ...string) {
	o.Helper()
	o.until(strings.Join(resources, " and ")+" are watched", func() bool {
		return !slices.ContainsFunc(resources, func(r string) bool { return o.watches(r) < n })
	})
}

// watches returns how many watches of a resource in all namespaces were started.
func (o *observed) watches(resource string) (n int) {
	for _, r := range o.cluster.Requests(resource) {
		if r.Options.Watch && r.Namespace == "" {
			n++
		}
	}
	return n
}

func (o *observed) tracks(n int) {
	o.Helper()
	o.until("so many objects are tracked", func() bool { return o.Tracker.Totals(testbuilders.Now).Objects == n })
}

// version returns a resource version that is newer than all before.
func (o *observed) version() string {
	o.versions++
	return strconv.Itoa(100 + o.versions)
}

func (o *observed) create(b *testbuilders.PolicyBuilder) {
	o.Helper()
	b.Version(o.version())
	p := &v1alpha1.CleanupPolicy{}
	if err := v1alpha1.Convert_gc_CleanupPolicy_To_v1alpha1_CleanupPolicy(b.Obj(), p, nil); err != nil {
		o.Fatal(err)
	}
	if _, err := o.gc.GcV1alpha1().CleanupPolicies(p.Namespace).Create(context.Background(), p, metav1.CreateOptions{}); err != nil {
		o.Fatal(err)
	}
}

// delete deletes a policy. A fake removes it in the version that it had, so that must be the newest.
func (o *observed) delete(policy string) {
	o.Helper()
	p, err := o.policies.Get(context.Background(), policy, metav1.GetOptions{})
	if err != nil {
		o.Fatal(err)
	}
	p.ResourceVersion = o.version()
	if _, err := o.policies.Update(context.Background(), p, metav1.UpdateOptions{}); err != nil {
		o.Fatal(err)
	}
	if err := o.policies.Delete(context.Background(), policy, metav1.DeleteOptions{}); err != nil {
		o.Fatal(err)
	}
}

// due returns how many objects are due according to the report of a policy.
func (o *observed) due(policy string) int64 {
	for _, r := range o.Tracker.Reports(testbuilders.Home) {
		if r.Stored.Name == policy {
			return r.Due
		}
	}
	return -1
}

func TestObservesWhatPoliciesName(t *testing.T) {
	t.Run("lists are streamed", func(t *testing.T) { testObservesWhatPoliciesName(t, false) })
	t.Run("lists come in pages", func(t *testing.T) { testObservesWhatPoliciesName(t, true) })
}

func testObservesWhatPoliciesName(t *testing.T, pagesOnly bool) {
	cluster := fakecluster.New(
		testbuilders.Job("a").Complete(testbuilders.Now).Obj(),
		testbuilders.Job("of-cron").Complete(testbuilders.Now).ControlledBy("batch/v1", "CronJob", "c").Obj(),
		testbuilders.CronJob("c", "of-cron"),
		testbuilders.Pod("b").Succeeded(testbuilders.Now).Obj(),
		testbuilders.Job("elsewhere").In("team-b").Complete(testbuilders.Now).Obj(),
	)
	cluster.PagesOnly = pagesOnly
	o := newObservedOf(t, cluster)
	o.run()
	if n := o.watches("jobs"); n != 0 {
		t.Error("Jobs are watched, but no policy names them")
	}
	o.create(testbuilders.Policy("p").Rules(testbuilders.Rule("r", "0s").For(gc.ResourceJobs)))
	o.watched(1, "jobs", "cronjobs")
	o.tracks(2)
	o.until("the Job without a CronJob is due", func() bool { return o.due("p") == 1 })
	if n := o.watches("pods"); n != 0 {
		t.Error("Pods are watched, but no policy names them")
	}
	o.create(testbuilders.Policy("q").Rules(testbuilders.Rule("r", "0s").For(gc.ResourcePods)))
	o.watched(1, "pods")
	o.tracks(3)

	o.cluster.Set(testbuilders.Job("new").Obj())
	o.tracks(4)
	o.cluster.Set(testbuilders.Job("new").Complete(testbuilders.Now).Obj())
	o.until("the new Job is due", func() bool { return o.due("p") == 2 })
	o.cluster.Set(testbuilders.CronJob("c"))
	o.until("the Job of the CronJob is due", func() bool { return o.due("p") == 3 })
	o.cluster.Delete(testbuilders.Job("new").Obj())
	o.tracks(3)
	o.cluster.Delete(testbuilders.CronJob("c"))
	o.until("the Job of the CronJob is left to its owner", func() bool { return o.due("p") == 1 })
}

func TestStopsAndStartsWithTheCoverage(t *testing.T) {
	o := newObserved(
		t,
		testbuilders.Job("a").Complete(testbuilders.Now).ControlledBy("batch/v1", "CronJob", "c").Obj(),
		testbuilders.CronJob("c"),
	)
	o.run()
	o.create(testbuilders.Policy("p").Default("0s"))
	o.watched(1, "jobs", "cronjobs", "pods")
	o.until("the Job is due", func() bool { return o.due("p") == 1 })
	o.delete("p")
	o.until("nothing is watched any more", func() bool {
		return o.cluster.Watches("jobs")+o.cluster.Watches("cronjobs")+o.cluster.Watches("pods") == 0
	})
	o.create(testbuilders.Policy("p").Default("0s"))
	o.watched(2, "jobs", "cronjobs", "pods")
	o.until("the Job is due", func() bool { return o.due("p") == 1 })
}

// TestListsANamespaceBesideTheWatch: if the watch has passed over a namespace, a policy there causes a list of the namespace in pages,
// until that succeeds. Its objects are newer than the list of all namespaces, which may end later.
func TestListsANamespaceBesideTheWatch(t *testing.T) {
	o := newObserved(t, testbuilders.Job("a").Complete(testbuilders.Now).Obj())
	var mu sync.Mutex
	var listed []metav1.ListOptions
	failures := 1
	o.cluster.React(func(r fakecluster.Request) (runtime.Object, error) {
		if r.Namespace != "team-b" {
			return nil, nil
		}
		if r.Resource == "jobs" {
			return &batchv1.JobList{Items: []batchv1.Job{*testbuilders.Job("z").In("team-b").Version("5").Obj()}}, nil
		}
		mu.Lock()
		defer mu.Unlock()
		if failures > 0 {
			failures--
			return nil, errors.New("not now")
		}
		listed = append(listed, r.Options)
		if r.Options.Continue == "" {
			return &corev1.PodList{
				ListMeta: metav1.ListMeta{Continue: "next"},
				Items:    []corev1.Pod{*testbuilders.Pod("x").In("team-b").Version("5").Obj()},
			}, nil
		}
		return &corev1.PodList{Items: []corev1.Pod{*testbuilders.Pod("y").In("team-b").Version("5").Obj()}}, nil
	})
	o.run()
	o.create(testbuilders.Policy("p").Default("0s"))
	o.watched(1, "jobs", "pods")
	o.tracks(1)
	o.create(testbuilders.Policy("p").In("team-b").Default("0s"))
	o.until("the list waits for its next attempt", o.clock.HasWaiters)
	o.clock.Step(time.Second)
	o.tracks(4)
	mu.Lock()
	defer mu.Unlock()
	if len(listed) != 2 || listed[0].Limit != firstPage || listed[0].Continue != "" || listed[0].ResourceVersion != "" ||
		listed[1].Continue != "next" {
		t.Errorf("listed %+v", listed)
	}
	if n := o.watches("pods"); n != 1 {
		t.Errorf("Pods are watched %d times", n)
	}
}

// forbid makes the API server answer requests for a resource with an error, until allow is called.
func (o *observed) forbid(resource string, err error) (allow func()) {
	var forbidden atomic.Bool
	forbidden.Store(true)
	o.cluster.React(func(r fakecluster.Request) (runtime.Object, error) {
		if r.Resource == resource && forbidden.Load() {
			return nil, err
		}
		return nil, nil
	})
	return func() { forbidden.Store(false) }
}

func TestReportsErrors(t *testing.T) {
	o := newObserved(t, testbuilders.Pod("b").Succeeded(testbuilders.Now).Obj())
	allow := o.forbid("jobs", errors.New("no right to list jobs"))
	const want = "jobs.batch cannot be observed: no right to list jobs. Missing permission: kubectl auth can-i list jobs.batch " +
		"--all-namespaces, or watch. To grant it: kubectl create clusterrole winnow:jobs.batch --verb=get,list,watch,delete " +
		"--resource=jobs.batch && kubectl label clusterrole winnow:jobs.batch gc.winnow.dev/aggregate-to-winnow=true " +
		"(it takes effect once artifacts/optional/more-resources.yaml is applied; if policies delete as ServiceAccounts, use " +
		"impersonate-on:serviceaccount:get,impersonate-on:serviceaccount:delete instead of delete)"
	o.run()
	o.create(testbuilders.Policy("p").Rules(testbuilders.Rule("r", "0s").For(gc.ResourcePods)))
	o.until("the report says why the policy deletes nothing", func() bool {
		reports := o.Tracker.Reports(testbuilders.Home)
		return len(reports) == 1 && reports[0].Unobserved == want && reports[0].Held == 1
	})
	allow()
	o.until("the policy deletes again", func() bool {
		reports := o.Tracker.Reports(testbuilders.Home)
		return reports[0].Unobserved == "" && reports[0].Held == 0 && reports[0].Due == 1
	})
}

// TestReportsErrorsOfQuotas: they are in the reports of policies with a percentage of a quota.
func TestReportsErrorsOfQuotas(t *testing.T) {
	o := newObserved(t)
	allow := o.forbid("resourcequotas", errors.New("no right to list quotas"))
	o.run()
	o.create(testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h").For(gc.ResourceJobs).KeepingPercent(50)))
	doubt := func() string {
		reports := o.Tracker.Reports(testbuilders.Home)
		return reports[0].QuotaDoubt
	}
	o.until("the report says why the policy deletes nothing", func() bool {
		return len(o.Tracker.Reports(testbuilders.Home)) == 1 && doubt() == "resourcequotas cannot be observed: no right to list quotas"
	})
	allow()
	o.until("the policy deletes again", func() bool { return doubt() == "" })
}

// TestQuotasAreTrustedAfterAnEvent: after an error, quotas are trusted only after an event or a bookmark, because a successful call alone
// brings nothing new. Every bookmark counts, however soon it follows another.
func TestQuotasAreTrustedAfterAnEvent(t *testing.T) {
	o := newObserved(t)
	p := testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h").For(gc.ResourceJobs).KeepingPercent(50)).Obj()
	o.Tracker.SetNamespace(testbuilders.Namespace(testbuilders.Home, "1"), testbuilders.Now)
	o.Tracker.SetPolicy(p, testbuilders.Now)
	call, sink := o.reportErrors(kinds.ResourceQuotas), o.quotaSink()
	trusted := func() bool { return o.Tracker.Reports(testbuilders.Home)[0].QuotaDoubt == "" }
	for version := range 2 {
		call(t.Context(), errors.New("connection refused"))
		if call(t.Context(), nil); trusted() {
			t.Fatal("trusted once a call succeeded")
		}
		if err := sink.Bookmark(strconv.Itoa(version)); err != nil || !trusted() {
			t.Fatal("not trusted after a bookmark", err)
		}
	}
	o.Tracker.Expire(testbuilders.Now.Add(freshness.StaleAfter - 1))
	if !trusted() {
		t.Error("not trusted after a short silence")
	}
	o.Tracker.Expire(testbuilders.Now.Add(freshness.StaleAfter))
	if trusted() {
		t.Error("trusted after a long silence")
	}
	if err := sink.Bookmark("9"); err != nil || !trusted() {
		t.Error("not trusted after a bookmark", err)
	}
}

func TestObservesPoliciesAndNamespaces(t *testing.T) {
	o := newObserved(t, testbuilders.Job("a").Complete(testbuilders.Now).Obj())
	o.run()
	o.create(testbuilders.Policy("p").Default("0s"))
	o.until("the Job is due", func() bool { return o.due("p") == 1 })
	var longer v1alpha1.CleanupPolicy
	changed := testbuilders.Policy("p").Default("1h").Generation(2).Version(o.version()).Obj()
	if err := v1alpha1.Convert_gc_CleanupPolicy_To_v1alpha1_CleanupPolicy(changed, &longer, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := o.policies.Update(context.Background(), &longer, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	o.until("the Job is not due any more", func() bool { return o.due("p") == 0 })
	namespaces := o.metadata.Resource(namespaceResource).(metadatafake.MetadataClient)
	protected := testbuilders.Namespace(testbuilders.Home, o.version(), gc.LabelProtected, "true")
	protected.APIVersion, protected.Kind = "v1", "Namespace"
	if _, err := namespaces.UpdateFake(protected, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	closed := func() string { return string(o.Tracker.Reports(testbuilders.Home)[0].Excluded) }
	o.until("the namespace is protected", func() bool { return closed() == "NamespaceProtected" })
	if err := namespaces.Delete(context.Background(), testbuilders.Home, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	o.until("the namespace is removed", func() bool { return closed() == "NamespaceUnknown" })
}
