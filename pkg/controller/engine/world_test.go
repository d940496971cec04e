// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

// world is an engine, the cluster that it observes, and a clock. Every change of the cluster gets the next resource version, and the engine
// observes it at once.
type world struct {
	*testing.T
	*driver
	now                                   time.Time
	version                               uint64
	policies, clusterPolicies, namespaces revisions

	facts  map[string]*lifecycle.Fact // by name
	orders map[string]*deletion.Order // in flight, by the name of the object
}

type revisions = map[types.NamespacedName]freshness.Revision

// allListed tells an engine that all collections have been listed.
func allListed(t *driver) {
	for _, c := range []freshness.Collection{freshness.Policies, freshness.ClusterPolicies, freshness.Namespaces} {
		t.Fresh.Relisted(c, "")
	}
}

// newWorld returns a world with the namespace testbuilders.Home and these policies. Everything is listed, and memory is fresh.
func newWorld(t *testing.T, policies ...*testbuilders.PolicyBuilder) *world {
	w := emptyWorld(t)
	w.begin()
	w.namespace(testbuilders.Home)
	for _, p := range policies {
		w.policy(p)
	}
	w.confirmFresh()
	return w
}

// emptyWorld returns a world in which nothing is listed.
func emptyWorld(t *testing.T) *world {
	return &world{
		T: t, driver: newDriver(memory.Config{Protected: []string{"winnow-system"}, HoldAbove: 1000, HoldAboveTotal: -1}), now: testbuilders.Now,
		policies: revisions{}, clusterPolicies: revisions{}, namespaces: revisions{},
		facts: map[string]*lifecycle.Fact{}, orders: map[string]*deletion.Order{},
	}
}

// begin lists everything in an empty cluster.
func (w *world) begin() {
	w.ReplaceCronJobs(nil, w.now)
	allListed(w.driver)
}

func (w *world) next() string {
	w.version++
	return strconv.FormatUint(w.version, 10)
}

func (w *world) namespace(name string, labels ...string) {
	w.observeNamespace(name, labels...)
	w.listCovered()
}

// observeNamespace sets a namespace. Unlike namespace, it does not list the objects that are newly covered; observePolicy and
// observeClusterPolicy do not either.
func (w *world) observeNamespace(name string, labels ...string) {
	m := testbuilders.Namespace(name, w.next(), labels...)
	w.namespaces[types.NamespacedName{Name: name}] = freshness.Revision{UID: m.UID, Version: m.ResourceVersion}
	w.SetNamespace(m, w.now)
}

// listCovered ends a list of everything that is covered. It brings nothing, because the engine has observed all objects before.
func (w *world) listCovered() {
	for resource, covered := range w.Coverage() {
		for name := range covered {
			if resource != kinds.ResourceQuotas {
				w.BeginMerge(resource, name).End(true, w.now)
			}
		}
	}
}

func (w *world) policy(b *testbuilders.PolicyBuilder) {
	w.observePolicy(b)
	w.listCovered()
}

func (w *world) observePolicy(b *testbuilders.PolicyBuilder) {
	p := b.Version(w.next()).Obj()
	w.policies[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = freshness.SpecRevision(p.UID, p.Generation)
	w.SetPolicy(p, w.now)
}

func (w *world) clusterPolicy(p *gc.ClusterCleanupPolicy) {
	w.observeClusterPolicy(p)
	w.listCovered()
}

func (w *world) observeClusterPolicy(p *gc.ClusterCleanupPolicy) {
	p.ResourceVersion = w.next()
	w.clusterPolicies[types.NamespacedName{Name: p.Name}] = freshness.SpecRevision(p.UID, p.Generation)
	w.SetClusterPolicy(p, w.now)
}

func (w *world) removePolicy(b *testbuilders.PolicyBuilder) {
	p := b.Version(w.next()).Obj()
	delete(w.policies, types.NamespacedName{Namespace: p.Namespace, Name: p.Name})
	w.RemovePolicy(p, w.now)
}

// upsert writes a new version of each object.
func (w *world) upsert(all ...*lifecycle.Fact) {
	for _, f := range w.withVersions(all...) {
		w.facts[f.Name] = f
		w.Upsert(facts.Compress(f), w.now)
	}
}

// withVersions gives each object a new version. The engine does not observe the objects.
func (w *world) withVersions(all ...*lifecycle.Fact) []*lifecycle.Fact {
	for _, f := range all {
		w.next()
		f.ResourceVersion = w.version
	}
	return all
}

func (w *world) removed(names ...string) {
	for _, name := range names {
		w.Remove(facts.Compress(w.facts[name]), w.now)
		delete(w.facts, name)
	}
}

// consistentRead returns the result of a consistent read now.
func (w *world) consistentRead() freshness.ConsistentRead {
	version := strconv.FormatUint(w.version, 10)
	return freshness.ConsistentRead{
		Began: w.now, ServerTime: w.now, Policies: freshness.Contents{Version: version, Revisions: w.policies},
		ClusterPolicies: freshness.Contents{Version: version, Revisions: w.clusterPolicies},
		Namespaces:      freshness.Contents{Version: version, Revisions: w.namespaces},
	}
}

// confirmFresh reads, and fails unless memory is fresh.
func (w *world) confirmFresh() {
	w.Helper()
	if !w.ConfirmFresh(w.consistentRead(), w.now) {
		w.Fatal("memory has everything that was read, but is not fresh")
	}
}

// pass advances the clock, expires timers, and confirms that memory is fresh.
func (w *world) pass(d time.Duration) {
	w.Helper()
	w.now = w.now.Add(d)
	w.Expire(w.now)
	w.confirmFresh()
}

// takes takes all orders, and fails unless they are for these objects.
func (w *world) takes(names ...string) {
	w.Helper()
	var got []string
	for o, ok := w.Take(w.now); ok; o, ok = w.Take(w.now) {
		got = append(got, o.Fact.Name)
		w.orders[o.Fact.Name] = o
	}
	slices.Sort(got)
	slices.Sort(names)
	if !slices.Equal(got, names) {
		w.Fatalf("orders for %q, want %q", got, names)
	}
}

// done ends the order for an object.
func (w *world) done(name string, o deletion.Outcome) {
	w.result(name, deletion.Result{Outcome: o, Detail: "the server's words"})
}

func (w *world) result(name string, r deletion.Result) {
	w.Helper()
	o, ok := w.orders[name]
	if !ok {
		w.Fatalf("no order for %q is in flight", name)
	}
	delete(w.orders, name)
	w.Done(o, r, w.now)
}

// deletes takes exactly the orders for these objects, and ends them with Accepted.
func (w *world) deletes(names ...string) {
	w.Helper()
	w.takes(names...)
	for _, name := range names {
		w.done(name, deletion.Accepted)
	}
}

// counts are the counts in the status of a policy.
type counts struct{ candidates, due, held, deleted int64 }

func (w *world) report(name string) report.Report {
	w.Helper()
	for _, r := range w.Reports(testbuilders.Home) {
		if r.Name == name {
			return r
		}
	}
	w.Fatalf("there is no report of policy %q", name)
	return report.Report{}
}

func (w *world) counts(name string, want counts) {
	w.Helper()
	r := w.report(name)
	if got := (counts{r.Candidates, r.Due, r.Held, r.Deleted}); got != want {
		w.Fatalf("policy %s: got %+v, want %+v", name, got, want)
	}
}

// decided fails unless this is the decision for an object.
func (w *world) decided(name string, action policy.Action, reason policy.Reason) {
	w.Helper()
	rec := w.Records.Get(w.facts[name].UID)
	if rec == nil {
		w.Fatalf("%q is not tracked", name)
	}
	if d := rec.Decision(); d.Action != action || d.Reason != reason {
		w.Fatalf("%q: got action %d for %s (%s), want %d for %s", name, d.Action, d.Reason, w.Explain(rec).Detail, action, reason)
	}
}

// holds fails unless the policy holds objects for exactly these reasons.
func (w *world) holds(name string, want ...report.Group) {
	w.Helper()
	if got := w.report(name).HeldByReason; !slices.Equal(got, want) {
		w.Fatalf("policy %s: holds %+v, want %+v", name, got, want)
	}
}

// forgotten fails unless the engine has no objects any more.
func (w *world) forgotten() {
	w.Helper()
	if w.Records.Count != 0 || len(w.Dependents) != 0 || w.Timers.Len() != 0 || w.Queue.Waiting() > 0 || len(w.InFlight) != 0 {
		w.Fatalf("left: %d records, %d controllers, %d timers, queue %v, %d orders in flight",
			w.Records.Count, len(w.Dependents), w.Timers.Len(), w.Queue, len(w.InFlight))
	}
	for name, ns := range w.Engine.Namespaces {
		if len(ns.Records) != 0 || len(ns.Merges) != 0 {
			w.Fatalf("left in namespace %s: %d records, %d merges", name, len(ns.Records), len(ns.Merges))
		}
	}
}

// compressed returns facts in the form in which a list brings them.
func compressed(all ...*lifecycle.Fact) []*facts.Compact {
	var out []*facts.Compact
	for _, f := range all {
		out = append(out, facts.Compress(f))
	}
	return out
}

// jobs returns Jobs that finished this long ago.
func jobs(age time.Duration, names ...string) []*lifecycle.Fact {
	var out []*lifecycle.Fact
	for _, name := range names {
		out = append(out, testbuilders.Job(name).Complete(testbuilders.Now.Add(-age)).Fact())
	}
	return out
}

func job(age time.Duration, name string) *lifecycle.Fact { return jobs(age, name)[0] }

// ttlPolicy returns a generation of policy p, with a default TTL.
func ttlPolicy(ttl gc.TTL, generation int64) *testbuilders.PolicyBuilder {
	return testbuilders.Policy("p").Default(ttl).Generation(generation)
}
