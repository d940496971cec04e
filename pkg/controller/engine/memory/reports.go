// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import "github.com/winnow-dev/winnow/pkg/controller/rules/deletion"

// Follow tells the engine that this replica is not the leader, so that nobody takes its reports.
func (m *Memory) Follow() {
	m.Following = true
	m.Terms++
	clear(m.Unwritten)
	clear(m.Urgent)
}

// Lead tells the engine that this replica is the leader from now on. The leader must then write all reports that changed while the replica
// followed.
func (m *Memory) Lead() {
	m.Following = false
	m.MarkUnwritten("")
	for _, ns := range m.Namespaces {
		if ns.Unwritten {
			m.MarkUnwritten(ns.Name)
		}
	}
}

// SetUnanswered notes that the DELETE of an order may have been carried out, although no answer says so.
func (m *Memory) SetUnanswered(rec *Record, o *deletion.Order) {
	x := rec.EnsureExtra()
	x.Unanswered, x.unansweredIn = o, m.Terms
}

// Unanswered returns the order whose DELETE has probably deleted the object of a record, if that is gone now; nil if there is none.
// Somebody else may have deleted the same state at the same time. An order of an earlier term says nothing: another leader may have deleted
// the object since.
func (m *Memory) Unanswered(rec *Record) *deletion.Order {
	if rec.Extra == nil || rec.Extra.unansweredIn != m.Terms {
		return nil
	}
	return rec.Extra.Unanswered
}

// Leading reports whether this replica is the leader.
func (m *Memory) Leading() bool {
	return !m.Following
}

// TakeUnwritten returns the namespaces whose reports may have changed since the last call, and "" for the cluster policies. A namespace
// that is being settled again is returned by a later call, because a report on it would be incomplete.
func (m *Memory) TakeUnwritten() []string {
	var out []string
	for name := range m.Unwritten {
		if m.busyIn(name) {
			continue
		}
		m.Unwritten.Delete(name)
		out = append(out, name)
		if ns, ok := m.Namespaces[name]; ok {
			ns.Unwritten = false
		}
	}
	return out
}

// Incomplete reports whether a report on a namespace would be incomplete, because objects are being settled again.
func (m *Memory) Incomplete(namespace string) bool {
	return m.busyIn(namespace)
}

// busyIn reports whether there is work for Step in a namespace, or for "" in any namespace.
func (m *Memory) busyIn(name string) bool {
	ns, ok := m.Namespaces[name]
	return name == "" && m.HasWork() || ok && m.busy(ns)
}

// PopUrgent returns the namespace with the most recent new spec of a policy that is not reported yet; false if there is none.
func (m *Memory) PopUrgent() (string, bool) {
	latest, found := "", false
	for ns, at := range m.Urgent {
		if (!found || at > m.Urgent[latest]) && !m.busyIn(ns) {
			latest, found = ns, true
		}
	}
	if found {
		delete(m.Urgent, latest)
	}
	return latest, found
}

// PolicyNamespaces returns the names of all namespaces with policies, and "" for the cluster policies.
func (m *Memory) PolicyNamespaces() []string {
	out := []string{""}
	for name, ns := range m.Namespaces {
		if len(ns.Policies) > 0 {
			out = append(out, name)
		}
	}
	return out
}

// Invalidate notes that the reports on a namespace, and on the cluster policies, may have changed.
func (m *Memory) Invalidate(ns *Namespace) {
	if ns.Updates++; ns.Unwritten {
		return
	}
	ns.Unwritten = true
	m.MarkUnwritten(ns.Name)
	if len(m.ClusterPolicies) > 0 {
		m.MarkUnwritten("")
	}
}

// MarkUnwritten notes that the reports on a namespace may have changed, for TakeUnwritten. Only the leader writes reports.
func (m *Memory) MarkUnwritten(namespace string) {
	if !m.Following {
		m.Unwritten.Insert(namespace)
	}
}

// MarkUrgent is MarkUnwritten after a policy of the namespace got a new spec, for PopUrgent.
func (m *Memory) MarkUrgent(namespace string) {
	m.MarkUnwritten(namespace)
	if !m.Following {
		m.urgentCount++
		m.Urgent[namespace] = m.urgentCount
	}
}
