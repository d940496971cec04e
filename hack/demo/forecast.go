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
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// forecaster knows the policies by namespace, those in Preview apart.
type forecaster struct {
	enforced, previewed map[string][]*policy.Policy
}

func newForecaster(policies []v1alpha1.CleanupPolicy) (forecaster, error) {
	f := forecaster{map[string][]*policy.Policy{}, map[string][]*policy.Policy{}}
	for i := range policies {
		internal := &gc.CleanupPolicy{}
		if err := v1alpha1.Convert_v1alpha1_CleanupPolicy_To_gc_CleanupPolicy(&policies[i], internal, nil); err != nil {
			return f, err
		}
		p, err := policy.Compile(internal)
		if err != nil {
			return f, fmt.Errorf("policy %s/%s: %w", internal.Namespace, internal.Name, err)
		}
		if p.Preview {
			f.previewed[p.Namespace] = append(f.previewed[p.Namespace], p)
		} else {
			f.enforced[p.Namespace] = append(f.enforced[p.Namespace], p)
		}
	}
	return f, nil
}

// decide tells what is to become of an object. Nothing that is shown has a controller that counts on it.
func (f forecaster) decide(fact *lifecycle.Fact, now time.Time) (r policy.Resolution, d policy.Decision, preview bool) {
	votes := policy.Votes(nil, fact, f.enforced[fact.Namespace], nil)
	if len(votes) == 0 {
		votes = policy.Votes(nil, fact, f.previewed[fact.Namespace], nil)
		preview = len(votes) > 0
	}
	standing := policy.Resolve(policy.Object{Fact: fact}, votes)
	r, d = standing.Decide(policy.Limits{Bounds: &policy.NoBounds}, now)
	return r, d, preview
}

// mood is how a state is to be seen at a glance, the least interesting first.
type mood int

const (
	gone mood = iota
	previewed
	calm
	soon
	kept
	stuck
)

// outlook is the state of an object, in a word or two, and why it is so.
type outlook struct {
	state, why string
	mood       mood
}

// outlook tells what is and what is to come of an object.
func (m *model) outlook(o *object, now time.Time) outlook {
	switch {
	case !o.gone.IsZero() && o.deletion != nil:
		return outlook{"gone", o.deletion.short(), gone}
	case !o.gone.IsZero():
		return outlook{"gone", "not by Winnow", gone}
	case !o.deleting.IsZero():
		return outlook{"terminating " + short(now.Sub(o.deleting)), m.words(o, "being deleted"), stuck}
	case !o.fact.Finished:
		return outlook{"running " + short(now.Sub(o.fact.Created)), cmp.Or(o.progress, "has not finished"), calm}
	}
	return m.forecastOf(o, now)
}

// forecastOf is the outlook of what has finished and is there.
func (m *model) forecastOf(o *object, now time.Time) outlook {
	r, d, preview := m.forecast.decide(o.fact, now)
	if r.Policy == nil {
		return outlook{"finished " + short(now.Sub(o.fact.FinishedAt)), "no policy matches it", kept}
	}
	why := fmt.Sprintf("by %s, rule %s%s", r.Policy, r.RuleName(), own(o.fact, r))
	at := clock(d.At)
	left := d.At.Sub(now)
	switch {
	case preview && d.Action == policy.Delete:
		return outlook{"previewed", "would have gone at " + at + " " + why, previewed}
	case d.Action == policy.Keep:
		return outlook{"kept", "for ever " + why, kept}
	case d.Action == policy.Wait && left >= time.Minute:
		return outlook{"kept " + short(left), "until " + at + " " + why, kept}
	case d.Action == policy.Wait:
		return outlook{"waiting " + short(left), "goes at " + at + " " + why, soon}
	case d.Action == policy.Hold:
		return outlook{"held", m.words(o, string(d.Reason)+" "+d.Detail), stuck}
	}
	return outlook{"due " + short(-left), m.words(o, why), soon}
}

// own names what the object itself asks for.
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

// words are what the status of a policy says of an object, or else the given ones.
func (m *model) words(o *object, otherwise string) string {
	for i := range m.policies {
		p := &m.policies[i]
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

// about is the part of a message that speaks of an object: "Terminating: waits for finalizers ...".
func about(message string, f *lifecycle.Fact) string {
	said := regexp.MustCompile(`(\w+): ` + regexp.QuoteMeta(f.Resource+"/"+f.Name) + ` \((.*?)\)(\.| and \d+ more\.)`).FindStringSubmatch(message)
	if said == nil {
		return ""
	}
	return said[1] + ": " + said[2]
}

// nameOf names an object as kubectl takes it.
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
