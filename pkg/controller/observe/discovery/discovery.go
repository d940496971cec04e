// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package discovery follows which resources the cluster serves, and the ResourceLifecycles, and gives the tracker the table of kinds that
// follows from both.
package discovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/metrics"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/observe/inorder"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	gcclient "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/typed/gc/v1alpha1"
)

// Config is what a Follower works with.
type Config struct {
	Reader Reader
	// Metadata watches CustomResourceDefinitions, whose changes say that the cluster may serve something else.
	Metadata metadata.Interface
	// Lifecycles reads the ResourceLifecycles, from this server itself.
	Lifecycles gcclient.ResourceLifecycleInterface
	Tracker    Tracker
	Clock      clock.Clock
	// WentBack is called if a consistent read shows that the store has gone back; StartAnew must follow. It may be called several times.
	WentBack func(error)
}

// Tracker takes in tables of kinds.
type Tracker interface {
	Kinds() *kinds.Table
	SetKinds(t *kinds.Table, now time.Time)
}

// Follower keeps the table of kinds of the tracker up to date.
type Follower struct {
	Config
	catalog    *kinds.Catalog
	lifecycles cache.Store
	// changed receives when a lifecycle has changed, and definitions when a CustomResourceDefinition has.
	changed, definitions chan struct{}
	anew                 chan string // receives when everything must be observed anew
	last                 atomic.Pointer[answer]
	// unread is why the last reading failed. Then there may be resources of which nothing is known.
	unread error
	// used are the lifecycles that the table of the tracker was made with; nil if it was made without discovery.
	used atomic.Pointer[map[types.NamespacedName]freshness.Revision]
	// convert converts a lifecycle; tests let it fail.
	convert func(*v1alpha1.ResourceLifecycle) (*gc.ResourceLifecycle, error)
}

// New returns a Follower, which Run starts.
func New(c Config) (*Follower, error) {
	catalog, err := kinds.NewCatalog()
	if err != nil {
		return nil, fmt.Errorf("the built-in lifecycles: %w", err)
	}
	return &Follower{
		Config: c, catalog: catalog, lifecycles: cache.NewStore(cache.MetaNamespaceKeyFunc),
		changed: make(chan struct{}, 1), definitions: make(chan struct{}, 1),
		anew: make(chan string, 1), convert: convert,
	}, nil
}

// readEvery is how often what the cluster serves is read if nothing says that it has changed. The garbage collector of Kubernetes does so
// as well.
const readEvery = 30 * time.Second

// readAfter says when it is read after a CustomResourceDefinition has changed. The API server serves a new resource, and says so, some time
// after its definition was written.
var readAfter = []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second}

// definitionsResource are the CustomResourceDefinitions.
var definitionsResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Start gives the tracker the first table, and retries until it can. It returns early if Winnow may not read what the cluster serves; then
// there are Jobs and Pods only. It must return before policies are observed, so that the first table is no change of theirs.
func (f *Follower) Start(ctx context.Context) {
	for delay := time.Second; ctx.Err() == nil; delay = min(2*delay, readEvery) {
		err := f.start(ctx)
		if err == nil {
			return
		}
		klog.FromContext(ctx).Error(err, "Cannot find out which resources there are")
		if apierrors.IsForbidden(err) {
			return
		}
		select {
		case <-ctx.Done():
		case <-f.Clock.After(delay):
		}
	}
}

func (f *Follower) start(ctx context.Context) error {
	all, err := f.Lifecycles.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing ResourceLifecycles: %w", err)
	}
	items := make([]any, len(all.Items))
	for i := range all.Items {
		items[i] = &all.Items[i]
	}
	if err := f.lifecycles.Replace(items, all.ResourceVersion); err != nil {
		return err
	}
	return f.read(ctx)
}

// Run keeps the table up to date until ctx ends.
func (f *Follower) Run(ctx context.Context) {
	var following sync.WaitGroup
	defer following.Wait()
	following.Go(func() { f.follow(ctx) })
	for ctx.Err() == nil {
		f.observe(ctx)
	}
}

// StartAnew has lifecycles and definitions listed anew, because the store has gone back.
func (f *Follower) StartAnew(why error) {
	select {
	case f.anew <- why.Error():
	default:
	}
}

// observe lists and watches lifecycles and definitions until ctx ends, or until that must begin anew.
func (f *Follower) observe(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var reflectors sync.WaitGroup
	defer reflectors.Wait()
	defer cancel()
	run := func(name string, lw cache.ListerWatcher, example any, store cache.ReflectorStore) {
		r := cache.NewReflectorWithOptions(lw, example, store, cache.ReflectorOptions{Name: name})
		reflectors.Go(func() { r.RunWithContext(ctx) })
	}
	lifecycles := inorder.New("resourcelifecycles", f.Clock, f.WentBack)
	run("resourcelifecycles", cache.ToListWatcherWithWatchListSemantics(lifecycles.ListWatch(
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return f.Lifecycles.List(ctx, o)
		}, f.Lifecycles.Watch,
	), f.Lifecycles), &v1alpha1.ResourceLifecycle{}, signalling{f.lifecycles, f.changed})
	resource := f.Metadata.Resource(definitionsResource)
	definitions := inorder.New("customresourcedefinitions", f.Clock, f.WentBack)
	run("customresourcedefinitions", cache.ToListWatcherWithWatchListSemantics(definitions.ListWatch(
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return resource.List(ctx, o) }, resource.Watch,
	), f.Metadata), &metav1.PartialObjectMetadata{}, signalling{cache.NewStore(cache.MetaNamespaceKeyFunc), f.definitions})
	select {
	case <-ctx.Done():
	case <-f.anew:
	}
}

// follow reads what the cluster serves from time to time and after each change of a CustomResourceDefinition.
func (f *Follower) follow(ctx context.Context) {
	var after []time.Duration
	timer := f.Clock.NewTimer(readEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.changed:
			f.update(ctx)
		case <-f.definitions:
			if first := readAfter[1:]; len(after) < len(first) { // Otherwise changes without end would put off the reading.
				after = first
				timer.Reset(readAfter[0])
			}
		case <-timer.C():
			if err := f.read(ctx); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Cannot find out which resources there are, so they stay as they were")
			}
			next := readEvery
			if len(after) > 0 {
				next, after = after[0], after[1:]
			}
			timer.Reset(next)
		}
	}
}

// read reads what the cluster serves. If that fails, the resources of the table stay as they were.
func (f *Follower) read(ctx context.Context) error {
	found, err := f.Reader.read(ctx, f.last.Load())
	if f.unread = err; err != nil {
		metrics.DiscoveryFailures.Inc()
		f.update(ctx)
		return err
	}
	for gv, err := range found.failed {
		metrics.DiscoveryFailures.Inc()
		klog.FromContext(ctx).Error(err, "The cluster does not say what a group has, so its resources stay as they were", "version", gv.String())
	}
	f.last.Store(found)
	f.update(ctx)
	return nil
}

// Served returns what the cluster says of a resource, as of the last reading.
func (f *Follower) Served(resource string) gc.ServedResource {
	found := f.last.Load()
	if found == nil {
		return gc.ServedResource{}
	}
	out := found.about(resource)
	if t := f.Tracker.Kinds(); out == (gc.ServedResource{}) {
		_, err := t.For(resource)
		out.Endless = err == nil && !t.Finishes(resource)
	}
	if out.Refusal == "" {
		out.TakesAlong = kinds.TakesAlong(resource)
	}
	return out
}

// KindAfter returns the kind that a resource gets by a change of its lifecycle; nil if the cluster does not serve the resource, or the kind
// stays as it is.
func (f *Follower) KindAfter(change gc.LifecycleChange) *kinds.Kind {
	found := f.last.Load()
	if found == nil {
		return nil
	}
	s, ok := found.find(change.Resource())
	if !ok {
		return nil
	}
	before := f.Tracker.Kinds()
	k := f.catalog.Kind(s, change.After, before)
	if present, err := before.For(k.Resource); err == nil && present == k {
		return nil
	}
	return k
}

// Schema returns the schema of a resource, without references; nil if the cluster does not serve the resource, or has no schema of it.
func (f *Follower) Schema(ctx context.Context, resource string) (*spec.Schema, error) {
	found := f.last.Load()
	if found == nil {
		return nil, nil
	}
	s, ok := found.findListed(resource)
	if !ok {
		return nil, nil
	}
	return schemaOf(ctx, f.Reader.Schemas, s.GroupVersionKind)
}

// observed returns the lifecycles as the watch last reported them.
func (f *Follower) observed() []*v1alpha1.ResourceLifecycle {
	all := f.lifecycles.List()
	out := make([]*v1alpha1.ResourceLifecycle, len(all))
	for i := range all {
		out[i] = all[i].(*v1alpha1.ResourceLifecycle)
	}
	return out
}

func convert(l *v1alpha1.ResourceLifecycle) (*gc.ResourceLifecycle, error) {
	out := &gc.ResourceLifecycle{}
	return out, v1alpha1.Convert_v1alpha1_ResourceLifecycle_To_gc_ResourceLifecycle(l, out, nil)
}

// unreadable returns a lifecycle without its spec. All objects of its resource are held: the built-in lifecycle is not what its author
// wants, and may say that objects have finished that still run.
func unreadable(stored *v1alpha1.ResourceLifecycle, why error) *gc.ResourceLifecycle {
	l := &gc.ResourceLifecycle{ObjectMeta: *stored.ObjectMeta.DeepCopy()}
	gc.MarkUnreadable(l, why)
	return l
}

// update gives the tracker the table, if it is not as before.
func (f *Follower) update(ctx context.Context) {
	found := f.last.Load()
	if found == nil {
		return // Winnow may not read what the cluster serves.
	}
	observed, used := f.observed(), map[types.NamespacedName]freshness.Revision{}
	for _, stored := range observed {
		used[types.NamespacedName{Name: stored.Name}] = revision(stored)
	}
	users := convertAll(ctx, observed, f.convert)
	before := f.Tracker.Kinds()
	undiscovered := found.undiscovered()
	if f.unread != nil {
		undiscovered = f.unread.Error()
	}
	table := f.catalog.Table(found.served, users, before).
		WithReferrers(f.catalog.Referrers(found.listed, users, before.Referrers), undiscovered)
	if changed := table.Changed(before); len(changed) > 0 {
		klog.FromContext(ctx).V(2).Info("Resources came, went or have another lifecycle", "resources", changed.UnsortedList())
		f.Tracker.SetKinds(table, f.Clock.Now())
	} else if !table.SameReferrers(before) {
		f.Tracker.SetKinds(table, f.Clock.Now())
	}
	f.used.Store(&used)
}

func revision(l *v1alpha1.ResourceLifecycle) freshness.Revision {
	return freshness.SpecRevision(l.UID, l.Generation)
}

// Confirm fails if the tracker does not have these lifecycles, so that nothing is deleted by a lifecycle that somebody has changed since.
func (f *Follower) Confirm(present map[types.NamespacedName]freshness.Revision) error {
	if used := f.used.Load(); used != nil && !maps.Equal(present, *used) {
		return errLifecyclesChanged
	}
	return nil
}

var errLifecyclesChanged = errors.New("the watch has not reported the newest ResourceLifecycles yet")

// signalling is a store that signals each change.
type signalling struct {
	cache.Store
	changed chan<- struct{}
}

func (s signalling) signal(err error) error {
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return err
}

// Add implements cache.ReflectorStore.
func (s signalling) Add(object any) error { return s.signal(s.Store.Add(object)) }

// Update implements cache.ReflectorStore.
func (s signalling) Update(object any) error { return s.signal(s.Store.Update(object)) }

// Delete implements cache.ReflectorStore.
func (s signalling) Delete(object any) error { return s.signal(s.Store.Delete(object)) }

// Replace implements cache.ReflectorStore.
func (s signalling) Replace(objects []any, resourceVersion string) error {
	return s.signal(s.Store.Replace(objects, resourceVersion))
}
