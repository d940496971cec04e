// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package scripts_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/assessment"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

// TestReplicas: replicas crash, lag, take over and write late, in random order. No object that a change made due is deleted without an
// approval of a hold that it was in, if the change made too many due. At the end, when everything is approved, everything due is deleted.
func TestReplicas(t *testing.T) {
	testbuilders.Checks(t, 300)
	testbuilders.Steps(t, 60)
	rapid.Check(t, func(t *rapid.T) { newRandom().run(t) })
}

// holdAbove is how many objects a change may make due at once.
const holdAbove = 2

// Namespace a has a policy; a cluster policy selects namespace b by its labels.
var (
	ofA  = types.NamespacedName{Namespace: "a", Name: "p"}
	ofB  = types.NamespacedName{Name: "b"}
	ttls = map[string]time.Duration{"5m": 5 * time.Minute, "20m": 20 * time.Minute, "1h": time.Hour, "100h": 100 * time.Hour}
)

// random is a store with replicas, and what the test knows of the objects.
type random struct {
	*store
	replicas []*replica
	leader   *replica // nil if none leads
	writes   []write
	ttl      map[string]time.Duration // by namespace
	changes  map[string][]*madeDue    // by namespace
	due      sets.Set[types.UID]
	approved sets.Set[types.UID]
	selected bool // namespace b has the labels
	labeled  []*madeDue
}

// write is a request that is under way. Its writer may have crashed since.
type write struct {
	*assessment.Object
	by *replica
}

// madeDue is what a change made due. few says that the rest of it was not too much at some time.
type madeDue struct {
	objects, deleted sets.Set[types.UID]
	few              bool
}

func newRandom() *random {
	r := &random{
		store: newStore(), ttl: map[string]time.Duration{}, changes: map[string][]*madeDue{}, due: sets.New[types.UID](),
		approved: sets.New[types.UID](),
	}
	r.setNamespace("a")
	r.setLabels(true)
	r.setTTL(ofA, "1h")
	r.setTTL(ofB, "1h")
	r.start()
	r.lead(0)
	return r
}

func (r *random) run(t *rapid.T) {
	t.Repeat(map[string]func(*rapid.T){
		"ttl": func(t *rapid.T) {
			r.setTTL(drawPolicy(t), rapid.SampledFrom([]string{"5m", "20m", "1h", "100h"}).Draw(t, "ttl"))
		},
		"labels":      func(*rapid.T) { r.setLabels(!r.selected) },
		"job":         r.job,
		"job again":   r.job,
		"time":        r.time,
		"deliver":     func(t *rapid.T) { r.deliver(r.draw(t)) },
		"tell":        func(t *rapid.T) { r.tellNext(r.draw(t)) },
		"catch up":    func(t *rapid.T) { r.draw(t).catchUp(r.store) },
		"leader":      func(t *rapid.T) { r.needLeader(t).catchUp(r.store) },
		"write":       func(t *rapid.T) { r.collect(r.needLeader(t)) },
		"land":        r.land,
		"write all":   func(t *rapid.T) { r.writeAll(r.needLeader(t)) },
		"start":       func(t *rapid.T) { skipIf(t, len(r.replicas) == 3); r.start() },
		"lead":        func(t *rapid.T) { r.lead(slices.Index(r.replicas, r.draw(t))) },
		"crash":       r.crash,
		"delete":      func(t *rapid.T) { r.delete(t, rapid.IntRange(1, 5).Draw(t, "objects")) },
		"approve":     func(t *rapid.T) { r.approveOne(t) },
		"lose stored": r.loseStored,
	})
	r.finish(t)
}

func skipIf(t *rapid.T, skip bool) {
	if skip {
		t.Skip()
	}
}

func drawPolicy(t *rapid.T) types.NamespacedName {
	return rapid.SampledFrom([]types.NamespacedName{ofA, ofB}).Draw(t, "policy")
}

func (r *random) draw(t *rapid.T) *replica {
	skipIf(t, len(r.replicas) == 0)
	return r.replicas[rapid.IntRange(0, len(r.replicas)-1).Draw(t, "replica")]
}

func (r *random) needLeader(t *rapid.T) *replica {
	skipIf(t, r.leader == nil)
	return r.leader
}

// start starts a replica. It cannot know that labels came back before that, unless this was assessed.
func (r *random) start() {
	for _, c := range r.labeled {
		c.few = true
	}
	r.labeled = nil
	r.replicas = append(r.replicas, startReplica(r.store, memory.Config{HoldAbove: holdAbove, HoldAboveTotal: -1, RemovalsEvery: 10 * time.Second}, false))
}

// lead makes another replica the leader. What the one before was about to write may still arrive.
func (r *random) lead(i int) {
	if r.leader != nil {
		r.collect(r.leader)
		r.leader.Follow()
	}
	r.leader = r.replicas[i]
	r.leader.Lead()
}

func (r *random) crash(t *rapid.T) {
	gone := r.draw(t)
	if gone == r.leader {
		r.collect(gone)
		r.leader = nil
	}
	r.replicas = slices.DeleteFunc(r.replicas, func(other *replica) bool { return other == gone })
}

func (r *random) setTTL(name types.NamespacedName, ttl string) {
	kind, spec := gc.KindCleanupPolicy, "ttlAfterFinished: "+ttl
	if name == ofB {
		kind, spec = gc.KindClusterCleanupPolicy, spec+"\nmode: Enforce\nnamespaceSelector: {matchLabels: {env: test}}"
	}
	if err := r.writeSpec(kind, name, spec); err != nil {
		panic(err)
	}
	r.ttl[namespaceOf(name)] = ttls[ttl]
	r.changed(namespaceOf(name))
}

// setLabels has the cluster policy select namespace b, or not.
func (r *random) setLabels(selected bool) {
	if r.selected = selected; selected {
		r.setNamespace("b", "env", "test")
	} else {
		r.setNamespace("b")
	}
	r.labeled = append(r.labeled, r.changed("b"))
}

// namespaceOf returns the namespace to which a policy applies.
func namespaceOf(name types.NamespacedName) string { return cmp.Or(name.Namespace, name.Name) }

// changed notes what a change has made due.
func (r *random) changed(namespace string) *madeDue {
	c := &madeDue{objects: r.becomeDue(namespace).Difference(r.held()), deleted: sets.New[types.UID]()}
	r.changes[namespace] = append(r.changes[namespace], c)
	r.shrink()
	return c
}

// held returns the objects that are in a hold already, so that they do not count along with what another change makes due.
func (r *random) held() sets.Set[types.UID] {
	out := sets.New[types.UID]()
	for name, o := range r.assessments.objects {
		if stored := o.decode(name).Holds; stored != nil {
			for _, h := range stored.Holds {
				out.Insert(h.Members...)
			}
		}
	}
	for _, replica := range r.replicas {
		for rec := range replica.Records.All() {
			if rec.Hold() != nil {
				out.Insert(rec.UID())
			}
		}
	}
	return out
}

// becomeDue updates which objects of a namespace are due, and returns those that were not before.
func (r *random) becomeDue(namespace string) sets.Set[types.UID] {
	out := sets.New[types.UID]()
	for name, f := range r.jobs {
		if name.Namespace != namespace {
			continue
		}
		if r.now.Before(f.FinishedAt.Add(r.ttl[namespace])) || namespace == "b" && !r.selected {
			r.due.Delete(f.UID)
		} else if !r.due.Has(f.UID) {
			r.due.Insert(f.UID)
			out.Insert(f.UID)
		}
	}
	return out
}

// shrink forgets what changes made due that is not due any more.
func (r *random) shrink() {
	for _, all := range r.changes {
		for _, c := range all {
			for uid := range c.objects {
				if !r.due.Has(uid) && !c.deleted.Has(uid) {
					c.objects.Delete(uid)
				}
			}
			c.few = c.few || len(c.objects) <= holdAbove
		}
	}
}

func (r *random) job(t *rapid.T) {
	namespace := namespaceOf(drawPolicy(t))
	age := rapid.SampledFrom([]time.Duration{0, 6 * time.Minute, 30 * time.Minute, 2 * time.Hour}).Draw(t, "age")
	name := fmt.Sprint("job-", r.version)
	b := testbuilders.Job(name).In(namespace).WithUID(types.UID(namespace + "-" + name))
	r.setJob(b.Complete(r.now.Add(-age)).Fact())
	r.becomeDue(namespace)
}

func (r *random) time(t *rapid.T) {
	r.pass(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 11 * time.Minute}).Draw(t, "passes"))
}

// pass lets time pass. No watch but that of what is stored is late by so much.
func (r *random) pass(d time.Duration) {
	for _, replica := range r.replicas {
		for replica.observed < len(r.events) {
			r.deliver(replica)
		}
	}
	r.now = r.now.Add(d)
	for _, namespace := range []string{"a", "b"} {
		r.becomeDue(namespace)
	}
	for _, replica := range r.replicas {
		replica.expire(r.now)
	}
}

func (r *random) deliver(to *replica) {
	if to.observed < len(r.events) {
		to.observe(r.store)
	}
}

func (r *random) tellNext(to *replica) {
	if to.told < len(r.told) {
		to.Turn(func() { r.told[to.told](to.Engine, r.now) }, r.now)
		to.told++
	}
}

// collect has a replica begin the writes that it wants.
func (r *random) collect(by *replica) {
	for _, o := range by.AssessmentsToStore(r.now) {
		r.writes = append(r.writes, write{o, by})
	}
}

// land lets a write arrive.
func (r *random) land(t *rapid.T) {
	skipIf(t, len(r.writes) == 0)
	r.landOne(rapid.IntRange(0, len(r.writes)-1).Draw(t, "write"))
}

func (r *random) landOne(i int) {
	w := r.writes[i]
	r.writes = slices.Delete(r.writes, i, i+1)
	why := ""
	if !r.put(w.Object) {
		why = "conflict"
	}
	if slices.Contains(r.replicas, w.by) {
		w.by.Turn(func() { w.by.AssessmentFailed(w.Name, why, r.now) }, r.now)
	}
}

// writeAll stores everything that the leader wants.
func (r *random) writeAll(leader *replica) {
	for range 20 {
		leader.catchUp(r.store)
		r.collect(leader)
		if len(r.writes) == 0 {
			return
		}
		for len(r.writes) > 0 {
			r.landOne(0)
		}
	}
}

func (r *random) loseStored(t *rapid.T) {
	skipIf(t, len(r.assessments.objects) == 0 || rapid.IntRange(0, 4).Draw(t, "seldom") > 0)
	var names []string
	for name := range r.assessments.objects {
		names = append(names, name)
	}
	slices.Sort(names)
	r.removeStored(rapid.SampledFrom(names).Draw(t, "name"))
}

// approveOne approves a hold of the leader, with the members that it has now.
func (r *random) approveOne(t *rapid.T) {
	leader := r.needLeader(t)
	name := drawPolicy(t)
	for _, rep := range leader.reports() {
		if rep.Namespace == name.Namespace && rep.Name == name.Name && len(rep.Holds) > 0 {
			r.approveHold(leader, name, rep.Holds)
			return
		}
	}
	t.Skip()
}

func (r *random) approveHold(leader *replica, name types.NamespacedName, holds []gc.PolicyHold) {
	var ids []string
	for _, h := range holds {
		ids = append(ids, h.ID)
	}
	for rec := range leader.Records.All() {
		if h := rec.Hold(); h != nil && slices.Contains(ids, h.ID) {
			r.approved.Insert(rec.UID())
		}
	}
	for name, o := range r.assessments.objects {
		if stored := o.decode(name).Holds; stored != nil {
			for _, h := range stored.Holds {
				if slices.Contains(ids, h.ID) {
					r.approved.Insert(h.Members...)
				}
			}
		}
	}
	r.annotate(name, gc.AnnotationApprovedHold, strings.Join(ids, ","))
}

// delete lets the leader delete up to most objects, if its memory is fresh.
func (r *random) delete(t *rapid.T, most int) (deleted int) {
	leader := r.needLeader(t)
	if !leader.ConfirmFresh(r.consistentRead(), r.now) {
		return 0
	}
	for range most {
		o, ok := leader.Take(r.now)
		if !ok {
			break
		}
		result := deletion.Result{Outcome: deletion.NotFound}
		if name := (types.NamespacedName{Namespace: o.Fact.Namespace, Name: o.Fact.Name}); r.jobs[name] != nil {
			r.check(t, r.jobs[name])
			r.deleteJob(name)
			result.Outcome, deleted = deletion.Accepted, deleted+1
		}
		leader.Turn(func() { leader.Done(o, result, r.now) }, r.now)
	}
	return deleted
}

// check fails if an object must not be deleted.
func (r *random) check(t *rapid.T, f *lifecycle.Fact) {
	if !r.due.Has(f.UID) {
		t.Fatalf("%s is deleted, and not due", f.UID)
	}
	for _, c := range r.changes[f.Namespace] {
		if !c.objects.Has(f.UID) {
			continue
		}
		if c.deleted.Insert(f.UID); !c.few && !r.approved.Has(f.UID) {
			t.Fatalf("%s is deleted without approval, and a change made %d objects due: %v", f.UID, len(c.objects), sets.List(c.objects))
		}
	}
}

// finish approves everything, and fails unless everything due is deleted in the end.
func (r *random) finish(t *rapid.T) {
	if r.leader == nil {
		r.start()
		r.lead(len(r.replicas) - 1)
	}
	for range 20 {
		r.pass(11 * time.Minute)
		r.writeAll(r.leader)
		for _, rep := range r.leader.reports() {
			if len(rep.Holds) > 0 {
				r.approveHold(r.leader, types.NamespacedName{Namespace: rep.Namespace, Name: rep.Name}, rep.Holds)
			}
		}
		r.writeAll(r.leader)
		r.delete(t, 100)
	}
	for _, f := range r.jobs {
		if r.due.Has(f.UID) {
			rec := r.leader.Records.Get(f.UID)
			t.Fatalf("%s is due, and never deleted: %+v (leads: %v, fresh: %v, work: %v, in flight: %v, queued: %v, pending: %d, failed %v)", f.UID, r.leader.Explain(rec), r.leader.Leads(), r.leader.ConfirmFresh(r.consistentRead(), r.now), r.leader.HasWork(), rec.InFlight(), rec.Queued(), r.leader.Pending.Len(), rec.Extra)
		}
	}
}
