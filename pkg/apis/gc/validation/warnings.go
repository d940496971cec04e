// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// shortTTL is the time that people need to look at a finished object.
const shortTTL = time.Minute

// Warnings returns what is valid in a policy but probably not meant, each as "path: message".
func Warnings(p *gc.CleanupPolicy) []string {
	spec := field.NewPath("spec")
	if len(p.Spec.AllRules()) == 0 {
		return warn(spec, "is empty, so the policy does nothing; set ttlAfterFinished, capacity or a rule")
	}
	return specWarnings(&p.Spec, spec)
}

// ClusterWarnings is Warnings for a cluster policy.
func ClusterWarnings(p *gc.ClusterCleanupPolicy) []string {
	spec, defaults := field.NewPath("spec"), p.Spec.Defaults()
	guardrails := p.Spec.Guardrails != nil && !apiequality.Semantic.DeepEqual(p.Spec.Guardrails, &gc.Guardrails{})
	if len(defaults.AllRules()) == 0 && !guardrails {
		return warn(
			spec,
			"has no defaults, rules or guardrails, so the policy does nothing; set ttlAfterFinished, capacity, a rule or guardrails",
		)
	}
	warnings := specWarnings(defaults, spec)
	if p.Spec.Suspend && !p.Spec.SuspendsAll() {
		warnings = append(warnings, warn(spec.Child("suspend"),
			"suspends only this policy; to stop all deletions in the selected namespaces, set spec.guardrails.suspendAll")...)
	}
	if p.Spec.SuspendsAll() {
		warnings = append(warnings, warn(spec.Child("guardrails", "suspendAll"),
			"nothing is deleted in the selected namespaces, by any policy, until this is false")...)
	}
	if guardrails && !apiequality.Semantic.DeepEqual(p.Spec.Guardrails, &gc.Guardrails{SuspendAll: true}) {
		warnings = append(warnings, guardrailWarnings(&p.Spec, spec.Child("guardrails"))...)
	}
	return warnings
}

func warn(path *field.Path, format string, args ...any) []string {
	return []string{path.String() + ": " + fmt.Sprintf(format, args...)}
}

func specWarnings(spec *gc.CleanupPolicySpec, path *field.Path) []string {
	warnings := shortTTLWarning(spec.TTLAfterFinished, path.Child("ttlAfterFinished"))
	warnings = append(warnings, capacityWarnings(spec.DefaultRule(), path.Child("capacity"))...)
	for i := range spec.Rules {
		rule, path := &spec.Rules[i], path.Child("rules").Index(i)
		warnings = append(warnings, shortTTLWarning(rule.TTL, path.Child("ttl"))...)
		warnings = append(warnings, capacityWarnings(rule, path.Child("capacity"))...)
		warnings = append(warnings, waitForWarnings(rule, path.Child("waitFor"))...)
		warnings = append(warnings, noticeWarnings(rule, path.Child("notice"))...)
		warnings = append(warnings, unfinishedWarning(rule, path.Child("unfinished"))...)
		warnings = append(warnings, dependentsWarning(rule, path.Child("dependents"))...)
		warnings = append(warnings, unreachableWarning(spec.Rules[:i], rule, path)...)
	}
	return warnings
}

func guardrailWarnings(spec *gc.ClusterCleanupPolicySpec, path *field.Path) []string {
	if spec.Mode == gc.ModePreview {
		return warn(
			path,
			"have no effect in mode Preview; set mode: Enforce, and move them to a policy without defaults and rules if those must not delete yet",
		)
	}
	g := spec.Guardrails
	var warnings []string
	least, bounded := duration(g.MinTTL)
	if least < shortTTL {
		warnings = shortTTLWarning(g.MaxTTL, path.Child("maxTTL"))
	}
	if most, ok := duration(g.MaxTTL); ok && bounded && least > most {
		warnings = append(warnings, warn(path.Child("minTTL"), "%s is above maxTTL %s: minTTL wins", *g.MinTTL, *g.MaxTTL)...)
	}
	warnings = append(warnings, windowWarnings(g.Windows, path.Child("windows"))...)
	for i, ceiling := range g.Ceilings {
		if ceiling.MaxObjects != nil && *ceiling.MaxObjects == 0 && least < shortTTL {
			warnings = append(warnings, warn(path.Child("ceilings").Index(i).Child("maxObjects"),
				"0 deletes objects as soon as they finish; set minTTL to leave time to look at them")...)
		}
	}
	return warnings
}

func shortTTLWarning(ttl *gc.TTL, path *field.Path) []string {
	if d, ok := duration(ttl); !ok || d >= shortTTL {
		return nil
	}
	return warn(path, "%s is under a minute: objects may be gone before anyone looks at them", *ttl)
}

// capacityWarnings compares the capacity of a rule with its TTL. The rule may be nil.
func capacityWarnings(rule *gc.CleanupRule, path *field.Path) []string {
	if rule == nil || rule.Capacity == nil {
		return nil
	}
	warnings := ownerWarning(rule, path.Child("per"))
	c, ttl, event := rule.Capacity, rule.TTL, gc.TriggerOf(rule.After).Event
	age, _ := duration(c.MinAge)
	if c.MaxObjects != nil && *c.MaxObjects == 0 && age < shortTTL {
		warnings = append(warnings, warn(path.Child("maxObjects"),
			"0 deletes objects right after their %s; set minAge to leave time to look at them", event)...)
	}
	if c.PercentOfQuota != nil && (c.Per == gc.CapacityPerOwner || c.Per == gc.CapacityPerLabel) {
		warnings = append(warnings, warn(
			path.Child("percentOfQuota"),
			"with per: %s each group may use %d %% of the quota, so a few groups fill it; use maxObjects, or per: Namespace",
			c.Per,
			*c.PercentOfQuota,
		)...)
	}
	if limit, ok := duration(ttl); ok && c.MinAge != nil && age >= limit {
		warnings = append(warnings, warn(path.Child("minAge"),
			"%s is not shorter than the TTL of %s, so capacity never deletes anything; shorten it, or remove capacity", *c.MinAge, *ttl)...)
	}
	return warnings
}

// unfinishedWarning is about unfinished: Delete where nothing finishes.
func unfinishedWarning(rule *gc.CleanupRule, path *field.Path) []string {
	finish := len(rule.Resources) == 0 || slices.ContainsFunc(rule.Resources, func(r string) bool { return !gc.CanBeUnused(r) })
	if rule.Unfinished != gc.UnfinishedDelete || finish {
		return nil
	}
	return warn(path, "has no effect: ConfigMaps and Secrets do not finish, so the rule deletes them anyway; remove it")
}

// ownerWarning is about per: Owner where most objects with a controller are left to it.
func ownerWarning(rule *gc.CleanupRule, path *field.Path) []string {
	withOwner := rule.Dependents == "" || rule.Dependents == gc.DependentsWithOwner
	left := !gc.TriggerOf(rule.After).NeedsFinish() && withOwner
	if rule.Capacity.Per != gc.CapacityPerOwner || !left || slices.Contains(rule.Resources, gc.ResourceJobs) {
		return nil
	}
	return warn(path, "Owner counts almost nothing: it counts objects with a controller, and those are left to it; use Namespace or Label, "+
		"or set dependents: AfterOwnerFinished")
}

// waitForWarnings is about a waitFor that has no effect, or no end.
func waitForWarnings(rule *gc.CleanupRule, path *field.Path) []string {
	if rule.WaitFor == nil {
		return nil
	}
	_, byTime := duration(rule.TTL)
	switch {
	case !byTime && rule.Capacity == nil:
		return warn(path, "has no effect by itself, because the rule never deletes; set a ttl other than never, or capacity")
	case !byTime && rule.WaitFor.OnTimeout == gc.WaitTimeoutDelete:
		return warn(path.Child("onTimeout"), "Delete has no effect: atMost counts from the end of the ttl, and the rule has none, "+
			"so objects above capacity wait without end; set ttl")
	}
	return nil
}

// dependentsWarning is about OnceCounted in a rule that matches no Pods.
func dependentsWarning(rule *gc.CleanupRule, path *field.Path) []string {
	if rule.Dependents != gc.DependentsOnceCounted || resources(rule.Resources).Has(gc.ResourcePods) {
		return nil
	}
	return warn(path, "OnceCounted differs from AfterOwnerFinished only for pods, and the rule does not name them; add pods to resources, "+
		"or write AfterOwnerFinished")
}

// duration returns false for a TTL that is unset, invalid, or never.
func duration(ttl *gc.TTL) (time.Duration, bool) {
	if ttl == nil {
		return 0, false
	}
	d, never, err := ttl.Parse()
	return d, err == nil && !never
}

// unreachableWarning names the first earlier rule that matches all objects of this one.
func unreachableWarning(before []gc.CleanupRule, rule *gc.CleanupRule, path *field.Path) []string {
	for i := range before {
		if covers(&before[i], rule) {
			return warn(
				path,
				"never applies: rule %q before it matches the same objects; move this rule first, or remove it",
				before[i].Name,
			)
		}
	}
	return nil
}

// covers reports whether a rule obviously matches every object that another one matches.
func covers(rule, other *gc.CleanupRule) bool {
	return (rule.Outcome == "" || rule.Outcome == other.Outcome) && meansMore(rule.MatchConditions, other.MatchConditions) &&
		resources(rule.Resources).IsSuperset(resources(other.Resources)) &&
		requirements(other.Selector).IsSuperset(requirements(rule.Selector))
}

// meansMore reports whether obviously every object that meets the other conditions meets these.
func meansMore(conditions, other []gc.MatchCondition) bool {
	for i := range conditions {
		same := func(c gc.MatchCondition) bool { return c.Expression == conditions[i].Expression }
		if !slices.ContainsFunc(other, same) {
			return false
		}
	}
	return true
}

// requirements returns the requirements of a selector, each in a canonical form.
func requirements(selector *metav1.LabelSelector) sets.Set[string] {
	required := sets.New[string]()
	if selector == nil {
		return required
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return required.Insert(err.Error()) // refused elsewhere
	}
	all, _ := parsed.Requirements()
	for i := range all {
		required.Insert(all[i].String())
	}
	return required
}
