// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// TestCluster runs the engine against a cluster in which everything happens in random order: objects, policies and
// namespaces change, watches lag and start over, readings are slow, deletes are refused or their answers get lost. In all of
// it no DELETE may reach an object that must stay, or one that is being deleted; and once the cluster has come to rest,
// all that is due is gone.
func TestCluster(t *testing.T) {
	testbuilders.Checks(t, 1500)
	testbuilders.Steps(t, 80)
	t.Run("with namespaces that stay covered", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) { newMachine(true).run(t) })
	})
	t.Run("with namespaces that lose their last policy", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) { newMachine(false).run(t) })
	})
}

var simNamespaces = []string{"n1", "n2"}

// machine is an engine at work on a cluster.
type machine struct {
	*cluster
	driver *driver
	// covered says that a preview policy, which has no vote, covers each namespace covered, so that all deletions are counted.
	covered  bool
	coverage map[string]Covering
	base     int // policies that are there from the start
	merges   []*merging
	readings []freshness.ConsistentRead
	orders   []*deletion.Order
	answers  []answered
	// deleted are the UIDs that a DELETE of ours was committed for.
	deleted map[types.UID]bool
	tally   tally
}

type merging struct {
	*Merge
	facts []*lifecycle.Fact
}

type answered struct {
	order  *deletion.Order
	result deletion.Result
}

// tally counts deletions as a policy's status promises: accepted, and seen to be gone.
type tally struct {
	counts   map[key]int64
	uids     map[key]types.UID
	accepted map[types.UID]*deletion.Order
	gone     map[types.UID]bool
}

func newMachine(covered bool) *machine {
	m := &machine{
		cluster: &cluster{
			now: testbuilders.Now,
		}, driver: newDriver(Config{HoldAbove: -1, HoldAboveTotal: -1}), covered: covered, coverage: map[string]Covering{}, deleted: map[types.UID]bool{},
		tally: tally{map[key]int64{}, map[key]types.UID{}, map[types.UID]*deletion.Order{}, map[types.UID]bool{}},
	}
	m.driver.ReplaceCronJobs(nil, m.now)
	allListed(m.driver)
	for _, name := range simNamespaces {
		m.setNamespace(name, simNamespace{})
		if covered {
			m.setPolicy(key{name, "always"}, &simPolicy{uid: m.uid(), generation: 1, preview: true})
		}
	}
	m.base = len(m.policies.events)
	m.tellAll()
	return m
}

func (m *machine) run(t *rapid.T) {
	t.Repeat(map[string]func(*rapid.T){
		"time":            m.time,
		"expire":          func(*rapid.T) { m.driver.Expire(m.now) },
		"job":             m.job,
		"job again":       m.job,
		"policy":          m.policy,
		"policy again":    m.policy,
		"time again":      m.time,
		"namespace":       m.namespace,
		"finalizers":      m.finalizers,
		"tell policy":     func(t *rapid.T) { skipUnless(t, !m.policies.allTold()); m.tellPolicy() },
		"tell namespace":  func(t *rapid.T) { skipUnless(t, !m.namespaces.allTold()); m.tellNamespace() },
		"tell job":        func(t *rapid.T) { skipUnless(t, !m.jobs.allTold()); m.tellJob() },
		"tell all":        func(*rapid.T) { m.tellAll() },
		"list policies":   m.listPolicies,
		"list namespaces": m.listNamespaces,
		"list jobs":       m.listJobs,
		"cover":           func(*rapid.T) { m.cover() },
		"merge":           m.merge,
		"read":            func(*rapid.T) { m.readings = append(m.readings, m.reading()) },
		"read barrier":    func(*rapid.T) { m.readings = append(m.readings, m.barrierReading()) },
		"reading waits":   m.readingWaits,
		"reading ends":    m.readingEnds,
		"read at once":    func(*rapid.T) { m.driver.ConfirmFresh(m.reading(), m.now) },
		"take":            m.take,
		"send":            func(t *rapid.T) { skipUnless(t, len(m.orders) > 0); m.send(t, m.pick(t), m.drawFault(t)) },
		"answer":          m.answer,
		"work":            m.work,
		"lag":             m.lag,
		"audit":           m.audit,
	})
	m.rest(t)
}

func skipUnless(t *rapid.T, ok bool) {
	if !ok {
		t.Skip()
	}
}

func (m *machine) time(t *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.SampledFrom([]int{1, 50, 400, 900, 1000, 5000, 60000}).Draw(t, "ms")) * time.Millisecond)
}

// job makes or changes a Job.
func (m *machine) job(t *rapid.T) {
	k := key{rapid.SampledFrom(simNamespaces).Draw(t, "namespace"), rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")}
	extension := rapid.SampledFrom([]int{0, 0, 1000, 5000, 60000, never})
	old, ok := m.jobs.now()[k]
	if !ok {
		m.setJob(simJob{
			key: k, uid: m.uid(), finalizer: rapid.IntRange(0, 3).Draw(t, "finalizer") == 0,
			finished: m.now.Add(-time.Duration(rapid.SampledFrom([]int{0, 900, 5000}).Draw(t, "finished")) * time.Millisecond),
			extended: extension.Draw(t, "extended"),
		})
		return
	}
	j := *old
	switch rapid.SampledFrom([]string{"extend", "extend", "touch", "delete"}).Draw(t, "change") {
	case "extend":
		j.extended = extension.Draw(t, "extended")
		m.setJob(j)
	case "touch":
		m.setJob(j)
	case "delete":
		if !j.terminating {
			m.deleteJob(j)
		}
	}
}

func (m *machine) policy(t *rapid.T) {
	k := key{rapid.SampledFrom(simNamespaces).Draw(t, "namespace"), rapid.SampledFrom([]string{"p", "q"}).Draw(t, "name")}
	ttl := rapid.SampledFrom([]int{0, 0, 1000, 1000, 5000, 60000, never}).Draw(t, "ttl")
	preview := rapid.IntRange(0, 4).Draw(t, "preview") == 0
	switch old, ok := m.policies.now()[k]; {
	case !ok:
		m.setPolicy(k, &simPolicy{m.uid(), 1, ttl, preview})
	case rapid.IntRange(0, 2).Draw(t, "delete") == 0:
		m.setPolicy(k, nil)
	default:
		m.setPolicy(k, &simPolicy{old.uid, old.generation + 1, ttl, preview})
	}
}

func (m *machine) namespace(t *rapid.T) {
	name := rapid.SampledFrom(simNamespaces).Draw(t, "namespace")
	m.setNamespace(name, simNamespace{
		protected:   rapid.IntRange(0, 2).Draw(t, "protected") == 0,
		terminating: rapid.IntRange(0, 9).Draw(t, "terminating") == 0,
	})
}

// finalizers ends what waits for one.
func (m *machine) finalizers(t *rapid.T) {
	ended := false
	for _, k := range sortedKeys(m.jobs.now()) {
		if j := *m.jobs.now()[k]; j.terminating {
			j.finalizer = false
			m.deleteJob(j)
			ended = true
		}
	}
	skipUnless(t, ended)
}

func (m *machine) tellPolicy() {
	e := m.policies.events[m.policies.told]
	m.policies.told++
	switch {
	case e.barrier:
		m.driver.ObservePolicies(strconv.Itoa(e.version))
	case e.state == nil:
		m.driver.RemovePolicy(realPolicy(e.key, e.last, e.version), m.now)
	default:
		m.driver.SetPolicy(realPolicy(e.key, e.state, e.version), m.now)
	}
	m.tally.policies(m.policies.after(m.policies.told))
}

func (m *machine) tellNamespace() {
	e := m.namespaces.events[m.namespaces.told]
	m.namespaces.told++
	m.driver.SetNamespace(realNamespace(e.key, e.state), m.now)
}

func (m *machine) tellJob() {
	e := m.jobs.events[m.jobs.told]
	m.jobs.told++
	if e.state == nil {
		m.driver.Remove(facts.Compress(realJob(e.last)), m.now)
		m.tally.goes(e.last.uid)
	} else {
		m.driver.Upsert(facts.Compress(realJob(e.state)), m.now)
	}
}

// tellAll brings all watches up to date, with a bookmark at their end.
func (m *machine) tellAll() {
	for !m.policies.allTold() {
		m.tellPolicy()
	}
	for !m.namespaces.allTold() {
		m.tellNamespace()
	}
	for !m.jobs.allTold() {
		m.tellJob()
	}
	m.driver.ObservePolicies(strconv.Itoa(m.version))
	m.driver.ObserveClusterPolicies(strconv.Itoa(m.version))
	m.driver.ObserveNamespaces(strconv.Itoa(m.version))
}

// listPolicies starts the watch over from a list, which may be older than what was told.
func (m *machine) listPolicies(t *rapid.T) {
	m.policies.told = rapid.IntRange(m.base, len(m.policies.events)).Draw(t, "of")
	var all []*gc.CleanupPolicy
	state := m.policies.after(m.policies.told)
	for _, k := range sortedKeys(state) {
		all = append(all, realPolicy(k, state[k], 1))
	}
	m.driver.ReplacePolicies(all, strconv.Itoa(m.policies.version(m.policies.told)), m.now)
	m.tally.policies(m.policies.after(m.policies.told))
}

func (m *machine) listNamespaces(t *rapid.T) {
	m.namespaces.told = rapid.IntRange(0, len(m.namespaces.events)).Draw(t, "of")
	var all []*metav1.PartialObjectMetadata
	for name, ns := range m.namespaces.after(m.namespaces.told) {
		all = append(all, realNamespace(name, ns))
	}
	m.driver.ReplaceNamespaces(all, strconv.Itoa(m.namespaces.version(m.namespaces.told)), m.now)
}

// listJobs starts the watch over from a list, which is never older than what was told. Much may happen while it is taken in.
func (m *machine) listJobs(t *rapid.T) {
	before := m.jobs.told
	m.jobs.told = rapid.IntRange(before, len(m.jobs.events)).Draw(t, "of")
	all, version := kept(realJobs(m.jobs.after(m.jobs.told))...), uint64(m.jobs.version(m.jobs.told))
	if rapid.Bool().Draw(t, "interrupted") {
		m.driver.inSlices(1)
		m.driver.others = func() { m.meanwhile(t) }
	}
	m.driver.Replace(gc.ResourceJobs, all, version, m.now)
	m.driver.inSlices(0)
	m.driver.others = func() {}
	for m.driver.Step(m.now) {
	}
	for _, e := range m.jobs.events[before:m.jobs.told] { // One that a merge has shown may have come and gone between.
		if e.state == nil {
			m.tally.goes(e.last.uid)
		}
	}
}

// meanwhile is what happens between two turns of a list. It is not itself interrupted.
func (m *machine) meanwhile(t *rapid.T) {
	others := m.driver.others
	m.driver.others = func() {}
	switch do := rapid.SampledFrom([]string{"nothing", "job", "policy", "tell policy", "tell namespace", "cover", "merge", "take"}); do.Draw(t, "meanwhile") {
	case "job":
		m.job(t)
	case "policy":
		m.policy(t)
	case "tell policy":
		if !m.policies.allTold() {
			m.tellPolicy()
		}
	case "tell namespace":
		if !m.namespaces.allTold() {
			m.tellNamespace()
		}
	case "cover":
		m.cover()
	case "merge":
		if len(m.merges) > 0 {
			m.merge(t)
		}
	case "take":
		if o, ok := m.driver.Take(m.now); ok {
			m.orders = append(m.orders, o)
		}
	}
	m.driver.others = others
}

// cover does what the observer does, once it looks: it lists a namespace that is newly covered.
func (m *machine) cover() {
	for name := range m.driver.Coverage()[gc.ResourcePods] {
		m.driver.BeginMerge(gc.ResourcePods, name).End(true, m.now) // There are none.
	}
	coverage := m.driver.Coverage()[gc.ResourceJobs]
	for _, name := range simNamespaces {
		if covering := coverage[name]; covering != 0 && covering != m.coverage[name] {
			merge := &merging{Merge: m.driver.BeginMerge(gc.ResourceJobs, name)}
			state := m.jobs.now()
			for _, k := range sortedKeys(state) {
				if k.namespace == name {
					merge.facts = append(merge.facts, realJob(state[k]))
				}
			}
			m.merges = append(m.merges, merge)
		}
		m.coverage[name] = coverage[name]
	}
}

// merge has a list of a namespace arrive.
func (m *machine) merge(t *rapid.T) {
	skipUnless(t, len(m.merges) > 0)
	i := rapid.IntRange(0, len(m.merges)-1).Draw(t, "which")
	m.endMerge(i)
}

func (m *machine) endMerge(i int) {
	m.driver.add(m.merges[i].Merge, kept(m.merges[i].facts...), m.now)
	m.merges[i].End(true, m.now)
	m.merges = slices.Delete(m.merges, i, i+1)
}

// readingWaits compares a reading with memory, which may agree later.
func (m *machine) readingWaits(t *rapid.T) {
	skipUnless(t, len(m.readings) > 0)
	m.driver.ConfirmFresh(m.readings[0], m.now)
}

func (m *machine) readingEnds(t *rapid.T) {
	skipUnless(t, len(m.readings) > 0)
	m.driver.ConfirmFresh(m.readings[0], m.now)
	m.readings = m.readings[1:]
}

func (m *machine) take(t *rapid.T) {
	o, ok := m.driver.Take(m.now)
	skipUnless(t, ok)
	m.orders = append(m.orders, o)
}

func (m *machine) pick(t *rapid.T) *deletion.Order {
	i := rapid.IntRange(0, len(m.orders)-1).Draw(t, "order")
	o := m.orders[i]
	m.orders = slices.Delete(m.orders, i, i+1)
	return o
}

// fault is what goes wrong with a request.
type fault struct {
	result deletion.Outcome // Accepted for nothing
	// commits says that the request was carried out before its answer was lost.
	commits bool
}

func (m *machine) drawFault(t *rapid.T) fault {
	return rapid.SampledFrom([]fault{
		{result: deletion.Accepted}, {result: deletion.Accepted}, {result: deletion.Accepted}, {result: deletion.RetryLater},
		{result: deletion.Refused}, {result: deletion.Unauthorized}, {result: deletion.Unknown}, {deletion.Unknown, true},
	}).Draw(t, "fault")
}

// send carries out an order as the loop does, up to the server's answer.
func (m *machine) send(t *rapid.T, o *deletion.Order, f fault) {
	if o.Reread {
		j := m.jobs.now()[key{o.Fact.Namespace, o.Fact.Name}]
		if j == nil || j.uid != o.Fact.UID {
			m.answers = append(m.answers, answered{o, deletion.Result{Outcome: deletion.NotFound}})
			return
		}
		judged, ok := m.driver.Retake(o, realJob(j), m.now)
		if !ok {
			m.driver.Release(o, m.now)
			return
		}
		o = judged
	}
	if !m.now.Before(o.Until) {
		m.driver.Release(o, m.now)
		return
	}
	m.answers = append(m.answers, answered{o, deletion.Result{Outcome: m.request(t, o, f)}})
}

// request is the API server's part: preconditions, and the judge of all deletes.
func (m *machine) request(t *rapid.T, o *deletion.Order, f fault) deletion.Outcome {
	if f.result != deletion.Accepted && !f.commits {
		return f.result
	}
	outcome := deletion.Accepted
	switch j := m.jobs.now()[key{o.Fact.Namespace, o.Fact.Name}]; {
	case j == nil:
		outcome = deletion.NotFound
	case j.uid != o.Fact.UID || uint64(j.version) != o.Fact.ResourceVersion:
		outcome = deletion.Conflict
	case m.deleted[j.uid] || j.terminating:
		t.Fatalf("a second DELETE of %+v", j)
	case !m.mayGo(j):
		t.Fatalf("a DELETE of %+v at %v, which must stay", j, m.now.Sub(testbuilders.Now))
	default:
		m.deleted[j.uid] = true
		m.deleteJob(*j)
	}
	if f.commits {
		return deletion.Unknown
	}
	return outcome
}

func (m *machine) answer(t *rapid.T) {
	skipUnless(t, len(m.answers) > 0)
	i := rapid.IntRange(0, len(m.answers)-1).Draw(t, "answer")
	m.endAnswer(i)
}

func (m *machine) endAnswer(i int) {
	a := m.answers[i]
	m.answers = slices.Delete(m.answers, i, i+1)
	m.driver.Done(a.order, a.result, m.now)
	if a.result.Outcome == deletion.Accepted {
		m.tally.accept(a.order)
	}
}

// work makes it likely that much is deleted: it does at once what otherwise takes four steps to come in their order.
func (m *machine) work(t *rapid.T) {
	r := m.reading()
	if rapid.Bool().Draw(t, "barrier") {
		r = m.barrierReading()
	}
	m.driver.ConfirmFresh(r, m.now)
	m.driver.Expire(m.now)
	for o, ok := m.driver.Take(m.now); ok; o, ok = m.driver.Take(m.now) {
		m.send(t, o, m.drawFault(t))
	}
	for len(m.answers) > 0 {
		m.endAnswer(0)
	}
}

// lag is a change of policies that the watch does not tell for more than a second, while work goes on.
func (m *machine) lag(t *rapid.T) {
	m.work(t)
	m.policy(t)
	m.now = m.now.Add(time.Second)
	m.work(t)
}

// audit holds the reports against the truth, when all of it was told.
func (m *machine) audit(t *rapid.T) {
	skipUnless(t, m.covered && m.policies.allTold() && m.namespaces.allTold() && m.jobs.allTold() && len(m.orders)+len(m.answers) == 0)
	m.driver.Expire(m.now)
	type sums struct{ candidates, due, deleted int64 }
	for _, name := range simNamespaces {
		ns, policies := m.namespaces.now()[name], m.policies.now()
		want, got := map[string]sums{}, map[string]sums{}
		for k := range policies {
			if k.namespace == name {
				want[k.name] = sums{deleted: m.tally.counts[k]}
			}
		}
		for _, j := range m.jobs.now() {
			decides := ""
			for _, k := range sortedKeys(policies) {
				if k.namespace == j.namespace && j.namespace == name && !policies[k].preview &&
					(decides == "" || later(policies[k].ttl, policies[key{name, decides}].ttl)) {
					decides = k.name
				}
			}
			if decides == "" || j.finished.IsZero() || ns.protected || ns.terminating {
				continue
			}
			s := want[decides]
			s.candidates++
			if j.terminating || due(j, policies, m.now) {
				s.due++
			}
			want[decides] = s
		}
		for _, r := range m.driver.Reports(name) {
			s := sums{r.Candidates, r.Due, r.Deleted}
			if r.Mode == gc.ModePreview { // Counts what it would do; named tests tell of that.
				s = sums{deleted: r.Deleted}
			}
			got[r.Name] = s
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("namespace %s: reports %v, want %v", name, got, want)
		}
	}
}

func later(a, b int) bool { return b != never && (a == never || a > b) }

// rest lets everything come to an end: what is due must go, and what must stay is there.
func (m *machine) rest(t *rapid.T) {
	for range 2000 {
		m.settle(t)
		next, ok := m.driver.Next()
		if !ok && !m.driver.Busy(m.now) {
			break
		}
		m.now = m.now.Add(100 * time.Millisecond)
		if ok && next.After(m.now) {
			m.now = next
		}
	}
	m.settle(t)
	policies := m.policies.now()
	for k, j := range m.jobs.now() {
		ns := m.namespaces.now()[k.namespace]
		if rec := m.driver.records.get(j.uid); rec != nil && rec.flags.has(recreated) {
			continue // Names are few here; when such a one is held, named tests tell.
		}
		if due(j, policies, m.now) && !ns.protected && !ns.terminating {
			t.Fatalf("%+v is due and was not deleted: %+v", j, m.driver.records.get(j.uid))
		}
	}
	m.auditAtRest(t)
}

// settle does all that can be done at this time.
func (m *machine) settle(t *rapid.T) {
	m.tellAll()
	m.cover()
	for len(m.merges) > 0 {
		m.endMerge(0)
	}
	m.driver.Expire(m.now)
	m.driver.ConfirmFresh(m.reading(), m.now)
	for o, ok := m.driver.Take(m.now); ok; o, ok = m.driver.Take(m.now) {
		m.orders = append(m.orders, o)
	}
	for len(m.orders) > 0 {
		m.send(t, m.orders[0], fault{result: deletion.Accepted})
		m.orders = m.orders[1:]
	}
	for len(m.answers) > 0 {
		m.endAnswer(0)
	}
	for _, j := range m.jobs.now() {
		if j.terminating {
			gone := *j
			gone.finalizer = false
			m.deleteJob(gone)
		}
	}
	m.tellAll()
}

// auditAtRest audits what can be: in the end everything was told.
func (m *machine) auditAtRest(t *rapid.T) {
	if m.covered {
		m.audit(t)
	}
	for name, ns := range m.driver.namespaces {
		for seat, rec := range ns.records {
			if m.jobs.now()[key{name, rec.Name()}] == nil || m.driver.records.get(rec.UID()) != rec || int(rec.position) != seat {
				t.Fatalf("%s/%s is gone and still tracked", name, rec.Name())
			}
		}
	}
}

func (c *tally) policies(seen map[key]*simPolicy) {
	for k, uid := range c.uids {
		if p := seen[k]; p == nil || p.uid != uid {
			delete(c.uids, k)
			delete(c.counts, k)
		}
	}
	for k, p := range seen {
		c.uids[k] = p.uid
	}
}

func (c *tally) accept(o *deletion.Order) {
	if c.gone[o.Fact.UID] {
		c.count(o)
	} else {
		c.accepted[o.Fact.UID] = o
	}
}

func (c *tally) goes(uid types.UID) {
	c.gone[uid] = true
	if o := c.accepted[uid]; o != nil {
		c.count(o)
		delete(c.accepted, uid)
	}
}

func (c *tally) count(o *deletion.Order) {
	if k := (key{o.Policy.Namespace, o.Policy.Name}); c.uids[k] == o.PolicyUID {
		c.counts[k]++
	}
}
