// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
)

// TestCluster runs the engine against a cluster in which everything happens in random order: objects, policies and namespaces change,
// watches lag and start over, consistent reads are slow, deletes are refused, and answers get lost. No DELETE may ever reach an object that
// must stay, or that is being deleted. At the end, everything that is due must be deleted.
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

// machine is an engine that works on a cluster.
type machine struct {
	*cluster
	driver *driver
	// covered says that each namespace has a Preview policy, so that it stays covered. Otherwise objects are dropped with the last policy, and
	// the engine cannot count all deletions.
	covered  bool
	coverage map[string]memory.Covering
	base     int // number of events of policies before the first random step
	merges   []*merging
	readings []freshness.ConsistentRead
	orders   []*deletion.Order
	answers  []answered
	// deleted are the UIDs of the objects for which a DELETE was committed.
	deleted map[types.UID]bool
	tally   tally
}

func newMachine(covered bool) *machine {
	m := &machine{
		cluster: &cluster{
			now: testbuilders.Now,
		}, driver: newDriver(memory.Config{HoldAbove: -1, HoldAboveTotal: -1}), covered: covered, coverage: map[string]memory.Covering{}, deleted: map[types.UID]bool{},
		tally: newTally(),
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
	m.restored.from = m.version
	m.deliverAll()
	return m
}

func (m *machine) run(t *rapid.T) {
	actions := map[string]func(*rapid.T){
		"time":              m.time,
		"expire":            func(*rapid.T) { m.driver.Expire(m.now) },
		"job":               m.job,
		"job again":         m.job,
		"policy":            m.policy,
		"policy again":      m.policy,
		"time again":        m.time,
		"namespace":         m.namespace,
		"finalizers":        m.finalizers,
		"deliver policy":    func(t *rapid.T) { skipUnless(t, !m.policies.allDelivered()); m.deliverPolicy() },
		"deliver namespace": func(t *rapid.T) { skipUnless(t, !m.namespaces.allDelivered()); m.deliverNamespace() },
		"deliver job":       func(t *rapid.T) { skipUnless(t, !m.jobs.allDelivered()); m.deliverJob() },
		"deliver all":       func(*rapid.T) { m.deliverAll() },
		"list policies":     m.listPolicies,
		"replay":            m.replay,
		"restore":           m.restore,
		"list namespaces":   m.listNamespaces,
		"list jobs":         m.listJobs,
		"cover":             func(*rapid.T) { m.cover() },
		"merge":             m.merge,
		"read":              func(*rapid.T) { m.readings = append(m.readings, m.consistentRead()) },
		"read barrier":      func(*rapid.T) { m.readings = append(m.readings, m.barrierRead()) },
		"reading waits":     m.readingWaits,
		"reading ends":      m.readingEnds,
		"read at once":      func(*rapid.T) { m.driver.ConfirmFresh(m.consistentRead(), m.now) },
		"take":              m.take,
		"send":              func(t *rapid.T) { skipUnless(t, len(m.orders) > 0); m.send(t, m.pick(t), m.drawFault(t)) },
		"answer":            m.answer,
		"work":              m.work,
		"lag":               m.lag,
		"audit":             m.audit,
	}
	for _, name := range []string{
		"deliver policy", "deliver namespace", "deliver job", "deliver all", "list policies", "replay", "list namespaces", "list jobs", "cover", "merge",
		"read", "read barrier", "read at once", "work", "lag",
	} {
		action := actions[name]
		actions[name] = func(t *rapid.T) { m.seeRestore(t); action(t) }
	}
	t.Repeat(actions)
	m.seeRestore(t)
	m.drain(t)
}

func skipUnless(t *rapid.T, ok bool) {
	if !ok {
		t.Skip()
	}
}

func (m *machine) time(t *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.SampledFrom([]int{1, 50, 400, 900, 1000, 5000, 60000}).Draw(t, "ms")) * time.Millisecond)
}

// job creates or changes a Job.
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

// finalizers removes the finalizers of all Jobs that are being deleted.
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
