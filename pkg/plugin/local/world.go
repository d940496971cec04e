// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/pager"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/observe"
	"github.com/winnow-dev/winnow/pkg/controller/observe/decode"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/tracker"
)

// Drafts are policies that are not stored. Each counts as if its mode were Enforce, and takes the place of a stored one of the same name.
type Drafts struct {
	Policies        []*gc.CleanupPolicy
	ClusterPolicies []*gc.ClusterCleanupPolicy
}

// Empty reports whether there are none.
func (d *Drafts) Empty() bool { return len(d.Policies)+len(d.ClusterPolicies) == 0 }

// Options says what a World is read for.
type Options struct {
	// Namespace is empty for all namespaces.
	Namespace string
	Drafts    Drafts
	// Resources are listed besides those that policies are about. If it is nil, all that can finish are.
	Resources []string
	// Listed is told how many objects were listed, and how many remain, page by page. It may be nil.
	Listed func(resource string, listed int, remaining int64)
	Now    time.Time
}

// World is what a cluster has, as it was listed once.
type World struct {
	*setting
	options   Options
	inventory *inventory
	cronJobs  []*batchv1.CronJob
	quotas    []*memory.Quota
	objects   map[string][]*facts.Compact // by resource, for all that were listed
	unlisted  map[string]error            // by resource
	// returned are the objects that the server holds because they come back after each deletion. Only it remembers deletions.
	returned sets.Set[types.UID]
	// referring is what objects refer to, if policies depend on that; nil otherwise. unreferred are the resources that the caller may not
	// list.
	referring  map[*kinds.Referrer][]knowledge.Referring
	unreferred map[*kinds.Referrer]error
	// governed says that any policy or draft is about any of these namespaces.
	governed bool
	decided  func() *tracker.Tracker
}

// Read lists everything that decisions depend on. Resources that the caller may not list are left out; see Notes.
func (c *Cluster) Read(ctx context.Context, o Options) (*World, error) {
	s, err := c.read(ctx, o.Namespace)
	if err != nil {
		return nil, err
	}
	w := newWorld(s, o)
	w.readReturned(ctx, c)
	return w, w.readObjects(ctx, clusterObjects{c, c.objects})
}

// source has the objects of a World: a cluster, or manifests.
type source interface {
	May(ctx context.Context, verb string, resource schema.GroupResource, namespace string) (bool, error)
	Pages(ctx context.Context, r decode.Reading, namespace string, add func(observe.Page)) error
	EachPage(
		ctx context.Context, r decode.Reading, namespace, fieldSelector string, do func(runtime.Object, metav1.ListInterface) error,
	) error
	EachReferring(ctx context.Context, k *kinds.Referrer, namespace string, do func([]knowledge.Referring)) error
}

// clusterObjects are the objects of a cluster.
type clusterObjects struct {
	*Cluster
	*observe.Client
}

func newWorld(s *setting, o Options) *World {
	w := &World{setting: s, options: o, inventory: newInventory(), objects: map[string][]*facts.Compact{}, unlisted: map[string]error{}}
	w.decided = sync.OnceValue(w.decide)
	return w
}

// readObjects lists the objects that decisions depend on.
func (w *World) readObjects(ctx context.Context, from source) error {
	probe := w.newTracker() // It says what the policies are about.
	w.addDrafts(probe)
	resources := sets.KeySet(probe.Coverage())
	w.governed = len(resources) > 0
	if w.options.Resources == nil {
		resources.Insert(w.kinds.Finishing()...)
	}
	resources.Insert(w.options.Resources...)
	resources.Insert(w.kinds.Needing()...) // They decide on what they control.
	if resources.Has(gc.ResourceJobs) {
		resources.Insert(kinds.CronJobs)
	}
	if err := w.list(ctx, from, sets.List(resources), probe.Conditions); err != nil || !resources.Has(kinds.Referrers) {
		return err
	}
	return w.listReferrers(ctx, from)
}

// readReturned asks the server what it holds because it comes back. Without stored policies there may be no server.
func (w *World) readReturned(ctx context.Context, c *Cluster) {
	w.returned = sets.New[types.UID]()
	if len(w.policies)+len(w.clusterPolicies) == 0 {
		return
	}
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return c.policies.CleanupCandidates(w.options.Namespace).List(ctx, options)
	})
	err := pages.EachListItem(ctx, metav1.ListOptions{FieldSelector: "state=" + string(gc.CandidateHeld)}, func(object runtime.Object) error {
		if held, ok := object.(*v1alpha1.CleanupCandidate); ok && held.Status.Reason == string(policy.ReasonRecreateLoop) {
			w.returned.Insert(types.UID(held.Name))
		}
		return nil
	})
	if err != nil {
		w.note("what comes back after each deletion counts like other objects, because the server does not say what it holds: %v", err)
	}
}

var errMayNotList = errors.New("you may not list them")

// listsAtOnce is how many resources are listed concurrently.
const listsAtOnce = 4

// list lists resources, until the first failure that is not about a permission.
func (w *World) list(
	ctx context.Context, from source, resources []string, conditions func(resource string) map[string]*lifecycle.Conditions,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var lock sync.Mutex
	var group sync.WaitGroup
	slots := make(chan struct{}, listsAtOnce)
	for _, resource := range resources {
		kind, err := w.kinds.For(resource)
		if err != nil {
			continue // The cluster does not serve it, so there are no objects.
		}
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			may, err := from.May(ctx, "list", schema.ParseGroupResource(resource), w.options.Namespace)
			switch {
			case err != nil:
			case may:
				err = w.listOne(ctx, from, decode.NewReading(kind, conditions), &lock)
			default:
				lock.Lock()
				defer lock.Unlock()
				w.unlisted[resource] = errMayNotList
			}
			if err != nil {
				cancel(fmt.Errorf("listing %s: %w", resource, err))
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// listOne lists one resource.
func (w *World) listOne(ctx context.Context, from source, r decode.Reading, lock sync.Locker) error {
	if r.Kind.Deletable() {
		return from.Pages(ctx, r, w.options.Namespace, func(p observe.Page) {
			lock.Lock()
			defer lock.Unlock()
			w.objects[r.Kind.Resource] = append(w.objects[r.Kind.Resource], p.Facts...)
			w.inventory.add(w.kinds, p)
			if w.options.Listed != nil {
				w.options.Listed(r.Kind.Resource, len(p.Facts), p.Remaining)
			}
		})
	}
	return from.EachPage(ctx, r, w.options.Namespace, "", func(page runtime.Object, _ metav1.ListInterface) error {
		lock.Lock()
		defer lock.Unlock()
		return apimeta.EachListItem(page, func(object runtime.Object) error {
			switch object := object.(type) {
			case *batchv1.CronJob:
				w.cronJobs = append(w.cronJobs, object)
			case *corev1.ResourceQuota:
				w.quotas = append(w.quotas, memory.QuotaOf(object))
			}
			return nil
		})
	})
}

// Notes say what could not be read.
func (w *World) Notes() []string {
	out := slices.Clone(w.notes)
	for _, resource := range sets.List(sets.KeySet(w.unlisted)) {
		out = append(out, fmt.Sprintf("%s are not counted, because you may not list them: kubectl auth can-i list %s %s",
			resource, resource, inNamespace(w.options.Namespace)))
	}
	return out
}

// Blind returns an error if there are resources to list, and the caller may list none of them.
func (w *World) Blind() error {
	if len(w.objects) > 0 || len(w.unlisted) == 0 {
		return nil
	}
	return fmt.Errorf("there is nothing to report, because you may not list %s %s; the role view allows it",
		strings.Join(sets.List(sets.KeySet(w.unlisted)), ", "), gc.InNamespace(w.options.Namespace))
}

// inNamespace returns the flag of kubectl for one namespace, or all.
func inNamespace(namespace string) string {
	if namespace == "" {
		return "--all-namespaces"
	}
	return "-n " + namespace
}

// Defaults of the flags of the server, and its own namespace.
const (
	holdAbove, holdAboveTotal = 1000, 5000
	ownNamespace              = "winnow-system"
)

// newTracker returns a tracker with the setting and no objects.
func (s *setting) newTrackerAt(now time.Time) *tracker.Tracker {
	t := tracker.New(memory.Config{Protected: []string{ownNamespace}, HoldAbove: holdAbove, HoldAboveTotal: holdAboveTotal}, nil)
	t.SetKinds(s.kinds, now)
	for _, resource := range s.kinds.Deletable() {
		kind, _ := s.kinds.For(resource)
		t.StartObserving(kind)
	}
	t.ReplaceNamespaces(s.namespaces, "1", now)
	t.ReplaceClusterPolicies(s.clusterPolicies, "1", now)
	t.ReplacePolicies(s.policies, "1", now)
	if s.marks == nil { // Only Winnow may read those of a cluster.
		t.MarksUnavailable(now)
	} else {
		t.ReplaceMarks(s.marks, now)
	}
	return t
}

func (w *World) newTracker() *tracker.Tracker { return w.newTrackerAt(w.options.Now) }

// decide returns a tracker that has decided for every object by the stored policies, and then by the drafts too.
func (w *World) decide() *tracker.Tracker {
	t := w.newTracker()
	w.addObjects(t)
	if w.addDrafts(t) {
		w.addObjects(t) // Objects that no stored policy covers were dropped.
	}
	return t
}

// addDrafts writes the drafts, and reports whether there are any.
func (w *World) addDrafts(t *tracker.Tracker) bool {
	for _, p := range w.options.Drafts.ClusterPolicies {
		t.SetClusterPolicy(w.clusterDraft(p), w.options.Now)
	}
	for _, p := range w.options.Drafts.Policies {
		t.SetPolicy(w.draft(p), w.options.Now)
	}
	return !w.options.Drafts.Empty()
}

// addObjects adds all objects that policies cover now, so that the tracker decides for them.
func (w *World) addObjects(t *tracker.Tracker) {
	now := w.options.Now
	cronJobs := make([]*lifecycle.CronJob, len(w.cronJobs))
	for i, cj := range w.cronJobs {
		cronJobs[i] = lifecycle.FromCronJob(cj)
	}
	t.ReplaceCronJobs(cronJobs, now)
	t.ReplaceQuotas(w.quotas, now)
	for resource, err := range w.unlisted {
		t.Observing(resource, err, now.Add(-time.Hour)) // As if it had failed for long, so that nothing waits for it.
		t.Observing(resource, err, now)
	}
	w.addReferrers(t)
	// An object may have an owner of a resource that was not covered before.
	for added := sets.New[string](); ; {
		next := sets.KeySet(t.Coverage()).Difference(added)
		if next.Len() == 0 {
			break
		}
		for _, resource := range sets.List(next) {
			w.addList(t, resource)
		}
		added = added.Union(next)
	}
	for t.Step(now) {
	}
	if w.permitted {
		grantRights(t, now)
	}
}

// grantRights gives ServiceAccounts all rights that decisions depend on.
func grantRights(t *tracker.Tracker, now time.Time) {
	const atOnce = 100
	for asked := t.RightsToAsk(atOnce); len(asked) > 0; asked = t.RightsToAsk(atOnce) {
		for _, right := range asked {
			t.SetRight(right, "", now)
		}
		for t.Step(now) {
		}
	}
}

// addList adds all objects of a resource, if they were listed.
func (w *World) addList(t *tracker.Tracker, resource string) {
	objects, listed := w.objects[resource]
	if !listed {
		return
	}
	for _, k := range objects {
		if w.returned.Has(k.UID()) {
			t.SetReturned(k)
		}
	}
	l := t.BeginList(resource)
	l.Add(slices.Clone(objects), w.options.Now)
	l.End(0, w.options.Now)
}

// Objects returns all listed objects.
func (w *World) Objects() iter.Seq[*facts.Compact] {
	return func(yield func(*facts.Compact) bool) {
		for _, resource := range sets.List(sets.KeySet(w.objects)) {
			for _, k := range w.objects[resource] {
				if !yield(k) {
					return
				}
			}
		}
	}
}

// Governed reports whether any policy or draft is about any of the namespaces.
func (w *World) Governed() bool { return w.governed }
