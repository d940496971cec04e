// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe lists and watches what decisions depend on, reduces each object as it arrives, and passes it to the tracker. It does not
// store objects.
package observe

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/observe/decode"
	"github.com/winnow-dev/winnow/pkg/controller/observe/inorder"
	gcclient "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/typed/gc/v1alpha1"
)

var namespaceResource = corev1.SchemeGroupVersion.WithResource("namespaces")

// Config is what an Observer works with.
type Config struct {
	Tracker Tracker
	// Assessments takes in the stored assessments.
	Assessments AssessmentsTracker
	// Policies reads the policies, from this server itself. Stored reads what Winnow itself stores, such as marks. Client and
	// Metadata read everything else.
	Policies gcclient.GcV1alpha1Interface
	Stored   dynamic.Interface
	Client   *Client
	Metadata metadata.Interface
	Clock    clock.Clock
	// WentBack is called if a consistent read shows that the store of the cluster has gone back; StartAnew must follow. It may be called
	// several times.
	WentBack func(error)
	// FirstLists is called with true when the first list of the objects of a resource begins, and with false when that list, and those that
	// have begun meanwhile, have ended or failed. It may be nil.
	FirstLists func(underWay bool)
}

// Observer feeds the tracker. It always watches policies, namespaces, marks and assessments. It watches a resource only while a policy
// names it, and also the owners of its objects: Jobs with Pods, and CronJobs with Jobs. It watches quotas while a limit is a share of one.
type Observer struct {
	Config
	synced       [3]atomic.Bool // policies, cluster policies, namespaces
	always       always
	relist       chan struct{}
	anew         chan string
	dependencies map[string]dependency
	running      map[string]*reflection
	referrers    referrers
	first        firstLists
	pace         *pacer
}

// dependency is a resource that is observed because decisions on other resources depend on it, and that is never deleted. All other
// resources are reduced to facts.
type dependency struct {
	observing func(context.Context, error)
	sink      func() cache.ReflectorStore
	forget    func()
}

// reflection is the running reflector of a resource, with the reflectors of the owners that policies cannot name.
type reflection struct {
	kind *kinds.Kind // nil if the resource is not in the table, so that no reflector runs
	// reading is what the reflector reads.
	reading decode.Reading
	owners  []*kinds.Kind
	ctx     context.Context
	cancel  context.CancelFunc
	done    sync.WaitGroup
	// reporting is locked while the tracker is told about referrers, and when ctx is canceled.
	reporting sync.Mutex
	// covered are the namespaces whose objects the reflector has listed, or a merge.
	covered map[string]memory.Covering
	// late are the namespaces whose objects are listed because match conditions have waited there.
	late lateLists
}

// New returns an Observer, which Run starts.
func New(c Config) *Observer {
	o := &Observer{
		Config: c, running: map[string]*reflection{}, referrers: referrers{running: map[*kinds.Referrer]*reflection{}},
		first:  firstLists{changed: c.FirstLists},
		always: always{orders: map[string]*inorder.Order{}}, relist: make(chan struct{}, 1), anew: make(chan string, 1),
		pace: newPacer(c.Clock),
	}
	o.dependencies = map[string]dependency{
		kinds.CronJobs: {
			observing: o.reportObserving(kinds.CronJobs),
			sink:      func() cache.ReflectorStore { return o.cronJobSink() },
			forget:    func() { o.Tracker.ForgetCronJobs(o.Clock.Now()) },
		},
		kinds.ResourceQuotas: {
			observing: o.reportErrors(kinds.ResourceQuotas),
			sink:      func() cache.ReflectorStore { return o.quotaSink() },
			forget:    func() { o.Tracker.ForgetQuotas(o.Clock.Now()) },
		},
	}
	return o
}

// Synced reports whether policies and namespaces were listed.
func (o *Observer) Synced() bool {
	return o.synced[0].Load() && o.synced[1].Load() && o.synced[2].Load()
}

// Run observes until ctx ends, and returns after all reflectors have ended.
func (o *Observer) Run(ctx context.Context) {
	o.startAlways(ctx)
	defer o.stopAlways()
	defer o.stopAll()
	var rereads sync.WaitGroup
	defer rereads.Wait()
	rereads.Go(func() { o.rereads(ctx) })
	for {
		table, coverage := o.Tracker.Kinds(), o.Tracker.Coverage()
		o.coverReferrers(ctx, table, len(coverage[kinds.Referrers]) > 0)
		delete(coverage, kinds.Referrers)
		o.cover(ctx, table, coverage)
		var again <-chan time.Time
		if o.referrers.table != nil && table.Undiscovered != "" {
			again = o.Clock.After(undiscoveredEvery)
		}
		select {
		case <-ctx.Done():
			return
		case <-o.Tracker.CoverageChanged():
		case <-o.pace.changed:
		case <-again:
		case <-o.relist:
			o.relistNow(ctx)
		case why := <-o.anew:
			o.observeAnew(ctx, why)
		}
	}
}

// runReflector runs a reflector in the group until ctx ends. If example is nil, objects may have any type.
func runReflector(
	ctx context.Context, group *sync.WaitGroup, name string, lw cache.ListerWatcher, example any, store cache.ReflectorStore,
) {
	r := cache.NewReflectorWithOptions(lw, example, store, cache.ReflectorOptions{Name: name, TypeDescription: name})
	group.Go(func() { r.RunWithContext(ctx) })
}

// cover starts and stops reflectors, and lists what the running ones have skipped, so that the tracker has the objects of every namespace
// that a policy covers. The reflector of a kind that has changed in the table starts again.
func (o *Observer) cover(ctx context.Context, table *kinds.Table, coverage map[string]map[string]memory.Covering) {
	for resource, r := range o.running {
		if k, _ := table.For(resource); len(coverage[resource]) == 0 || k != r.kind {
			o.stop(resource, r)
		}
	}
	for resource, namespaces := range coverage {
		r, ok := o.running[resource]
		if !ok {
			o.running[resource] = o.start(ctx, table, resource, namespaces)
			continue
		}
		o.extend(ctx, resource, r, namespaces)
	}
}

// mergeMost is the largest number of namespaces that are listed one by one. For more of them the reflector is started again, because one
// list of all namespaces costs less.
const mergeMost = 20

// extend lists the objects of newly covered namespaces, which the running reflector has skipped. The reflector of a dependency skips none.
func (o *Observer) extend(ctx context.Context, resource string, r *reflection, namespaces map[string]memory.Covering) {
	var added []string
	for ns, covering := range namespaces {
		if r.covered[ns] != covering {
			added = append(added, ns)
		}
	}
	r.covered = namespaces
	o.listLate(resource, r)
	_, skipsNone := o.dependencies[resource]
	switch {
	case skipsNone:
	case len(added) > mergeMost, r.kind != nil && !r.reading.Suffices():
		// No watch runs until the new list ends, so the resource may count as stale.
		r.end()
		r.ctx, r.cancel = context.WithCancel(ctx)
		o.startReflectors(r)
	case r.kind != nil:
		for _, ns := range added {
			r.done.Go(func() { o.merge(r.ctx, r.kind, ns) })
		}
	}
}

func (o *Observer) start(ctx context.Context, table *kinds.Table, resource string, namespaces map[string]memory.Covering) *reflection {
	r := &reflection{covered: namespaces}
	r.ctx, r.cancel = context.WithCancel(ctx)
	if r.kind, _ = table.For(resource); r.kind != nil {
		r.owners = table.ObservedOwners(resource)
		o.startReflectors(r)
	}
	return r
}

func (o *Observer) startReflectors(r *reflection) {
	o.Tracker.StartObserving(r.kind)
	r.reading = o.pace.inTurn(decode.NewReading(r.kind, o.Tracker.Conditions))
	o.startReflector(r, r.reading)
	for _, owner := range r.owners {
		o.startReflector(r, decode.NewReading(owner, o.Tracker.Conditions))
	}
}

// startReflector starts the reflector of one kind.
func (o *Observer) startReflector(r *reflection, reading decode.Reading) {
	k, list, watch := reading.Kind, o.Client.Lister(reading, metav1.NamespaceAll), o.Client.Watcher(reading)
	if d, ok := o.dependencies[k.Resource]; ok {
		runReflector(r.ctx, &r.done, k.Resource, newListWatch(o.order(k.Resource), list, watch, d.observing), k.New(), d.sink())
		return
	}
	stream := o.newListStream(k, list, watch)
	stream.pages = o.Client.pages
	r.done.Go(func() {
		var reflector sync.WaitGroup
		runReflector(r.ctx, &reflector, k.Resource, stream.listWatch(), nil, o.factSink(k, stream))
		reflector.Wait()
		stream.stop()
		stream.listed()
	})
}

// end stops the reflectors and waits for them, so that none of their events comes after an event of the next reflectors.
func (r *reflection) end() {
	r.cancel()
	r.done.Wait()
}

// stop ends the reflectors of a resource that nothing needs any more, and makes the tracker forget owners and quotas, which would become
// out of date.
func (o *Observer) stop(resource string, r *reflection) {
	r.end()
	delete(o.running, resource)
	o.forget(resource)
	for _, owner := range r.owners {
		o.forget(owner.Resource)
	}
}

// forget tells the tracker that a resource is no longer observed.
func (o *Observer) forget(resource string) {
	o.Tracker.Unheard(resource)
	if d, ok := o.dependencies[resource]; ok {
		d.forget()
	}
}

func (o *Observer) stopAll() {
	o.stopReferrers(func(*kinds.Referrer) bool { return true })
	for resource, r := range o.running {
		o.stop(resource, r)
	}
}

// merge lists the objects of one namespace, and retries until it succeeds. When a policy first covers a namespace, the running watch has
// already skipped its objects.
func (o *Observer) merge(ctx context.Context, k *kinds.Kind, namespace string) {
	merge := o.Tracker.BeginMerge(k.Resource, namespace)
	complete := false
	defer func() { merge.End(complete, o.Clock.Now()) }()
	list, retry := o.Client.Lister(o.pace.alone(ctx, decode.NewReading(k, o.Tracker.Conditions)), namespace), time.Second
	for ctx.Err() == nil {
		_, err := eachReduced(ctx, o.Client.pages, list, pageSize, reducing(k), func(page []*facts.Compact) { merge.Add(page, o.Clock.Now()) })
		if complete = err == nil; complete {
			return
		}
		klog.FromContext(ctx).
			Error(err, "Cannot list the objects of a namespace, trying again", "resource", k.Resource, "namespace", namespace)
		select {
		case <-ctx.Done():
		case <-o.Clock.After(retry):
		}
		retry = min(2*retry, time.Minute)
	}
}
