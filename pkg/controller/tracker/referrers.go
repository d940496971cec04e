// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
)

// These methods are for objects that refer to ConfigMaps and Secrets. Each calls the method of the engine with the same name. It takes as
// many turns as the references need.

// SetReferrerSources sets where referrers are listed and watched. why says why referrers of other sources may be missing; empty if none is
// missing.
func (t *Tracker) SetReferrerSources(names []string, why string, now time.Time) {
	t.doReferrers(func(e *engine.Engine) { e.SetReferrerSources(names, why, now) }, now)
}

// ForgetReferrers forgets all referrers, because they are no longer observed.
func (t *Tracker) ForgetReferrers(now time.Time) {
	t.doReferrers(func(e *engine.Engine) { e.ForgetReferrers(now) }, now)
}

// ObservingReferrers records whether a source can be listed and watched; why is nil if it can.
func (t *Tracker) ObservingReferrers(source string, why error, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.ObservingReferrers(source, why, now) })
}

// BeginReferrers begins a list of all referrers of a source.
func (t *Tracker) BeginReferrers(source string, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.BeginReferrers(source, now) })
}

// EndReferrers ends the list of a source that began last.
func (t *Tracker) EndReferrers(source string, now time.Time) {
	t.doReferrers(func(e *engine.Engine) { e.EndReferrers(source, now) }, now)
}

// SetReferring replaces what objects refer to.
func (t *Tracker) SetReferring(all []knowledge.Referring, now time.Time) {
	t.doReferrers(func(e *engine.Engine) { e.SetReferring(all, now) }, now)
}

// RemoveReferrer removes a referrer.
func (t *Tracker) RemoveReferrer(source string, uid types.UID, now time.Time) {
	t.doReferrers(func(e *engine.Engine) { e.RemoveReferrer(source, uid, now) }, now)
}

// IsOverfull reports whether there is no room for what some referrers in a namespace refer to. Setting one of them again may find room.
func (t *Tracker) IsOverfull(namespace string) bool {
	return call(t, func(e *engine.Engine) bool { return e.Usage.IsOverfull(namespace) })
}

// BeginReread begins to read again the referrers of the namespaces that it returns.
func (t *Tracker) BeginReread() (number uint32, namespaces []string) {
	t.do(func(e *engine.Engine) { number, namespaces = e.BeginReread() })
	return number, namespaces
}

// Reread processes the references of objects that were read again.
func (t *Tracker) Reread(all []knowledge.Referring, now time.Time) {
	t.doReferrers(func(e *engine.Engine) { e.Reread(all, now) }, now)
}

// EndReread says that all objects were passed to Reread.
func (t *Tracker) EndReread(number uint32, now time.Time) {
	t.doReferrers(func(e *engine.Engine) { e.EndReread(number, now) }, now)
}

// doReferrers calls the engine, and takes turns until all references are processed.
func (t *Tracker) doReferrers(method func(*engine.Engine), now time.Time) {
	t.event(now, method)
	t.finish(now, func(e *engine.Engine) bool { return e.StepReferrers(now) })
}
