// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// Match conditions are evaluated where objects are read, and records have only the results. If a policy has a new condition, the objects
// that it may match are read again, only in the namespaces that the policy applies to. Until then they are held.

// Conditions are the match conditions to evaluate, by resource and namespace.
type Conditions map[string]map[string]*lifecycle.Conditions

// Set sets the match conditions for a resource in a namespace.
func (c Conditions) Set(resource, namespace string, to *lifecycle.Conditions) {
	if c[resource] == nil {
		c[resource] = map[string]*lifecycle.Conditions{}
	}
	c[resource][namespace] = to
}

// ConditionsOfPolicies are the match conditions of some policies together.
type ConditionsOfPolicies struct {
	Policies   []*policy.Policy
	Conditions map[string]*lifecycle.Conditions // by resource
}

// NoteLimit notes whether there are too many match conditions for an object, or they cost too much together.
func (ns *Namespace) NoteLimit(compact *facts.Compact) {
	if !compact.Conditions.OverLimit() {
		return
	}
	if ns.OverLimit == nil {
		ns.OverLimit = sets.New[string]()
	}
	ns.OverLimit.Insert(compact.Resource)
}

// WaitsFor reports whether a state of an object is known already, except for the results of its match conditions.
func (m *Memory) WaitsFor(compact *facts.Compact) bool {
	rec := m.Records.Of(compact)
	return rec != nil && rec.ResourceVersion == compact.ResourceVersion && rec.Conditions.Wait()
}

// AddsResults reports whether a state of an object has results of match conditions that the record lacks, or that may have failed there
// because of other conditions, which are no longer needed.
func (rec *Record) AddsResults(compact *facts.Compact) bool {
	needed := rec.NS.Conditions[rec.Resource]
	switch {
	case !compact.Conditions.Covers(needed):
		return false
	case !rec.Conditions.Covers(needed):
		return true
	case compact.Conditions.Wait():
		return false
	case rec.Conditions.Wait():
		return needed != nil
	}
	return needed != nil && rec.Conditions.OverLimit() && rec.Conditions.Digest != compact.Conditions.Digest
}
