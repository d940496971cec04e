// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

type merging struct {
	*drivenMerge
	facts []*lifecycle.Fact
}

func (m *machine) deliverPolicy() {
	e := m.policies.events[m.policies.delivered]
	m.policies.delivered++
	switch {
	case e.barrier:
		m.driver.ObservePolicies(strconv.Itoa(e.version))
	case e.state == nil:
		m.driver.RemovePolicy(realPolicy(e.key, e.last, e.version), m.now)
	default:
		m.driver.SetPolicy(realPolicy(e.key, e.state, e.version), m.now)
	}
	m.tally.policies(m.policies.after(m.policies.delivered))
}

func (m *machine) deliverNamespace() {
	e := m.namespaces.events[m.namespaces.delivered]
	m.namespaces.delivered++
	m.driver.SetNamespace(realNamespace(e.key, e.state), m.now)
}

func (m *machine) deliverJob() {
	e := m.jobs.events[m.jobs.delivered]
	m.jobs.delivered++
	if e.state == nil {
		m.driver.Remove(facts.Compress(realJob(e.last)), m.now)
		m.tally.remove(e.last.uid)
	} else {
		m.driver.Upsert(facts.Compress(realJob(e.state)), m.now)
		m.tally.see(realJob(e.state))
	}
}

// replay delivers an event that was delivered before once more, which changes nothing.
func (m *machine) replay(t *rapid.T) {
	event := func(since, delivered int) int { return rapid.IntRange(since, delivered-1).Draw(t, "event") }
	switch policies, namespaces, jobs := &m.policies, &m.namespaces, &m.jobs; {
	case policies.delivered > policies.restored && rapid.Bool().Draw(t, "a policy"):
		m.redeliver(&policies.delivered, event(policies.restored, policies.delivered), m.deliverPolicy)
	case namespaces.delivered > namespaces.restored && rapid.Bool().Draw(t, "a namespace"):
		m.redeliver(&namespaces.delivered, event(namespaces.restored, namespaces.delivered), m.deliverNamespace)
	case jobs.delivered > jobs.restored:
		e := jobs.events[event(jobs.restored, jobs.delivered)]
		now := m.jobs.after(m.jobs.delivered)[e.key]
		if e.state != nil && now != nil && now.uid == e.state.uid { // Package inorder passes on no events on removed objects.
			m.driver.Upsert(facts.Compress(realJob(e.state)), m.now)
		}
	}
}

func (m *machine) redeliver(delivered *int, event int, deliver func()) {
	before, tally := *delivered, m.tally
	*delivered, m.tally = event, newTally()
	deliver()
	*delivered, m.tally = before, tally
}

// deliverAll delivers all events, and then a bookmark on each watch.
func (m *machine) deliverAll() {
	for !m.policies.allDelivered() {
		m.deliverPolicy()
	}
	for !m.namespaces.allDelivered() {
		m.deliverNamespace()
	}
	for !m.jobs.allDelivered() {
		m.deliverJob()
	}
	m.driver.ObservePolicies(strconv.Itoa(m.version))
	m.driver.ObserveClusterPolicies(strconv.Itoa(m.version))
	m.driver.ObserveNamespaces(strconv.Itoa(m.version))
}

// listPolicies starts the watch over with a list. If it is older than the events that were delivered, it changes nothing.
func (m *machine) listPolicies(t *rapid.T) {
	of := rapid.IntRange(max(m.base, m.policies.restored), len(m.policies.events)).Draw(t, "of")
	var all []*gc.CleanupPolicy
	state := m.policies.after(of)
	for _, k := range sortedKeys(state) {
		all = append(all, realPolicy(k, state[k], 1))
	}
	m.driver.ReplacePolicies(all, strconv.Itoa(max(m.policies.version(of), 1)), m.now)
	m.policies.delivered = max(m.policies.delivered, of)
	m.tally.policies(m.policies.after(m.policies.delivered))
}

func (m *machine) listNamespaces(t *rapid.T) {
	of := rapid.IntRange(m.namespaces.restored, len(m.namespaces.events)).Draw(t, "of")
	var all []*metav1.PartialObjectMetadata
	for name, ns := range m.namespaces.after(of) {
		all = append(all, realNamespace(name, ns))
	}
	m.driver.ReplaceNamespaces(all, strconv.Itoa(max(m.namespaces.version(of), 1)), m.now)
	m.namespaces.delivered = max(m.namespaces.delivered, of)
}

// listJobs starts the watch over with a list, which is never older than the events that were delivered. Much may happen while the list is
// added.
func (m *machine) listJobs(t *rapid.T) {
	before := m.jobs.delivered
	m.jobs.delivered = rapid.IntRange(before, len(m.jobs.events)).Draw(t, "of")
	listed, version := realJobs(m.jobs.after(m.jobs.delivered)), uint64(m.jobs.version(m.jobs.delivered))
	all := compressed(listed...)
	if rapid.Bool().Draw(t, "interrupted") {
		m.driver.setBudget(1)
		m.driver.interrupt = func() { m.meanwhile(t) }
	}
	m.driver.Replace(gc.ResourceJobs, all, version, m.now)
	m.driver.setBudget(0)
	m.driver.interrupt = func() {}
	for m.driver.Step(m.now) {
	}
	m.tally.see(listed...)
	for _, e := range m.jobs.events[before:m.jobs.delivered] { // A merge may have added an object that the watch never delivered.
		if e.state == nil {
			m.tally.remove(e.last.uid)
		}
	}
}

// meanwhile does something between two calls of a list. It is not interrupted itself.
func (m *machine) meanwhile(t *rapid.T) {
	interrupt := m.driver.interrupt
	m.driver.interrupt = func() {}
	switch do := rapid.SampledFrom([]string{"nothing", "job", "policy", "deliver policy", "deliver namespace", "cover", "merge", "take"}); do.Draw(t, "meanwhile") {
	case "job":
		m.job(t)
	case "policy":
		m.policy(t)
	case "deliver policy":
		if !m.policies.allDelivered() {
			m.deliverPolicy()
		}
	case "deliver namespace":
		if !m.namespaces.allDelivered() {
			m.deliverNamespace()
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
	m.driver.interrupt = interrupt
}

// cover acts like the observer when the coverage changes: it lists each namespace that is newly covered.
func (m *machine) cover() {
	for name := range m.driver.Coverage()[gc.ResourcePods] {
		m.driver.BeginMerge(gc.ResourcePods, name).End(true, m.now) // There are none.
	}
	coverage := m.driver.Coverage()[gc.ResourceJobs]
	for _, name := range simNamespaces {
		if covering := coverage[name]; covering != 0 && covering != m.coverage[name] {
			merge := &merging{drivenMerge: m.driver.BeginMerge(gc.ResourceJobs, name)}
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

// merge ends one of the lists of a namespace.
func (m *machine) merge(t *rapid.T) {
	skipUnless(t, len(m.merges) > 0)
	i := rapid.IntRange(0, len(m.merges)-1).Draw(t, "which")
	m.endMerge(i)
}

func (m *machine) endMerge(i int) {
	m.driver.add(m.merges[i].drivenMerge, compressed(m.merges[i].facts...), m.now)
	m.tally.see(m.merges[i].facts...)
	m.merges[i].End(true, m.now)
	m.merges = slices.Delete(m.merges, i, i+1)
}
