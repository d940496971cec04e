// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/objects/references"
	"github.com/winnow-dev/winnow/pkg/controller/objects/usage"
)

// Knowledge.Usage has the objects that rules with after: Unused apply to, as long as their namespace has such a rule. What refers to them
// is observed as long as any namespace has one.

// SetReferrerSources sets where referrers are listed and watched; see usage.Tracker. why says why referrers of other sources may be
// missing; empty if none is missing.
func (k *Knowledge) SetReferrerSources(names []string, why string, now time.Time) {
	k.usageChanged(k.Usage.SetSources(names, why, now), now)
	k.StepReferrers(now)
	if why != "" {
		k.giveUp(kinds.Referrers, now)
	}
}

// ForgetReferrers forgets all referrers, because they are no longer observed.
func (k *Knowledge) ForgetReferrers(now time.Time) {
	k.usageChanged(k.Usage.Forget(now), now)
	k.StepReferrers(now)
	k.Unheard(kinds.Referrers)
}

// ObservingReferrers records whether a source can be listed and watched; why is nil if it can.
func (k *Knowledge) ObservingReferrers(source string, why error, now time.Time) {
	if why == nil {
		k.usageChanged(k.Usage.Failing(source, "", now), now)
		return
	}
	k.usageChanged(k.Usage.Failing(source, source+" cannot be observed: "+why.Error(), now), now)
	k.giveUp(kinds.Referrers, now)
}

// BeginReferrers begins a list of all referrers of a source. Until EndReferrers, nothing is unused.
func (k *Knowledge) BeginReferrers(source string, now time.Time) {
	k.usageChanged(k.Usage.BeginList(source, now), now)
}

// EndReferrers ends the list of a source that began last.
func (k *Knowledge) EndReferrers(source string, now time.Time) {
	k.usageChanged(k.Usage.EndList(source, now), now)
	k.StepReferrers(now)
}

// Referring is what an object of a source refers to.
type Referring struct {
	Source string
	references.Referrer
	Keys []references.Key
}

// SetReferring replaces what objects refer to.
func (k *Knowledge) SetReferring(all []Referring, now time.Time) {
	for i := range all {
		r := &all[i]
		k.Usage.SetReferrer(r.Source, r.Referrer, r.Keys)
	}
	k.StepReferrers(now)
}

// RemoveReferrer removes a referrer.
func (k *Knowledge) RemoveReferrer(source string, uid types.UID, now time.Time) {
	k.Usage.RemoveReferrer(source, uid)
	k.StepReferrers(now)
}

// StepKeys is how many keys are processed before the budget is checked again.
const StepKeys = 64

// StepReferrers processes references that were set or removed, as many as the budget allows, and reports whether there is more to do.
// References that are not processed yet count as they did before.
func (k *Knowledge) StepReferrers(now time.Time) (more bool) {
	for more = true; more; {
		var changed usage.Changed[*memory.Record]
		changed, more = k.Usage.Step(StepKeys, now)
		k.usageChanged(changed, now)
		if more && k.Spent(StepKeys) {
			return true
		}
	}
	return false
}

// BeginReread begins to read again the referrers of the namespaces that it returns; see usage.Tracker.
func (k *Knowledge) BeginReread() (number uint32, namespaces []string) { return k.Usage.BeginReread() }

// Reread processes the references of objects that were read again.
func (k *Knowledge) Reread(all []Referring, now time.Time) {
	for i := range all {
		k.Usage.Reread(all[i].Namespace, all[i].Keys)
	}
	k.StepReferrers(now)
}

// EndReread says that all objects were passed to Reread.
func (k *Knowledge) EndReread(number uint32, now time.Time) {
	k.Usage.EndReread(number)
	k.StepReferrers(now)
}

// usageChanged touches the objects whose usage may have changed.
func (k *Knowledge) usageChanged(c usage.Changed[*memory.Record], now time.Time) {
	var all []*memory.Namespace
	switch {
	case c.All:
		if k.Usage.Known() {
			k.recovered(kinds.Referrers, now)
		}
		for _, ns := range k.Namespaces {
			if len(ns.Unused) > 0 {
				all = append(all, ns)
			}
		}
	case len(c.Namespaces) > 0:
		for _, name := range c.Namespaces {
			all = append(all, k.Namespaces[name])
		}
	case len(c.Objects) == 0:
		return
	}
	for _, ns := range all {
		k.MarksChanged(ns)
	}
	if len(all) > 0 {
		k.TouchNamespaces(all)
	}
	for _, rec := range c.Objects {
		k.MarksChanged(rec.NS)
		k.Touch(rec)
	}
}

// UpdateTracking adds to Knowledge.Usage the objects of a namespace that rules with after: Unused apply to, and removes the others. former
// are the resources that such rules applied to before.
func (k *Knowledge) UpdateTracking(ns *memory.Namespace, former sets.Set[string], now time.Time) {
	if ns.Unused.Equal(former) {
		return
	}
	for _, rec := range ns.Records {
		if ns.Unused.Has(rec.Resource) {
			k.Track(rec, now)
		} else {
			k.Usage.Delete(rec)
		}
	}
	k.MarksChanged(ns)
}

// Track adds a record to Knowledge.Usage, if rules with after: Unused apply to it.
func (k *Knowledge) Track(rec *memory.Record, now time.Time) {
	if ns := rec.NS; ns.Unused.Has(rec.Resource) {
		k.Usage.Add(rec, UsageObject(rec), Mark(ns, rec, now), now)
		k.MarksChanged(ns)
	}
}

// Untrack removes a record from Knowledge.Usage.
func (k *Knowledge) Untrack(rec *memory.Record) {
	if k.Usage.Has(rec) {
		k.Usage.Delete(rec)
		k.MarksChanged(rec.NS)
	}
}

// UsageObject returns the object of a record as Knowledge.Usage identifies it.
func UsageObject(rec *memory.Record) usage.Object {
	return usage.Object{To: kinds.ToOf(rec.Resource), Namespace: rec.Namespace, Name: rec.Name()}
}

// UsageOf returns the usage of a record.
func (k *Knowledge) UsageOf(rec *memory.Record) lifecycle.Usage {
	switch ns := rec.NS; {
	case !ns.Unused.Has(rec.Resource):
		return lifecycle.Usage{}
	case k.CopiedUsages != nil:
		return k.CopiedUsages[rec.UID()]
	}
	return k.Usage.Usage(rec)
}

// referrersKnown reports whether the usage of the objects in a namespace is known, if it matters.
func (k *Knowledge) referrersKnown(ns *memory.Namespace) bool {
	return len(ns.Unused) == 0 || k.CopiedUsages != nil || k.Usage.Known() || k.Failing.Skipped.Has(kinds.Referrers)
}
