// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// shortTTL is what people need to look at a result before it is gone.
const shortTTL = time.Minute

// Warnings returns what is valid in a policy and yet probably not meant, each as "path: message".
func Warnings(p *gc.CleanupPolicy) []string {
	spec := field.NewPath("spec")
	if p.Spec.TTLAfterFinished == nil && len(p.Spec.Rules) == 0 {
		return []string{fmt.Sprintf("%s: is empty, so the policy does nothing; set ttlAfterFinished or a rule", spec)}
	}
	warnings := shortTTLWarning(p.Spec.TTLAfterFinished, spec.Child("ttlAfterFinished"))
	for i := range p.Spec.Rules {
		path := spec.Child("rules").Index(i)
		warnings = append(warnings, shortTTLWarning(p.Spec.Rules[i].TTL, path.Child("ttl"))...)
		warnings = append(warnings, unreachableWarning(p.Spec.Rules[:i], &p.Spec.Rules[i], path)...)
	}
	return warnings
}

func shortTTLWarning(ttl *gc.TTL, path *field.Path) []string {
	if ttl == nil {
		return nil
	}
	if d, never, err := ttl.Parse(); err != nil || never || d >= shortTTL {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s is under a minute: objects may be gone before anyone has looked", path, *ttl)}
}

// unreachableWarning names the first rule before this one that takes all its objects. Selectors are not compared.
func unreachableWarning(before []gc.CleanupRule, rule *gc.CleanupRule, path *field.Path) []string {
	for i := range before {
		if takesAll(&before[i]) && resources(&before[i]).IsSuperset(resources(rule)) {
			return []string{fmt.Sprintf("%s: is never reached, since rule %q before it matches everything; put this one first", path, before[i].Name)}
		}
	}
	return nil
}

// takesAll is whether a rule matches every object of its resources.
func takesAll(rule *gc.CleanupRule) bool {
	everything := rule.Selector == nil || len(rule.Selector.MatchLabels) == 0 && len(rule.Selector.MatchExpressions) == 0
	return everything && rule.Outcome == ""
}

func resources(rule *gc.CleanupRule) sets.Set[string] {
	if len(rule.Resources) == 0 {
		return sets.New(supportedResources...)
	}
	return sets.New(rule.Resources...)
}
