// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// trigger is a value of after: the event that makes an object a candidate. Its functions are asked for each object, so they get the fact,
// which is on the heap anyway, and not the Effective, which stays on the stack.
type trigger struct {
	*gc.Trigger
	// since is when the event of a rule happened; zero if it has not happened, or it is not known when. The rule is nil if no policy matches.
	// ownerFinished is when the controller finished.
	since func(f *lifecycle.Fact, r *Rule, ownerFinished time.Time) time.Time
	// excluded returns why the object is no candidate; empty if it may be one.
	excluded func(*lifecycle.Fact) Reason
	// unclear returns why it is not known since when the object is a candidate; zero if it is known.
	unclear func(*lifecycle.Fact) cause
	// hold returns why the object may not be deleted now, although since is known; zero if it may.
	hold func(*lifecycle.Fact) cause
	// note says where since comes from, if the object does not say it; empty if there is nothing to say.
	note func(*lifecycle.Fact) string
	// marked is set if since is a time that Winnow has noted, not a time in the object.
	marked bool
}

// triggers are in the order of what happens to an object: it is created, becomes unused, and finishes. It may begin to match at any time;
// see Effective.last. If the matches have several triggers, the last one decides what excludes or holds the object. Objects that can
// become unused never finish, so they are no candidates if the matches have both triggers.
var triggers = []*trigger{&afterCreated, &afterMatched, &afterUnused, &afterFinished}

// triggerOf returns the trigger of a valid value; empty is gc.AfterFinished.
func triggerOf(after gc.After) *trigger {
	of := gc.TriggerOf(after)
	return triggers[slices.IndexFunc(triggers, func(t *trigger) bool { return t.Trigger == of })]
}

// laterThan reports whether t happens to an object after o.
func (t *trigger) laterThan(o *trigger) bool {
	return t != o && slices.Index(triggers, t) > slices.Index(triggers, o)
}

// notBefore returns at, or when the controller finished if that is later, because the controller needed the object until then. A zero time
// stays zero.
func notBefore(at, ownerFinished time.Time) time.Time {
	if at.IsZero() || at.After(ownerFinished) {
		return at
	}
	return ownerFinished
}

func excludeNone(*lifecycle.Fact) Reason { return "" }

func holdNone(*lifecycle.Fact) cause { return cause{} }

func noteNothing(*lifecycle.Fact) string { return "" }
