// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/rules/assessment"
)

// These methods are for stored assessments. Each calls the method of the engine with the same name.

// SetAssessment takes in a stored object, which was listed, or which a watch reports.
func (t *Tracker) SetAssessment(o *assessment.Object, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.SetAssessment(o, now) })
}

// RemoveAssessment takes in that a stored object is gone.
func (t *Tracker) RemoveAssessment(name string, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.RemoveAssessment(name, now) })
}

// AssessmentsListed ends a list of all stored objects. All others are gone.
func (t *Tracker) AssessmentsListed(present sets.Set[string], now time.Time) {
	t.event(now, func(e *engine.Engine) { e.AssessmentsListed(present, now) })
}

// AssessmentUnreadable says that a stored object cannot be read.
func (t *Tracker) AssessmentUnreadable(name, resourceVersion, why string, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.AssessmentUnreadable(name, resourceVersion, why, now) })
}

// AssessmentsUnavailable says that stored objects cannot be listed or watched; empty if they can again.
func (t *Tracker) AssessmentsUnavailable(why string, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.AssessmentsUnavailable(why, now) })
}

// AssessmentsToStore returns the objects to write next. They may be written together. An object without contents must be deleted, and one
// without a resource version created.
func (t *Tracker) AssessmentsToStore(now time.Time) []*assessment.Object {
	return call(t, func(e *engine.Engine) []*assessment.Object { return e.AssessmentsToStore(now) })
}

// AssessmentFailed says that an object cannot be written; empty if it was.
func (t *Tracker) AssessmentFailed(name, why string, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.AssessmentFailed(name, why, now) })
}

// Unstored receives when AssessmentsToStore may return something.
func (t *Tracker) Unstored() <-chan struct{} { return t.unstored }
