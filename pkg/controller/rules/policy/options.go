// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// options are the choices of a rule. An Effective combines the choices of all matches: the choice that keeps the object for longer applies.
type options struct {
	// trigger is the event from which the TTL is counted. Of several triggers, the last one that happens to an object applies. Durations that
	// no rule sets are counted from it too.
	trigger *trigger
	// withOwner is set if any match leaves the object to its owner.
	withOwner bool
	// managedElsewhere is Delete only if all matches say so.
	managedElsewhere gc.ManagedElsewherePolicy
}

// defaultOptions are for an object without matches.
var defaultOptions = options{trigger: &afterFinished, withOwner: true, managedElsewhere: gc.ManagedElsewhereHold}

// compileOptions returns the choices of a rule, or an error if a word has a meaning only for another version. A field may be empty: rules
// are an atomic list, so a default that the API server filled in would show up as a difference when you apply the policy.
func compileOptions(r *gc.CleanupRule) (options, error) {
	return options{
			trigger:          triggerOf(r.After),
			withOwner:        r.Dependents != gc.DependentsAfterOwnerFinished,
			managedElsewhere: r.ManagedElsewhere,
		}, errors.Join(
			oneOf("after", r.After, append([]gc.After{""}, gc.Afters()...)...),
			oneOf("dependents", r.Dependents, "", gc.DependentsWithOwner, gc.DependentsAfterOwnerFinished),
			oneOf("managedElsewhere", r.ManagedElsewhere, "", gc.ManagedElsewhereHold, gc.ManagedElsewhereDelete),
		)
}

// add adds the choices of another match.
func (o *options) add(other *options) {
	if other.trigger.laterThan(o.trigger) {
		o.trigger = other.trigger
	}
	o.withOwner = o.withOwner || other.withOwner
	if other.managedElsewhere != gc.ManagedElsewhereDelete {
		o.managedElsewhere = other.managedElsewhere
	}
}
