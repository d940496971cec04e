// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/engine/scope"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// foresee returns an engine of the demonstration's own that has observed everything in the model, so that it decides as Winnow's does.
func (m *model) foresee(now time.Time) *engine.Engine {
	e := engine.New(memory.Config{HoldAbove: -1, HoldAboveTotal: -1})
	var own, cluster []scope.ObservedPolicy
	for _, p := range m.policies {
		switch p := p.object.(type) {
		case *gc.CleanupPolicy:
			own = append(own, scope.Observe(p))
		case *gc.ClusterCleanupPolicy:
			cluster = append(cluster, scope.Observe(p))
		}
	}
	byResource := map[string][]*facts.Compact{gc.ResourceJobs: nil, gc.ResourcePods: nil}
	for _, o := range m.objects {
		if o.gone.IsZero() {
			byResource[o.fact.Resource] = append(byResource[o.fact.Resource], facts.Compress(o.fact))
		}
	}
	e.ReplaceNamespaces(m.namespaces, "", now)
	e.ReplacePolicies(freshness.ClusterPolicies, cluster, "", now)
	e.ReplacePolicies(freshness.Policies, own, "", now)
	e.ReplaceQuotas(nil, now)
	e.ReplaceCronJobs(m.cronJobs)
	for resource, all := range byResource {
		list := e.BeginList(resource)
		list.Add(all, now)
		list.End(0, now)
	}
	e.Step(now)
	e.Lead() // It has adopted the holds in the status of the policies.
	return e
}

// mood groups states for the colours of the view, the least interesting first.
type mood int

const (
	gone mood = iota
	previewed
	calm
	soon
	kept
	stuck
)

// prospect is the state of an object, in a word or two, and the reason for it.
type prospect struct {
	state, why string
	mood       mood
}

// prospect returns the state of an object, and what is going to happen to it.
func (m *model) prospect(o *object, now time.Time) prospect {
	switch {
	case !o.gone.IsZero() && o.deletion != nil:
		return prospect{"gone", o.deletion.short(), gone}
	case !o.gone.IsZero():
		return prospect{"gone", "not by Winnow", gone}
	case !o.deleting.IsZero():
		return prospect{"terminating " + short(now.Sub(o.deleting)), m.words(o, "being deleted"), stuck}
	case !o.fact.Finished:
		return prospect{"running " + short(now.Sub(o.fact.Created)), cmp.Or(o.progress, "has not finished"), calm}
	}
	return m.forecastOf(o, now)
}

// forecastOf returns the prospect of a finished object that is not gone.
func (m *model) forecastOf(o *object, now time.Time) prospect {
	r, d := m.forecast.Decision(o.fact.UID)
	if r.Policy == nil {
		return prospect{"finished " + short(now.Sub(o.fact.FinishedAt)), "no policy matches it", calm}
	}
	why := fmt.Sprintf("by %s%s", byRule(r.Policy.String(), r.RuleName()), own(o.fact, r))
	at := clock(d.At)
	left := d.At.Sub(now)
	switch {
	case r.Policy.Preview && d.Action == policy.Delete:
		return prospect{"previewed", "would have been deleted at " + at + " " + why, previewed}
	case d.Action == policy.Keep:
		return prospect{"kept", howLong(r) + " " + why, kept}
	case d.Action == policy.Wait && left >= time.Minute:
		return prospect{"kept " + short(left), "until " + at + " " + why, kept}
	case d.Action == policy.Wait:
		return prospect{"waiting " + short(left), "due at " + at + " " + why, soon}
	case d.Reason == policy.ReasonHeld:
		return prospect{"held", fmt.Sprintf("until somebody approves hold %s of %s", d.Detail, r.Policy), stuck}
	case d.Action == policy.Hold:
		return prospect{"held", m.words(o, string(d.Reason)+" "+d.Detail), stuck}
	}
	return prospect{"due " + short(-left), m.words(o, why), soon}
}

// howLong says for how long an object without a due time is kept.
func howLong(r policy.Resolution) string {
	if r.Rule != nil && r.Rule.Capacity != nil {
		return "until newer ones replace it,"
	}
	return "forever"
}

// byRule names the policy that decides, with its rule if it has one.
func byRule(policy, rule string) string {
	if rule == "" {
		return policy
	}
	return policy + ", rule " + rule
}

// own names the TTLs that the object itself has.
func own(f *lifecycle.Fact, r policy.Resolution) string {
	var parts string
	if r.Native {
		parts += ", its own ttlSecondsAfterFinished"
	}
	if f.TTL != nil {
		parts += ", annotated ttl=" + *f.TTL
	}
	if f.KeepUntil != nil {
		parts += ", annotated keep-until=" + *f.KeepUntil
	}
	return parts
}

// words returns what the status of a policy says about an object, or otherwise if no status names the object.
func (m *model) words(o *object, otherwise string) string {
	for _, p := range m.policies {
		if p.Namespace != o.fact.Namespace {
			continue
		}
		ready := meta.FindStatusCondition(p.Status.Conditions, gc.ConditionReady)
		if ready == nil {
			continue
		}
		if said := about(ready.Message, o.fact); said != "" {
			return said
		}
	}
	return otherwise
}

// about returns the part of a message that is about an object: "Terminating: waits for finalizers ...".
func about(message string, f *lifecycle.Fact) string {
	said := regexp.MustCompile(`(\w+): ` + regexp.QuoteMeta(f.Resource+"/"+f.Name) + ` \((.*?)\)(\.| and \d+ more\.)`).
		FindStringSubmatch(message)
	if said == nil {
		return ""
	}
	return said[1] + ": " + said[2]
}

// nameOf returns the name of an object as an argument of kubectl.
func nameOf(f *lifecycle.Fact) string {
	kind := "job/"
	if f.Resource == gc.ResourcePods {
		kind = "pod/"
	}
	if f.Namespace != namespace {
		return kind + f.Name + " -n " + f.Namespace
	}
	return kind + f.Name
}

func short(d time.Duration) string { return duration.ShortHumanDuration(max(0, d)) }

func clock(t time.Time) string { return t.Local().Format(time.TimeOnly) }
