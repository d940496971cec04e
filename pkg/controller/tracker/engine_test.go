// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/internal/given"
	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// TestEngine holds the tracker, which remembers and moves what a change touches, against the model, which counts all anew: after
// each of many random changes of objects, owners, policies of both kinds, labels, quotas, annotations, clocks and leaders
// they must agree on every decision, on its time, and on the order of deletions.
func TestEngine(t *testing.T) {
	given.Checks(150)
	given.Steps(60)
	rapid.Check(t, func(t *rapid.T) { newEngine(t).run(t) })
}

// TestNamedCases has the tracker answer each named case of the documentation.
func TestNamedCases(t *testing.T) {
	cases, err := model.Cases()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			e := &engine{World: c.World, weighed: map[types.UID]bool{}, held: map[model.PolicyInNamespace]bool{}, rules: map[string]string{}}
			e.startWith(Config{HoldAbove: -1})
			for _, f := range c.World.Objects {
				got := model.Answer{Action: model.Ignore}
				if rec := e.tracker.records.get(f.UID); rec != nil {
					got = answerOf(rec.resolution(), rec.decision())
				}
				want := c.Answers[f.UID]
				if want.At.IsZero() {
					got.At = time.Time{}
				}
				if got.Action != want.Action || got.Action != model.Ignore && got != want {
					t.Errorf("%s: got %+v, want %+v", f.Name, got, want)
				}
			}
		})
	}
}

// engine is a tracker beside the world that it is told of.
type engine struct {
	*model.World
	tracker *Tracker
	version int
	slice   int // of the tracker
	// weighed are the objects that are due and need no approval; held are the policies that wait for one.
	weighed   map[types.UID]bool
	held      map[model.PolicyInNamespace]bool
	rules     map[string]string // what ruled each namespace when it was last weighed
	clockLies bool
}

// holdAboveByDefault is low, so that worlds of a few objects have holds.
const holdAboveByDefault = 4

func newEngine(t *rapid.T) *engine {
	e := &engine{World: model.Draw(t), weighed: map[types.UID]bool{}, held: map[model.PolicyInNamespace]bool{}, rules: map[string]string{}}
	e.slice = rapid.SampledFrom([]int{slice, 3, 1}).Draw(t, "slice")
	e.start()
	e.weigh()
	return e
}

// rest lets the tracker judge what it has put off.
func (e *engine) rest() {
	for e.tracker.CatchUp(e.Now) {
	}
}

func (e *engine) run(t *rapid.T) {
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
		"another leader": func(*rapid.T) { e.succeed() },
		"work":           e.work,
		"":               e.agrees,
	})
}

func (e *engine) next() string {
	e.version++
	return strconv.Itoa(e.version)
}

// start makes a tracker that has read the world as it is.
func (e *engine) start() { e.startWith(Config{HoldAbove: holdAboveByDefault}) }

func (e *engine) startWith(c Config) {
	e.tracker = New(c)
	if e.slice > 0 {
		e.tracker.slice = e.slice
	}
	e.tracker.ReplaceNamespaces(nil, "", e.Now)
	e.version += len(e.Objects) + 1
	for name, ns := range e.Namespaces {
		e.tellNamespace(name, ns)
	}
	e.tracker.ReplacePolicies(e.Policies, e.next(), e.Now)
	e.tracker.ReplaceClusterPolicies(e.ClusterPolicies, e.next(), e.Now)
	e.tracker.ReplaceCronJobs(e.CronJobs, e.Now)
	var quotas []*Quota
	for _, q := range e.Quotas {
		quotas = append(quotas, QuotaOf(q))
	}
	e.tracker.ReplaceQuotas(quotas, e.Now)
	for _, f := range e.Objects {
		e.remember(f)
	}
	e.list(gc.ResourceJobs)
	e.list(gc.ResourcePods)
	e.rest()
}

// succeed has another replica take over: it knows what is stored, and of holds what the status of policies says.
func (e *engine) succeed() {
	e.writeStatus()
	e.start()
	e.tracker.Lead(e.Now)
	if e.clockLies {
		e.read()
	}
	for _, name := range model.DrawnNamespaces {
		e.rules[name] = e.rulesOf(name)
	}
	clear(e.weighed) // Whoever takes over knows what is due, not since when.
	e.settle()
}

// writeStatus does what a leader does now and then.
func (e *engine) writeStatus() {
	e.rest()
	byUID := map[types.UID][]gc.PolicyHold{}
	for _, ns := range e.tracker.namespaces {
		for uid, h := range ns.holds {
			byUID[uid] = append(byUID[uid], gc.PolicyHold{ID: h.id, Namespace: ns.name, Why: h.why})
		}
	}
	for i, p := range e.Policies {
		e.Policies[i] = p.DeepCopy()
		e.Policies[i].Status = gc.CleanupPolicyStatus{ObservedGeneration: p.Generation, Holds: byUID[p.UID]}
		e.tracker.SetPolicy(e.Policies[i], e.Now)
	}
	for i, p := range e.ClusterPolicies {
		e.ClusterPolicies[i] = p.DeepCopy()
		e.ClusterPolicies[i].Status = gc.CleanupPolicyStatus{ObservedGeneration: p.Generation, Holds: byUID[p.UID]}
		e.tracker.SetClusterPolicy(e.ClusterPolicies[i], e.Now)
	}
}

func (e *engine) list(resource string) {
	var facts []*lifecycle.Fact
	for _, f := range e.Objects {
		if f.Resource == resource {
			facts = append(facts, f)
		}
	}
	e.tracker.Replace(resource, kept(facts...), uint64(e.version), e.Now)
}

// cover does what an observer does: it lists what is newly covered.
func (e *engine) cover() {
	e.rest()
	for resource, namespaces := range e.tracker.Coverage() {
		for name := range namespaces {
			if resource == ResourceQuotas || e.tracker.namespaces[name].listed[resource] == namespaces[name] {
				continue
			}
			m := e.tracker.BeginMerge(resource, name)
			for _, f := range e.Objects {
				if f.Resource == resource && f.Namespace == name {
					m.Add(kept(f), e.Now)
				}
			}
			m.End(true, e.Now)
		}
	}
}

// remember has the tracker know the name of an object as one that came back too often, or not at all.
func (e *engine) remember(f *lifecycle.Fact) {
	name := nameOf(facts.Keep(f))
	e.tracker.recreated.names.Remove(name)
	if e.Recreated[f.UID] {
		e.tracker.recreated.names.Add(name, returns{deleted: f.Created.Add(-time.Minute), times: recreateMost, last: "another"})
	}
}

func (e *engine) indexOf(uid types.UID) int {
	return slices.IndexFunc(e.Objects, func(f *lifecycle.Fact) bool { return f.UID == uid })
}

// object makes, changes or removes one.
func (e *engine) object(t *rapid.T) {
	n := rapid.IntRange(0, model.DrawnObjects-1).Draw(t, "object")
	i := e.indexOf(model.DrawnUID(n))
	if i >= 0 && rapid.IntRange(0, 4).Draw(t, "remove") == 0 {
		e.remove(e.Objects[i])
		return
	}
	f := model.DrawObject(t, e.Now, n)
	e.next()
	f.ResourceVersion = uint64(e.version)
	if i >= 0 {
		f.Created = e.Objects[i].Created
		e.Objects[i] = f
	} else {
		e.Objects = append(e.Objects, f)
		e.remember(f)
	}
	e.tracker.Upsert(facts.Keep(f), e.Now)
	e.settle()
}

func (e *engine) remove(f *lifecycle.Fact) {
	e.Objects = slices.Delete(e.Objects, e.indexOf(f.UID), e.indexOf(f.UID)+1)
	e.tracker.Remove(facts.Keep(f), e.Now)
	e.settle()
}

func (e *engine) policy(t *rapid.T) {
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
		e.tracker.RemovePolicy(e.Policies[i], e.Now)
		e.Policies = slices.Delete(e.Policies, i, i+1)
		delete(e.held, model.PolicyInNamespace{Policy: model.PolicyRef{Namespace: ns, Name: name}, Namespace: ns})
		e.changed()
		return
	default:
		p.UID, p.Generation = e.Policies[i].UID, e.Policies[i].Generation+1
		e.Policies[i] = p
	}
	e.tracker.SetPolicy(p, e.Now)
	e.changed(model.PolicyRef{Namespace: ns, Name: name})
}

func (e *engine) clusterPolicy(t *rapid.T) {
	name := rapid.SampledFrom(model.DrawnClusterPolicies).Draw(t, "name")
	i := slices.IndexFunc(e.ClusterPolicies, func(p *gc.ClusterCleanupPolicy) bool { return p.Name == name })
	p := model.DrawClusterPolicy(t, name)
	p.ResourceVersion = e.next()
	switch {
	case i < 0:
		p.UID += types.UID("-" + p.ResourceVersion)
		e.ClusterPolicies = append(e.ClusterPolicies, p)
	case rapid.IntRange(0, 3).Draw(t, "delete") == 0:
		e.tracker.RemoveClusterPolicy(e.ClusterPolicies[i], e.Now)
		e.ClusterPolicies = slices.Delete(e.ClusterPolicies, i, i+1)
		maps.DeleteFunc(e.held, func(key model.PolicyInNamespace, _ bool) bool { return key.Policy == model.PolicyRef{Name: name} })
		e.changed()
		return
	default:
		p.UID, p.Generation = e.ClusterPolicies[i].UID, e.ClusterPolicies[i].Generation+1
		e.ClusterPolicies[i] = p
	}
	e.tracker.SetClusterPolicy(p, e.Now)
	e.changed(model.PolicyRef{Name: name})
}

func (e *engine) tellNamespace(name string, ns model.Namespace) {
	m := given.Namespace(name, e.next())
	m.Labels = labels.Merge(m.Labels, ns.Labels)
	if ns.Protected {
		e.tracker.protected.Insert(name)
	} else {
		e.tracker.protected.Delete(name)
	}
	if ns.Terminating {
		m.DeletionTimestamp = &m.CreationTimestamp
	}
	e.tracker.SetNamespace(m, e.Now)
}

func (e *engine) namespace(t *rapid.T) {
	name := rapid.SampledFrom(model.DrawnNamespaces).Draw(t, "namespace")
	if _, ok := e.Namespaces[name]; ok && rapid.IntRange(0, 9).Draw(t, "remove") == 5 {
		delete(e.Namespaces, name)
		e.tracker.RemoveNamespace(given.Namespace(name, e.next()), e.Now)
		e.changed()
		return
	}
	_, known := e.Namespaces[name]
	if !known {
		e.writeStatus() // What it says is taken over for the new one.
	}
	e.Namespaces[name] = model.DrawNamespace(t)
	e.tellNamespace(name, e.Namespaces[name])
	if !known { // What is there when a namespace is first seen was there before: nobody has changed it.
		e.cover()
		e.rules[name] = e.rulesOf(name)
		e.settle()
		return
	}
	e.changed()
}

func (e *engine) quota(t *rapid.T) {
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
		e.tracker.RemoveQuota(QuotaOf(q), e.Now)
		e.changed()
		return
	default:
		e.Quotas[i] = q
	}
	e.tracker.SetQuota(QuotaOf(q), e.Now)
	e.changed()
}

func (e *engine) cronJob(t *rapid.T) {
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
		e.tracker.ReplaceCronJobs(e.CronJobs, e.Now)
	case gone:
		e.tracker.RemoveCronJob(cj.UID, e.Now)
	default:
		e.tracker.SetCronJob(cj, e.Now)
	}
	e.settle()
}

func (e *engine) time(t *rapid.T) {
	e.Now = e.Now.Add(rapid.SampledFrom([]time.Duration{
		time.Second, time.Millisecond, 30 * time.Second, time.Minute, 9 * time.Minute, time.Hour,
	}).Draw(t, "passes"))
	for at, ok := e.tracker.timers.Next(); ok && !at.After(e.Now); at, ok = e.tracker.timers.Next() {
		e.tracker.Expire(e.Now)
	}
	e.tracker.Expire(e.Now)
	e.settle()
}

// clock has the API server tell another time, or the right one again.
func (e *engine) clock(*rapid.T) {
	e.clockLies = !e.clockLies
	e.read()
	e.settle()
}

// read agrees with what is there.
func (e *engine) read() {
	r := Reading{Began: e.Now, ServerTime: e.Now}
	if e.clockLies {
		r.ServerTime = e.Now.Add(time.Hour)
	}
	e.tracker.ObservePolicies(e.next())
	e.tracker.ObserveClusterPolicies(strconv.Itoa(e.version))
	e.tracker.ObserveNamespaces(strconv.Itoa(e.version))
	for _, contents := range []*Contents{&r.Policies, &r.ClusterPolicies, &r.Namespaces} {
		contents.Version = strconv.Itoa(e.version)
	}
	e.tracker.Agree(r, e.Now)
}

// relist starts the watch of a resource over.
func (e *engine) relist(t *rapid.T) {
	e.list(rapid.SampledFrom([]string{gc.ResourceJobs, gc.ResourcePods}).Draw(t, "resource"))
	e.settle()
}
