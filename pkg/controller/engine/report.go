// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

// TakeDirty returns the namespaces whose reports may have changed since the last call, and "" for the cluster policies. A namespace that is
// being judged again is returned by a later call, because a report on it would be incomplete.
func (e *Engine) TakeDirty() []string {
	var out []string
	for name := range e.dirty {
		if e.busyIn(name) {
			continue
		}
		e.dirty.Delete(name)
		out = append(out, name)
		if ns, ok := e.namespaces[name]; ok {
			ns.dirty = false
		}
	}
	return out
}

// Incomplete reports whether a report on a namespace would be incomplete, because objects are being judged again.
func (e *Engine) Incomplete(namespace string) bool {
	return e.busyIn(namespace)
}

// busyIn reports whether there is work for Step in a namespace, or for "" in any namespace.
func (e *Engine) busyIn(name string) bool {
	ns, ok := e.namespaces[name]
	return name == "" && e.hasWork() || ok && e.busy(ns)
}

// PopUrgent returns the dirty namespace whose policy got a new spec most recently; false if there is none.
func (e *Engine) PopUrgent() (string, bool) {
	latest, found := "", false
	for ns, at := range e.urgent {
		if (!found || at > e.urgent[latest]) && !e.busyIn(ns) {
			latest, found = ns, true
		}
	}
	if found {
		delete(e.urgent, latest)
	}
	return latest, found
}

// PolicyNamespaces returns the names of all namespaces with policies, and "" for the cluster policies.
func (e *Engine) PolicyNamespaces() []string {
	out := []string{""}
	for name, ns := range e.namespaces {
		if len(ns.policies) > 0 {
			out = append(out, name)
		}
	}
	return out
}

// invalidate marks the reports on a namespace, and on the cluster policies, as dirty.
func (e *Engine) invalidate(ns *namespace) {
	if ns.updates++; ns.dirty {
		return
	}
	ns.dirty = true
	e.markDirty(ns.name)
	if len(e.clusterPolicies) > 0 {
		e.markDirty("")
	}
}

// markDirty adds a namespace to those that TakeDirty returns. Only the leader writes reports.
func (e *Engine) markDirty(namespace string) {
	if !e.following {
		e.dirty.Insert(namespace)
	}
}

// markUrgent also adds the namespace to those that PopUrgent returns.
func (e *Engine) markUrgent(namespace string) {
	e.markDirty(namespace)
	if !e.following {
		e.urgentCount++
		e.urgent[namespace] = e.urgentCount
	}
}
