// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

func (e *simulation) indexOf(uid types.UID) int {
	return slices.IndexFunc(e.Objects, func(f *lifecycle.Fact) bool { return f.UID == uid })
}

// object creates, changes or removes an object.
func (e *simulation) object(t *rapid.T) {
	n := rapid.IntRange(0, model.DrawnObjects-1).Draw(t, "object")
	i := e.indexOf(model.DrawnUID(n))
	if i >= 0 && rapid.IntRange(0, 4).Draw(t, "delete") == 0 {
		e.deleted(t, e.Objects[i].UID)
		e.watch(t)
		return
	}
	f := model.DrawObject(t, e.Now, n)
	e.next()
	f.ResourceVersion, e.usages[f.UID] = uint64(e.version), f.Usage
	if i >= 0 {
		f.Created, f.Terminating = e.Objects[i].Created, f.Terminating || e.Objects[i].Terminating
		e.Objects[i] = f
	} else {
		e.Objects = append(e.Objects, f)
		e.both(func(t *driver) { e.setRecreated(t, f) })
	}
	e.both(func(t *driver) { t.Upsert(t.observed(f), e.Now) })
	e.clearDue()
}

// deleted is called after Winnow or somebody else deleted an object. Either the object is removed, or it waits for a finalizer. The
// follower observes this at once, and the leader when its watch delivers it. Until then, the leader only knows which deletes it has sent.
func (e *simulation) deleted(t *rapid.T, uid types.UID) {
	i := e.indexOf(uid)
	if f := e.Objects[i]; f.Terminating || rapid.IntRange(0, 2).Draw(t, "gone") == 0 {
		e.remove(f)
		return
	}
	f := *e.Objects[i]
	e.next()
	f.ResourceVersion, f.Terminating, f.Finalizers = uint64(e.version), true, []string{"example.com/hold"}
	e.Objects[i] = &f
	e.follower.Upsert(e.follower.observed(&f), e.Now)
	if rapid.Bool().Draw(t, "seen") {
		e.leader.Upsert(e.leader.observed(&f), e.Now)
	}
}

// watch makes the leader observe all objects that are being deleted.
func (e *simulation) watch(*rapid.T) {
	for _, f := range e.Objects {
		if f.Terminating {
			e.leader.Upsert(e.leader.observed(f), e.Now)
		}
	}
	e.clearDue()
}

// finalizers removes all objects that are being deleted.
func (e *simulation) finalizers(*rapid.T) {
	for _, f := range slices.Clone(e.Objects) {
		if f.Terminating {
			e.remove(f)
		}
	}
}

// remove removes an object. Named tests check objects that are recreated too often.
func (e *simulation) remove(f *lifecycle.Fact) {
	e.Objects = slices.Delete(e.Objects, e.indexOf(f.UID), e.indexOf(f.UID)+1)
	e.forgetCounted(f.UID)
	e.both(func(t *driver) {
		t.Remove(facts.Compress(f), e.Now)
		t.Recreations = knowledge.NewRecreations()
		for _, f := range e.Objects {
			e.setRecreated(t, f)
		}
	})
	e.clearDue()
}

func (e *simulation) policy(t *rapid.T) {
	ns := rapid.SampledFrom(model.DrawnNamespaces).Draw(t, "namespace")
	name := rapid.SampledFrom(model.DrawnPolicies).Draw(t, "name")
	i := slices.IndexFunc(e.Policies, func(p *gc.CleanupPolicy) bool { return p.Namespace == ns && p.Name == name })
	p := model.DrawPolicy(t, ns, name)
	p.ResourceVersion = e.next()
	switch {
	case i < 0:
		p.UID += types.UID("-" + p.ResourceVersion)
		e.Policies = append(e.Policies, p)
	case rapid.IntRange(0, 3).Draw(t, "delete") == 0:
		removed := e.Policies[i].DeepCopy()
		removed.ResourceVersion = p.ResourceVersion
		e.both(func(t *driver) { t.RemovePolicy(removed, e.Now) })
		e.Policies = slices.Delete(e.Policies, i, i+1)
		e.changed(simChange{})
		return
	default:
		p.UID, p.Generation = e.Policies[i].UID, e.Policies[i].Generation+1
		e.Policies[i] = p
	}
	e.both(func(t *driver) { t.SetPolicy(p, e.Now) })
	e.changed(simChange{})
}

func (e *simulation) clusterPolicy(t *rapid.T) {
	name := rapid.SampledFrom(model.DrawnClusterPolicies).Draw(t, "name")
	i := slices.IndexFunc(e.ClusterPolicies, func(p *gc.ClusterCleanupPolicy) bool { return p.Name == name })
	p := model.DrawClusterPolicy(t, name)
	p.ResourceVersion = e.next()
	switch {
	case i < 0:
		p.UID += types.UID("-" + p.ResourceVersion)
		e.ClusterPolicies = append(e.ClusterPolicies, p)
	case rapid.IntRange(0, 3).Draw(t, "delete") == 0:
		uid := e.ClusterPolicies[i].UID
		removed := e.ClusterPolicies[i].DeepCopy()
		removed.ResourceVersion = p.ResourceVersion
		e.both(func(t *driver) { t.RemoveClusterPolicy(removed, e.Now) })
		e.ClusterPolicies = slices.Delete(e.ClusterPolicies, i, i+1)
		e.changed(simChange{wide: uid})
		return
	default:
		p.UID, p.Generation = e.ClusterPolicies[i].UID, e.ClusterPolicies[i].Generation+1
		e.ClusterPolicies[i] = p
	}
	e.both(func(t *driver) { t.SetClusterPolicy(p, e.Now) })
	e.changed(simChange{wide: p.UID})
}

func (e *simulation) setNamespace(t *driver, name string, version string) {
	t.SetNamespace(e.namespaceOf(t, name, version), e.Now)
}

// namespaceOf returns the metadata of a namespace, and tells an engine whether a flag protects the namespace.
func (e *simulation) namespaceOf(t *driver, name, version string) *metav1.PartialObjectMetadata {
	m, ns := testbuilders.Namespace(name, version), e.Namespaces[name]
	m.Labels = labels.Merge(m.Labels, ns.Labels)
	if ns.Protected {
		t.Protected.Insert(name)
	} else {
		t.Protected.Delete(name)
	}
	if ns.Terminating {
		m.DeletionTimestamp = &m.CreationTimestamp
	}
	return m
}

// listNamespaces makes an engine list all namespaces.
func (e *simulation) listNamespaces(t *driver) {
	var all []*metav1.PartialObjectMetadata
	for _, name := range slices.Sorted(maps.Keys(e.Namespaces)) {
		all = append(all, e.namespaceOf(t, name, e.next()))
	}
	t.ReplaceNamespaces(all, e.next(), e.Now)
}

func (e *simulation) namespace(t *rapid.T) {
	name := rapid.SampledFrom(model.DrawnNamespaces).Draw(t, "namespace")
	if e.known(name) && rapid.IntRange(0, 9).Draw(t, "remove") == 5 {
		delete(e.Namespaces, name)
		m := testbuilders.Namespace(name, e.next())
		e.both(func(t *driver) {
			t.Protected.Delete(name) // As with a replica that starts now.
			t.RemoveNamespace(m, e.Now)
		})
		e.changed(simChange{})
		return
	}
	e.Namespaces[name] = model.DrawNamespace(t)
	version := e.next()
	e.both(func(t *driver) { e.setNamespace(t, name, version) })
	e.changed(simChange{})
}

func (e *simulation) quota(t *rapid.T) {
	ns := rapid.SampledFrom(model.DrawnNamespaces).Draw(t, "namespace")
	name := rapid.SampledFrom(model.DrawnQuotas).Draw(t, "name")
	i := slices.IndexFunc(e.Quotas, func(q *corev1.ResourceQuota) bool { return q.Namespace == ns && q.Name == name })
	q := model.DrawQuota(t, ns, name)
	q.ResourceVersion = e.next()
	switch {
	case i < 0:
		e.Quotas = append(e.Quotas, q)
	case rapid.IntRange(0, 2).Draw(t, "delete") == 0:
		e.Quotas = slices.Delete(e.Quotas, i, i+1)
		e.both(func(t *driver) { t.RemoveQuota(memory.QuotaOf(q), e.Now) })
		e.changed(simChange{})
		return
	default:
		e.Quotas[i] = q
	}
	e.both(func(t *driver) { t.SetQuota(memory.QuotaOf(q), e.Now) })
	e.changed(simChange{})
}

func (e *simulation) cronJob(t *rapid.T) {
	ns := rapid.SampledFrom(model.DrawnNamespaces).Draw(t, "namespace")
	name := rapid.SampledFrom(model.DrawnCronJobs).Draw(t, "name")
	cj := model.DrawCronJob(t, ns, name)
	i := slices.IndexFunc(e.CronJobs, func(c *lifecycle.CronJob) bool { return c.UID == cj.UID })
	gone := false
	switch {
	case i < 0:
		e.CronJobs = append(e.CronJobs, cj)
	case rapid.IntRange(0, 2).Draw(t, "delete") == 0:
		e.CronJobs = slices.Delete(e.CronJobs, i, i+1)
		gone = true
	default:
		e.CronJobs[i] = cj
	}
	switch {
	case rapid.Bool().Draw(t, "by a list"):
		e.both(func(t *driver) { t.ReplaceCronJobs(e.CronJobs, e.Now) })
	case gone:
		e.both(func(t *driver) { t.RemoveCronJob(cj.UID, e.Now) })
	default:
		e.both(func(t *driver) { t.SetCronJob(cj, e.Now) })
	}
	e.clearDue()
}
