// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
)

// TestEngine compares the engine, which updates only what a change affects, with the model, which computes everything from the start. After
// each of many random changes of objects, owners, policies, labels, quotas, annotations, clocks and leaders, both must have the same
// decision for every object, since the same time, and the same order of deletions.
func TestEngine(t *testing.T) {
	testbuilders.Checks(t, 200)
	testbuilders.Steps(t, 60)
	rapid.Check(t, func(t *rapid.T) { newEngine(t).run(t) })
}

// simulation is the model of a cluster with two engines that observe it: the leader and a follower.
type simulation struct {
	*model.World
	leader, follower *driver
	// caughtUp says that the follower has seen everything that the present holds depend on.
	caughtUp bool
	// heldNotDue are the objects that were held, but not due, when the follower started, so that it did not hold them.
	heldNotDue sets.Set[types.UID]
	version    int
	budget     int // of the engines, in objects; 0 for any number
	// cleared are the objects that are due and need no approval, with the policies that decide for them. under has the hold of each object
	// that is held.
	cleared map[types.UID]types.UID
	under   map[types.UID]*simHold
	waited  map[types.UID]bool // the objects that waited for something after the last event
	// decidedBy are the rules that decided for candidates after the last event, opened is when deletions could start in each namespace by then,
	// and former are the rules that decided before changes that are not assessed yet.
	decidedBy, former map[types.UID]string
	opened            map[string]time.Time
	holds             []*simHold
	// recent has the objects that recent changes made due, by namespace and by the UID of a cluster policy.
	recent map[string][]simAssessed
	rules  map[string]string // the rulesOf each namespace when it was last assessed
	// limitsBefore are the limits of each namespace when it was last assessed.
	limitsBefore map[string]simLimits
	clockInDoubt bool
	paces        map[string]*simPace
	usages       map[types.UID]lifecycle.Usage // of all objects that ever existed
	simMarks
	simNotices
}

// holdAboveByDefault and holdAboveTotalByDefault are low, so that a few objects are enough for a hold.
const (
	holdAboveByDefault      = 4
	holdAboveTotalByDefault = 7
)

func newEngine(t *rapid.T) *simulation {
	e := &simulation{
		World: model.Draw(t), cleared: map[types.UID]types.UID{}, under: map[types.UID]*simHold{}, recent: map[string][]simAssessed{},
		rules: map[string]string{}, limitsBefore: map[string]simLimits{}, former: map[types.UID]string{}, paces: map[string]*simPace{},
	}
	e.storeDrawn()
	e.budget = rapid.SampledFrom([]int{0, 3, 1}).Draw(t, "budget")
	e.leader = e.start()
	e.date()
	e.startNotices(e.leader, true)
	e.follow()
	e.assess(simChange{start: true})
	return e
}

// both calls do with both engines.
func (e *simulation) both(do func(*driver)) {
	do(e.leader)
	do(e.follower)
}

// stepAll does all work that an engine has postponed.
func (e *simulation) stepAll(t *driver) {
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
		"another leader": e.changeLeader,
		"work":           e.work,
		"work again":     e.work,
		"watch":          e.watch,
		"finalizers":     e.finalizers,
		"candidates":     e.candidates,
		"marks":          e.storeMarks,
		"notices":        e.giveNotices,
		"deliveries":     e.deliverNotices,
		"lost notices":   e.loseNotices,
		"":               e.checkAll,
	})
}

func (e *simulation) next() string {
	e.version++
	return strconv.Itoa(e.version)
}

func (e *simulation) list(t *driver, resource string) {
	var all []*facts.Compact
	for _, f := range e.Objects {
		if f.Resource == resource {
			all = append(all, t.observed(f))
		}
	}
	t.Replace(resource, all, uint64(e.version), e.Now)
}

// cover acts like an observer: it lists everything that is newly covered.
func (e *simulation) cover() { e.both(e.coverOne) }

// coverOne lists for one engine. Objects of another resource may control the listed ones, and are covered then.
func (e *simulation) coverOne(t *driver) {
	for e.listCovered(t) {
	}
}

// listCovered lists whatever is covered and not listed yet, and reports whether there was anything.
func (e *simulation) listCovered(t *driver) bool {
	e.stepAll(t)
	listed := false
	for resource, namespaces := range t.Coverage() {
		for name := range namespaces {
			if resource == kinds.ResourceQuotas || t.Namespaces[name].Listed[resource] == namespaces[name] {
				continue
			}
			m := t.BeginMerge(resource, name)
			for _, f := range e.Objects {
				if f.Resource == resource && f.Namespace == name {
					t.add(m, []*facts.Compact{t.observed(f)}, e.Now)
				}
			}
			m.End(true, e.Now)
			listed = true
		}
	}
	return listed
}

// setRecreated makes an engine remember whether an object was recreated too often.
func (e *simulation) setRecreated(t *driver, f *lifecycle.Fact) {
	name := knowledge.NameOf(facts.Compress(f))
	t.Recreations.Names.Remove(name)
	if e.Recreated[f.UID] {
		t.Recreations.Names.Add(name, knowledge.ReturnCount{Deleted: f.Created.Add(-time.Minute), Times: knowledge.MaxReturns - 1, Last: "another"})
	}
}

func (e *simulation) time(t *rapid.T) {
	e.Now = e.Now.Add(rapid.SampledFrom([]time.Duration{
		time.Second, time.Millisecond, 30 * time.Second, time.Minute, 9 * time.Minute, time.Hour,
	}).Draw(t, "passes"))
	e.both(func(t *driver) {
		for t.Expire(e.Now) {
		}
	})
	e.clearDue()
}

// clock sets the clock of the API server to a wrong time, or to the right time again.
func (e *simulation) clock(*rapid.T) {
	e.clockInDoubt = !e.clockInDoubt
	e.read()
	e.clearDue()
}

// serverTime is the time by the clock of the API server.
func (e *simulation) serverTime() time.Time {
	if e.clockInDoubt {
		return e.Now.Add(time.Hour)
	}
	return e.Now
}

// compareClocks compares the clocks, as each replica does when it starts.
func (e *simulation) compareClocks(t *driver) { t.CompareClocks(e.serverTime(), e.Now, e.Now) }

// read confirms that both engines know the stored policies and namespaces.
func (e *simulation) read() {
	r := freshness.ConsistentRead{Began: e.Now, ServerTime: e.serverTime()}
	e.next()
	for _, contents := range []*freshness.Contents{&r.Policies, &r.ClusterPolicies, &r.Namespaces} {
		contents.Version = strconv.Itoa(e.version)
	}
	e.both(func(t *driver) {
		t.ObservePolicies(strconv.Itoa(e.version))
		t.ObserveClusterPolicies(strconv.Itoa(e.version))
		t.ObserveNamespaces(strconv.Itoa(e.version))
		t.ConfirmFresh(r, e.Now)
	})
}

// relist starts the watch of a resource over with a list.
func (e *simulation) relist(t *rapid.T) {
	resource := rapid.SampledFrom(drawnKinds.Deletable()).Draw(t, "resource")
	e.both(func(t *driver) { e.list(t, resource) })
	e.clearDue()
}
