// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// TestEngine holds the engine, which remembers and moves what a change touches, against the model, which counts all anew: after
// each of many random changes of objects, owners, policies of both kinds, labels, quotas, annotations, clocks and leaders
// they must agree on every decision, on its time, and on the order of deletions.
func TestEngine(t *testing.T) {
	testbuilders.Checks(t, 150)
	testbuilders.Steps(t, 60)
	rapid.Check(t, func(t *rapid.T) { newEngine(t).run(t) })
}

// simulation is an engine beside the world that it is told of, and another one that follows it.
type simulation struct {
	*model.World
	leader, follower *driver
	// alike says that the follower has seen all that the holds of today rest on.
	alike bool
	// undue are the objects that waited under a hold, and were not due, when that one started: for it they did not wait.
	undue   sets.Set[types.UID]
	version int
	slice   int // of the engines, in objects; 0 for any number
	// cleared are the objects that are due and need no approval; under are the holds that others wait under.
	cleared map[types.UID]bool
	under   map[types.UID]*simHold
	holds   []*simHold
	// recent is what changes made due lately, by namespace and by the UID of a cluster policy.
	recent map[string][]simAssessed
	rules  map[string]string // what ruled each namespace when it was last assessed
	// limitsBefore are those of each namespace then.
	limitsBefore map[string]simLimits
	clockLies    bool
	paces        map[string]*simPace
}

// holdAboveByDefault and holdAboveTotalByDefault are low, so that worlds of a few objects have holds.
const (
	holdAboveByDefault      = 4
	holdAboveTotalByDefault = 7
)

func newEngine(t *rapid.T) *simulation {
	e := &simulation{
		World: model.Draw(t), cleared: map[types.UID]bool{}, under: map[types.UID]*simHold{}, recent: map[string][]simAssessed{},
		rules: map[string]string{}, limitsBefore: map[string]simLimits{}, paces: map[string]*simPace{},
	}
	e.slice = rapid.SampledFrom([]int{0, 3, 1}).Draw(t, "slice")
	e.leader = e.start()
	e.follow()
	e.assess(simChange{start: true})
	return e
}

// each does something with both engines.
func (e *simulation) each(do func(*driver)) {
	do(e.leader)
	do(e.follower)
}

// rest lets an engine judge what it has put off.
func (e *simulation) rest(t *driver) {
	for t.Step(e.Now) {
	}
}

func (e *simulation) run(t *rapid.T) {
	t.Repeat(map[string]func(*rapid.T){
		"object":         e.object,
		"object again":   e.object,
		"policy":         e.policy,
		"cluster policy": e.clusterPolicy,
		"namespace":      e.namespace,
		"quota":          e.quota,
		"cron job":       e.cronJob,
		"time":           e.time,
		"clock":          e.clock,
		"approve":        e.approve,
		"relist":         e.relist,
		"another leader": e.succeed,
		"work":           e.work,
		"work again":     e.work,
		"watch":          e.watch,
		"finalizers":     e.finalizers,
		"":               e.agrees,
	})
}

func (e *simulation) next() string {
	e.version++
	return strconv.Itoa(e.version)
}

func (e *simulation) list(t *driver, resource string) {
	var facts []*lifecycle.Fact
	for _, f := range e.Objects {
		if f.Resource == resource {
			facts = append(facts, f)
		}
	}
	t.Replace(resource, kept(facts...), uint64(e.version), e.Now)
}

// cover does what an observer does: it lists what is newly covered.
func (e *simulation) cover() { e.each(e.coverOne) }

func (e *simulation) coverOne(t *driver) {
	e.rest(t)
	for resource, namespaces := range t.Coverage() {
		for name := range namespaces {
			if resource == kinds.ResourceQuotas || t.namespaces[name].listed[resource] == namespaces[name] {
				continue
			}
			m := t.BeginMerge(resource, name)
			for _, f := range e.Objects {
				if f.Resource == resource && f.Namespace == name {
					e.leader.add(m, kept(f), e.Now)
				}
			}
			m.End(true, e.Now)
		}
	}
}

// remember has an engine know the name of an object as one that came back too often, or not at all.
func (e *simulation) remember(t *driver, f *lifecycle.Fact) {
	name := nameOf(facts.Compress(f))
	t.recreations.names.Remove(name)
	if e.Recreated[f.UID] {
		t.recreations.names.Add(name, returnCount{deleted: f.Created.Add(-time.Minute), times: maxReturns, last: "another"})
	}
}

func (e *simulation) indexOf(uid types.UID) int {
	return slices.IndexFunc(e.Objects, func(f *lifecycle.Fact) bool { return f.UID == uid })
}

// object makes, changes or removes one.
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
	f.ResourceVersion = uint64(e.version)
	if i >= 0 {
		f.Created, f.Terminating = e.Objects[i].Created, f.Terminating || e.Objects[i].Terminating
		e.Objects[i] = f
	} else {
		e.Objects = append(e.Objects, f)
		e.each(func(t *driver) { e.remember(t, f) })
	}
	e.each(func(t *driver) { t.Upsert(facts.Compress(f), e.Now) })
	e.settle()
}

// deleted is after somebody deleted an object, Winnow or another. It is gone, or waits for a finalizer, which the replica that follows
// sees at once, and the leader when its watch gets to it. Until then it knows what it has deleted itself.
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
	e.follower.Upsert(facts.Compress(&f), e.Now)
	if rapid.Bool().Draw(t, "seen") {
		e.leader.Upsert(facts.Compress(&f), e.Now)
	}
}

// watch has the leader see all objects that are being deleted.
func (e *simulation) watch(*rapid.T) {
	for _, f := range e.Objects {
		if f.Terminating {
			e.leader.Upsert(facts.Compress(f), e.Now)
		}
	}
	e.settle()
}

// finalizers ends what all those wait for that are being deleted.
func (e *simulation) finalizers(*rapid.T) {
	for _, f := range slices.Clone(e.Objects) {
		if f.Terminating {
			e.remove(f)
		}
	}
}

// remove has an object go. That it may come back too often is told by named tests.
func (e *simulation) remove(f *lifecycle.Fact) {
	e.Objects = slices.Delete(e.Objects, e.indexOf(f.UID), e.indexOf(f.UID)+1)
	e.each(func(t *driver) {
		t.Remove(facts.Compress(f), e.Now)
		t.recreations = newRecreations()
		for _, f := range e.Objects {
			e.remember(t, f)
		}
	})
	e.settle()
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
		e.each(func(t *driver) { t.RemovePolicy(e.Policies[i], e.Now) })
		e.Policies = slices.Delete(e.Policies, i, i+1)
		e.changed(simChange{})
		return
	default:
		p.UID, p.Generation = e.Policies[i].UID, e.Policies[i].Generation+1
		e.Policies[i] = p
	}
	e.each(func(t *driver) { t.SetPolicy(p, e.Now) })
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
		e.each(func(t *driver) { t.RemoveClusterPolicy(e.ClusterPolicies[i], e.Now) })
		e.ClusterPolicies = slices.Delete(e.ClusterPolicies, i, i+1)
		e.changed(simChange{wide: uid})
		return
	default:
		p.UID, p.Generation = e.ClusterPolicies[i].UID, e.ClusterPolicies[i].Generation+1
		e.ClusterPolicies[i] = p
	}
	e.each(func(t *driver) { t.SetClusterPolicy(p, e.Now) })
	e.changed(simChange{wide: p.UID})
}

func (e *simulation) tellNamespace(t *driver, name string, version string) {
	t.SetNamespace(e.namespaceOf(t, name, version), e.Now)
}

// namespaceOf is the metadata of a namespace, of which an engine learns whether a flag protects it.
func (e *simulation) namespaceOf(t *driver, name, version string) *metav1.PartialObjectMetadata {
	m, ns := testbuilders.Namespace(name, version), e.Namespaces[name]
	m.Labels = labels.Merge(m.Labels, ns.Labels)
	if ns.Protected {
		t.protected.Insert(name)
	} else {
		t.protected.Delete(name)
	}
	if ns.Terminating {
		m.DeletionTimestamp = &m.CreationTimestamp
	}
	return m
}

// listNamespaces has an engine read all of them.
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
		e.each(func(t *driver) {
			t.protected.Delete(name) // As with a replica that starts now.
			t.RemoveNamespace(m, e.Now)
		})
		e.changed(simChange{})
		return
	}
	e.Namespaces[name] = model.DrawNamespace(t)
	version := e.next()
	e.each(func(t *driver) { e.tellNamespace(t, name, version) })
	e.adopt(name)
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
		e.each(func(t *driver) { t.RemoveQuota(QuotaOf(q), e.Now) })
		e.changed(simChange{})
		return
	default:
		e.Quotas[i] = q
	}
	e.each(func(t *driver) { t.SetQuota(QuotaOf(q), e.Now) })
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
		e.each(func(t *driver) { t.ReplaceCronJobs(e.CronJobs, e.Now) })
	case gone:
		e.each(func(t *driver) { t.RemoveCronJob(cj.UID, e.Now) })
	default:
		e.each(func(t *driver) { t.SetCronJob(cj, e.Now) })
	}
	e.settle()
}

func (e *simulation) time(t *rapid.T) {
	e.Now = e.Now.Add(rapid.SampledFrom([]time.Duration{
		time.Second, time.Millisecond, 30 * time.Second, time.Minute, 9 * time.Minute, time.Hour,
	}).Draw(t, "passes"))
	e.each(func(t *driver) {
		for t.Expire(e.Now) {
		}
	})
	e.settle()
}

// clock has the API server tell another time, or the right one again.
func (e *simulation) clock(*rapid.T) {
	e.clockLies = !e.clockLies
	e.read()
	e.settle()
}

// read agrees with what is there.
func (e *simulation) read() {
	r := freshness.ConsistentRead{Began: e.Now, ServerTime: e.Now}
	if e.clockLies {
		r.ServerTime = e.Now.Add(time.Hour)
	}
	e.next()
	for _, contents := range []*freshness.Contents{&r.Policies, &r.ClusterPolicies, &r.Namespaces} {
		contents.Version = strconv.Itoa(e.version)
	}
	e.each(func(t *driver) {
		t.ObservePolicies(strconv.Itoa(e.version))
		t.ObserveClusterPolicies(strconv.Itoa(e.version))
		t.ObserveNamespaces(strconv.Itoa(e.version))
		t.ConfirmFresh(r, e.Now)
	})
}

// relist starts the watch of a resource over.
func (e *simulation) relist(t *rapid.T) {
	resource := rapid.SampledFrom([]string{gc.ResourceJobs, gc.ResourcePods}).Draw(t, "resource")
	e.each(func(t *driver) { e.list(t, resource) })
	e.settle()
}
