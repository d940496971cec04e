// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
)

// This is the cluster of TestCluster: the stored objects, when they were written, and which events the watches have delivered. The
// documentation alone decides which objects are due.

const never = -1 // milliseconds

var ttlTexts = map[int]gc.TTL{0: "0s", 1000: "1s", 5000: "5s", 60000: "1m", never: "never"}

// simPolicy, simNamespace and simJob are stored states. A new state is a new value.
type simPolicy struct {
	uid        types.UID
	generation int64
	ttl        int
	preview    bool
}

type simNamespace struct {
	version                int
	protected, terminating bool
}

type simJob struct {
	key
	uid         types.UID
	version     int
	finished    time.Time // zero while it runs
	extended    int       // the TTL annotation: never, or 0 if there is none
	finalizer   bool
	terminating bool
}

type key struct{ namespace, name string }

// history has all writes of a collection in their order, and how many of them the watch has delivered.
type history[K comparable, S any] struct {
	events    []event[K, S]
	delivered int
	restored  int // the number of events until the last restore had ended
}

type event[K comparable, S any] struct {
	key     K
	state   *S // nil if the object was removed
	last    *S // the state before the object was removed
	version int
	at      time.Time
	barrier bool // the write of a barrier, which changes nothing
}

// after returns the states after the first n events.
func (h *history[K, S]) after(n int) map[K]*S {
	out := map[K]*S{}
	for _, e := range h.events[:n] {
		if e.state == nil {
			delete(out, e.key)
		} else {
			out[e.key] = e.state
		}
	}
	return out
}

func (h *history[K, S]) now() map[K]*S { return h.after(len(h.events)) }

// at returns how many events had happened at a time.
func (h *history[K, S]) at(t time.Time) int {
	n := 0
	for n < len(h.events) && !h.events[n].at.After(t) {
		n++
	}
	return n
}

// version returns the resource version of a list that has the first n events.
func (h *history[K, S]) version(n int) int {
	if n == 0 {
		return 0
	}
	return h.events[n-1].version
}

func (h *history[K, S]) allDelivered() bool { return h.delivered == len(h.events) }

// cluster is everything that is stored.
type cluster struct {
	version    int
	uids       int
	now        time.Time
	policies   history[key, simPolicy]
	namespaces history[string, simNamespace]
	jobs       history[key, simJob]
	restored   restored
}

func (c *cluster) next() int {
	c.version += restoreSteps - c.version%restoreSteps + c.restored.count
	return c.version
}

func (c *cluster) setPolicy(k key, p *simPolicy) {
	c.policies.events = append(c.policies.events, event[key, simPolicy]{k, p, c.policies.now()[k], c.next(), c.now, false})
}

func (c *cluster) setNamespace(name string, ns simNamespace) {
	ns.version = c.next()
	c.namespaces.events = append(c.namespaces.events, event[string, simNamespace]{name, &ns, nil, ns.version, c.now, false})
}

func (c *cluster) setJob(j simJob) {
	j.version = c.next()
	c.jobs.events = append(c.jobs.events, event[key, simJob]{j.key, &j, nil, j.version, c.now, false})
}

// deleteJob handles a DELETE like the API server.
func (c *cluster) deleteJob(j simJob) {
	if j.finalizer {
		j.terminating = true
		c.setJob(j)
		return
	}
	j.version = c.next()
	c.jobs.events = append(c.jobs.events, event[key, simJob]{j.key, nil, &j, j.version, c.now, false})
}

func (c *cluster) uid() types.UID {
	c.uids++
	return types.UID("uid-" + strconv.Itoa(c.uids))
}

// due reports whether the policies allow the deletion of a Job at a time. It does not look at the namespace.
func due(j *simJob, policies map[key]*simPolicy, now time.Time) bool {
	if j.finished.IsZero() || j.terminating {
		return false
	}
	keep, matched := 0, false
	for k, p := range policies {
		if k.namespace != j.namespace || p.preview {
			continue
		}
		matched = true
		if p.ttl == never {
			return false
		}
		keep = max(keep, p.ttl)
	}
	if !matched || j.extended == never {
		return false
	}
	return !now.Before(j.finished.Add(time.Duration(max(keep, j.extended)) * time.Millisecond))
}

// mayDelete reports whether the Job may be deleted now: whether some state of the policies within the last second, and some state of the
// namespaces, allow it.
func (c *cluster) mayDelete(j *simJob) bool {
	since := c.now.Add(-time.Second)
	return slices.ContainsFunc(span(c.policies.at(since), len(c.policies.events)), func(n int) bool {
		return due(j, c.policies.after(n), c.now)
	}) && slices.ContainsFunc(span(c.namespaces.at(since), len(c.namespaces.events)), func(n int) bool {
		ns := c.namespaces.after(n)[j.namespace]
		return ns != nil && !ns.protected && !ns.terminating
	})
}

// span returns the numbers from a to b.
func span(a, b int) []int {
	var out []int
	for ; a <= b; a++ {
		out = append(out, a)
	}
	return out
}

// consistentRead returns the result of a consistent read now.
func (c *cluster) consistentRead() freshness.ConsistentRead {
	version := strconv.Itoa(c.version)
	r := freshness.ConsistentRead{
		Began: c.now, Policies: freshness.Contents{Version: version, Revisions: revisions{}}, ClusterPolicies: freshness.Contents{Version: version, Revisions: revisions{}},
		Namespaces: freshness.Contents{Version: version, Revisions: revisions{}},
	}
	for k, p := range c.policies.now() {
		r.Policies.Revisions[types.NamespacedName{Namespace: k.namespace, Name: k.name}] = freshness.SpecRevision(p.uid, p.generation)
	}
	for name, ns := range c.namespaces.now() {
		r.Namespaces.Revisions[types.NamespacedName{Name: name}] = freshness.Revision{
			UID:     types.UID("ns-" + name),
			Version: strconv.Itoa(ns.version),
		}
	}
	return r
}

// barrierRead is a consistent read that writes a barrier instead of listing policies.
func (c *cluster) barrierRead() freshness.ConsistentRead {
	barrier := c.next()
	c.policies.events = append(c.policies.events, event[key, simPolicy]{version: barrier, at: c.now, barrier: true})
	r := c.consistentRead()
	r.Policies = freshness.Contents{Version: strconv.Itoa(barrier)}
	return r
}

func realPolicy(k key, p *simPolicy, version int) *gc.CleanupPolicy {
	b := testbuilders.Policy(k.name).
		In(k.namespace).
		WithUID(p.uid).
		Generation(p.generation).
		Version(strconv.Itoa(version)).
		Default(ttlTexts[p.ttl])
	if p.preview {
		b.Preview()
	}
	return b.Obj()
}

func realNamespace(name string, ns *simNamespace) *metav1.PartialObjectMetadata {
	m := testbuilders.Namespace(name, strconv.Itoa(ns.version))
	if ns.protected {
		m.Labels = map[string]string{gc.LabelProtected: "true"}
	}
	if ns.terminating {
		m.DeletionTimestamp = &m.CreationTimestamp
	}
	return m
}

func realJob(j *simJob) *lifecycle.Fact {
	b := testbuilders.Job(j.name).In(j.namespace).WithUID(j.uid).Version(strconv.Itoa(j.version))
	if !j.finished.IsZero() {
		b.Complete(j.finished)
	}
	if j.extended != 0 {
		b.TTL(string(ttlTexts[j.extended]))
	}
	if j.finalizer {
		b.Finalizer("example.com/f")
	}
	if j.terminating {
		b.Terminating()
	}
	return b.Fact()
}

func realJobs(jobs map[key]*simJob) []*lifecycle.Fact {
	var out []*lifecycle.Fact
	for _, j := range jobs {
		out = append(out, realJob(j))
	}
	return out
}

// sortedKeys keeps random draws reproducible.
func sortedKeys[S any](m map[key]*S) []key {
	return slices.SortedFunc(maps.Keys(m), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
}
