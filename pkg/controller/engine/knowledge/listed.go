// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
)

// Complete reports whether everything that decisions in the namespace depend on is listed and settled.
func (k *Knowledge) Complete(ns *memory.Namespace) bool {
	return k.Unlisted(ns) == "" && !k.Settling(ns) && len(k.OpenLists) == 0
}

// Unlisted returns a resource that decisions in the namespace depend on and that is not listed yet; empty if there is none. Resources that
// cannot be listed do not count.
func (k *Knowledge) Unlisted(ns *memory.Namespace) string {
	if what := k.unlistedDependency(ns); what != "" {
		return what
	}
	for resource, covering := range ns.Covered {
		if _, err := k.Table.For(resource); err != nil || k.Failing.Skipped.Has(resource) {
			continue // If the cluster does not serve the resource, there are no objects.
		}
		if resource != kinds.ResourceQuotas && ns.Listed[resource] != covering {
			return resource
		}
	}
	return ""
}

// unlistedDependency is Unlisted for everything that policies do not name.
func (k *Knowledge) unlistedDependency(ns *memory.Namespace) string {
	switch {
	case !k.Fresh.AllListed():
		return "policies and namespaces"
	case !ns.Known:
		return "namespaces"
	case ns.Covers(gc.ResourceJobs) && !k.CronJobsListed:
		return kinds.CronJobs
	case ns.Covers(kinds.ResourceQuotas) && !k.Quotas.Listed:
		return kinds.ResourceQuotas
	case !k.referrersKnown(ns):
		return kinds.Referrers
	case !k.marksKnown(ns):
		return "usage marks"
	}
	return ""
}

// NotListed says that a resource is not listed yet.
func NotListed(resource string) string { return "Winnow has not listed all " + resource + " yet" }

// WhyNotAssessed returns why the changes of the namespace cannot be assessed yet.
func (k *Knowledge) WhyNotAssessed(ns *memory.Namespace) string {
	if resource := k.Unlisted(ns); resource != "" {
		return NotListed(resource)
	}
	if k.Settling(ns) || len(k.OpenLists) > 0 {
		return "Winnow is still evaluating a change"
	}
	return "Winnow has not listed all namespaces that share a ceiling with this one yet"
}
