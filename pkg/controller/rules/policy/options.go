// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// options are the choices of a rule. An Effective combines the choices of all matches: the choice that keeps the object for longer applies.
type options struct {
	// trigger is the event from which the TTL is counted. Of several triggers, the last one that happens to an object applies. Durations that
	// no rule sets are counted from it too.
	trigger *trigger
	// deletesUnfinished is set if all matches delete objects that can finish and have not.
	deletesUnfinished bool
	// withOwner is set if any match leaves the object to its owner.
	withOwner bool
	// onceCounted is set if no match leaves a counted Pod to its Job.
	onceCounted bool
	// managedElsewhere is Delete only if all matches say so.
	managedElsewhere gc.ManagedElsewherePolicy
	// keepCopy is the longest time for which a match keeps copies; zero for no copy.
	keepCopy time.Duration
}

// defaultOptions are for an object without matches.
var defaultOptions = options{trigger: &afterFinished, withOwner: true, managedElsewhere: gc.ManagedElsewhereHold}

// compileOptions returns the choices of a rule, or an error if a word has a meaning only for another version. A field may be empty: rules
// are an atomic list, so a default that the API server filled in would show up as a difference when you apply the policy.
func compileOptions(r *gc.CleanupRule) (options, error) {
	keepCopy, err := compileKeepCopy(r)
	return options{
			trigger:           triggerOf(r.After),
			deletesUnfinished: r.Unfinished == gc.UnfinishedDelete,
			withOwner:         r.Dependents == "" || r.Dependents == gc.DependentsWithOwner,
			onceCounted:       r.Dependents == gc.DependentsOnceCounted,
			managedElsewhere:  r.ManagedElsewhere,
			keepCopy:          keepCopy,
		}, errors.Join(
			err,
			oneOf("after", r.After, append([]gc.After{""}, gc.Afters()...)...),
			oneOf("unfinished", r.Unfinished, "", gc.UnfinishedHold, gc.UnfinishedDelete),
			oneOf("dependents", r.Dependents, "", gc.DependentsWithOwner, gc.DependentsAfterOwnerFinished, gc.DependentsOnceCounted),
			oneOf("managedElsewhere", r.ManagedElsewhere, "", gc.ManagedElsewhereHold, gc.ManagedElsewhereDelete),
		)
}

// compileKeepCopy returns for how long a rule keeps copies, or an error if validation would refuse it: what cannot be copied must not be
// deleted as if nobody had asked for a copy.
func compileKeepCopy(r *gc.CleanupRule) (time.Duration, error) {
	if r.KeepCopy == nil {
		return 0, nil
	}
	d, err := gc.ParseDuration(string(*r.KeepCopy))
	switch {
	case err != nil:
		return 0, fmt.Errorf("keepCopy: %w", err)
	case d <= 0:
		return 0, errors.New("keepCopy: is zero")
	case d > gc.MaxKeepCopy:
		return 0, fmt.Errorf("keepCopy: %s is more than 90d", *r.KeepCopy)
	case len(r.Resources) == 0:
		return 0, errors.New("keepCopy: resources is missing")
	}
	for _, resource := range r.Resources {
		if why := gc.CopyRefusal(resource); why != "" {
			return 0, fmt.Errorf("keepCopy: %.64q %s", resource, why)
		}
	}
	return d, nil
}

// add adds the choices of another match.
func (o *options) add(other *options) {
	if other.trigger.laterThan(o.trigger) {
		o.trigger = other.trigger
	}
	o.deletesUnfinished = o.deletesUnfinished && other.deletesUnfinished
	o.withOwner = o.withOwner || other.withOwner
	o.onceCounted = o.onceCounted && other.onceCounted
	if other.managedElsewhere != gc.ManagedElsewhereDelete {
		o.managedElsewhere = other.managedElsewhere
	}
	o.keepCopy = max(o.keepCopy, other.keepCopy)
}

// KeepCopy returns how long a copy of the object must be kept after its deletion; zero if none is kept.
func (e *Effective) KeepCopy() time.Duration { return e.keepCopy }
