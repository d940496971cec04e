// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// Compile compiles a stored policy. It fails if the policy could not have passed validation, for example because a newer version
// wrote it. Then the fields that are valid mean nothing either.
func Compile(p *gc.CleanupPolicy) (*Policy, error) {
	return compileDefaults(&p.ObjectMeta, &p.Spec)
}

// CompileCluster compiles a stored cluster policy; see Compile.
func CompileCluster(p *gc.ClusterCleanupPolicy) (*Policy, error) {
	out, err := compileDefaults(&p.ObjectMeta, p.Spec.Defaults())
	if err != nil {
		return nil, err
	}
	if p.Spec.NamespaceSelector == nil {
		return nil, errors.New("spec.namespaceSelector is missing")
	}
	out.Cluster = &Cluster{SuspendAll: p.Spec.SuspendsAll(), bounds: NoBounds}
	if _, err := metav1.LabelSelectorAsSelector(p.Spec.NamespaceSelector); err != nil {
		return nil, fmt.Errorf("spec.namespaceSelector: %w", err)
	}
	if g := p.Spec.Guardrails; g != nil {
		if err := out.Cluster.compileGuardrails(g); err != nil {
			return nil, fmt.Errorf("spec.guardrails: %w", err)
		}
	}
	return out, nil
}

func compileDefaults(m *metav1.ObjectMeta, spec *gc.CleanupPolicySpec) (*Policy, error) {
	if why := gc.Unreadable(m); why != "" {
		return nil, errors.New(why)
	}
	if err := errors.Join(
		oneOf("spec.mode", spec.Mode, gc.ModeEnforce, gc.ModePreview),
		oneOf("spec.annotationTTL", spec.AnnotationTTL, gc.AnnotationExtendOnly, gc.AnnotationAny, gc.AnnotationIgnore),
	); err != nil {
		return nil, err
	}
	out := &Policy{
		NamespacedName: types.NamespacedName{Namespace: m.Namespace, Name: m.Name},
		UID:            m.UID, Generation: m.Generation, Preview: spec.Mode == gc.ModePreview, Suspend: spec.Suspend,
		annotationTTL: spec.AnnotationTTL,
	}
	var err error
	if out.defaults, err = compileDefaultRule(spec); err != nil {
		return nil, err
	}
	names := sets.New(gc.DefaultRuleName) // Objects are counted under the name of a rule.
	for i := range spec.Rules {
		r, err := compileRule(&spec.Rules[i])
		if err != nil {
			return nil, fmt.Errorf("spec.rules[%d]: %w", i, err)
		}
		if r.all && m.Namespace != "" {
			return nil, fmt.Errorf("spec.rules[%d].resources: %q is not allowed in a policy of a namespace", i, gc.ResourceAll)
		}
		if names.Has(r.Name) {
			return nil, fmt.Errorf("spec.rules[%d].name: %q is taken", i, r.Name)
		}
		names.Insert(r.Name)
		out.rules = append(out.rules, r)
	}
	return out, nil
}

// compileDefaultRule returns the rule of the defaults of a policy; nil if it has none.
func compileDefaultRule(spec *gc.CleanupPolicySpec) (*Rule, error) {
	if spec.TTLAfterFinished == nil && spec.Capacity == nil && spec.ActiveDeadline == nil {
		return nil, nil
	}
	if spec.TTLAfterFinished != nil {
		if _, err := parseTTL(*spec.TTLAfterFinished); err != nil {
			return nil, fmt.Errorf("spec.ttlAfterFinished: %w", err)
		}
	}
	r, err := compileRule(&gc.CleanupRule{
		Name: gc.DefaultRuleName, TTL: spec.TTLAfterFinished, Capacity: spec.Capacity, ActiveDeadline: spec.ActiveDeadline,
	})
	if err != nil {
		return nil, fmt.Errorf("spec.%w", err)
	}
	return r, nil
}

func compileRule(r *gc.CleanupRule) (*Rule, error) {
	out := &Rule{
		Name: r.Name, resources: r.Resources, selector: labels.Everything(), outcome: r.Outcome, ttl: ttl{never: true},
		after:     cmp.Or(r.After, gc.AfterFinished),
		withOwner: r.Dependents != gc.DependentsAfterOwnerFinished, managedElsewhere: r.ManagedElsewhere,
		propagation: cmp.Or(r.PropagationPolicy, metav1.DeletePropagationBackground),
	}
	switch {
	case len(r.Resources) == 0:
		out.resources = defaultResources
	case slices.Equal(r.Resources, []string{gc.ResourceAll}):
		out.resources, out.all = nil, true
	}
	if err := errors.Join(checkEnums(r), checkResources("resources", out.resources)); err != nil {
		return nil, err
	}
	if r.Selector != nil {
		var err error
		if out.selector, err = metav1.LabelSelectorAsSelector(r.Selector); err != nil {
			return nil, fmt.Errorf("selector: %w", err)
		}
	}
	if err := errors.Join(out.compileConditions(r.MatchConditions), out.compileLimits(r)); err != nil {
		return nil, err
	}
	return out, checkAfter(r, out.selector)
}

// checkAfter returns an error about what validation would refuse with this trigger.
func checkAfter(r *gc.CleanupRule, selector labels.Selector) error {
	if r.After == "" || r.After == gc.AfterFinished {
		return checkFinishing("resources", r.Resources)
	}
	if err := checkUnused(r); err != nil {
		return err
	}
	named := len(r.Resources) > 0 && !slices.Contains(r.Resources, gc.ResourceAll)
	selects := !selector.Empty() || len(r.MatchConditions) > 0
	if !named || !selects || r.TTL == nil || r.Outcome != "" || r.Capacity != nil || r.ActiveDeadline != nil {
		return fmt.Errorf("after: %s needs resources, a selector or matchConditions, and ttl, and no outcome, capacity or activeDeadline",
			r.After)
	}
	return nil
}

// checkFinishing returns an error about objects that never finish.
func checkFinishing(field string, resources []string) error {
	if slices.Contains(resources, gc.ResourceEvents) {
		return fmt.Errorf("%s: %q never finish", field, gc.ResourceEvents)
	}
	return nil
}

// checkUnused returns an error about a rule that counts from the last use of what cannot be unused.
func checkUnused(r *gc.CleanupRule) error {
	cannot := func(resource string) bool { return !gc.CanBeUnused(resource) }
	if r.After == gc.AfterUnused && slices.ContainsFunc(r.Resources, cannot) {
		return fmt.Errorf("after: %s is for %s and %s", r.After, gc.ResourceConfigMaps, gc.ResourceSecrets)
	}
	return nil
}

// compileLimits sets the TTL, the capacity and the deadline of a rule.
func (r *Rule) compileLimits(from *gc.CleanupRule) error {
	if from.TTL == nil && from.Capacity == nil && from.ActiveDeadline == nil {
		return errors.New("ttl, capacity and activeDeadline are missing")
	}
	if err := r.compileDeadline(from.ActiveDeadline); err != nil {
		return err
	}
	if from.TTL != nil {
		var err error
		if r.ttl, err = parseTTL(*from.TTL); err != nil {
			return fmt.Errorf("ttl: %w", err)
		}
	}
	if from.Capacity != nil {
		c, err := compileCapacity(from.Capacity)
		if err != nil {
			return fmt.Errorf("capacity: %w", err)
		}
		r.Capacity = c
	}
	return nil
}

func compileCapacity(c *gc.Capacity) (*Capacity, error) {
	if err := oneOf("per", c.Per, "", gc.CapacityPerNamespace, gc.CapacityPerOwner, gc.CapacityPerLabel); err != nil {
		return nil, err
	}
	if c.Per == gc.CapacityPerLabel && c.LabelKey == "" {
		return nil, errors.New("labelKey is missing")
	}
	out := &Capacity{per: c.Per, labelKey: c.LabelKey}
	if err := out.setLimit(c); err != nil {
		return nil, err
	}
	if c.MinAge != nil {
		minAge, err := parseDuration(*c.MinAge)
		if err != nil {
			return nil, fmt.Errorf("minAge: %w", err)
		}
		out.minAge = minAge.duration
	}
	return out, nil
}

func (c *Capacity) setLimit(from *gc.Capacity) (err error) {
	switch {
	case from.MaxObjects != nil && from.PercentOfQuota == nil:
		c.MaxObjects, err = inRange("maxObjects", *from.MaxObjects, 0, gc.MaxNumber)
	case from.PercentOfQuota != nil && from.MaxObjects == nil:
		c.PercentOfQuota, err = inRange("percentOfQuota", *from.PercentOfQuota, 1, 100)
	default:
		err = errors.New("exactly one of maxObjects and percentOfQuota must be set")
	}
	return err
}

// inRange returns n, or an error if validation would refuse it.
func inRange(field string, n, least, most int64) (int, error) {
	if n < least || n > most {
		return 0, fmt.Errorf("%s: %d is not between %d and %d", field, n, least, most)
	}
	return int(n), nil
}

func (c *Cluster) compileGuardrails(g *gc.Guardrails) error {
	var errs []error
	set := func(field string, d *gc.TTL, to *ttl) {
		if d != nil {
			var err error
			if *to, err = parseDuration(*d); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", field, err))
			}
		}
	}
	least := ttl{}
	set("minTTL", g.MinTTL, &least)
	set("maxTTL", g.MaxTTL, &c.bounds.maxTTL)
	c.bounds.minTTL = least.duration
	c.bounds.forbidNever = g.AllowNever != nil && !*g.AllowNever
	count := func(field string, n *int64, least int64, to *int) {
		if n != nil {
			var err error
			*to, err = inRange(field, *n, least, gc.MaxNumber)
			errs = append(errs, err)
		}
	}
	count("maxDeletionsPerMinute", g.MaxDeletionsPerMinute, 1, &c.bounds.PerMinute)
	if g.HoldAbove != nil {
		count("holdAbove.objects", g.HoldAbove.Objects, 0, &c.bounds.HoldAbove.Objects)
		count("holdAbove.total", g.HoldAbove.Total, 0, &c.bounds.HoldAbove.Total)
	}
	return errors.Join(append(errs, c.compileCeilings(g)...)...)
}

func (c *Cluster) compileCeilings(g *gc.Guardrails) (errs []error) {
	c.Ceilings = map[string]int{}
	for i := range g.Ceilings {
		resources := g.Ceilings[i].Resources
		if len(resources) == 0 {
			resources = defaultResources
		}
		field := fmt.Sprintf("ceilings[%d].resources", i)
		errs = append(errs, checkResources(field, resources), checkFinishing(field, resources))
		for _, resource := range resources {
			if g.Ceilings[i].MaxObjects == nil {
				errs = append(errs, fmt.Errorf("ceilings[%d].maxObjects is missing", i))
				continue
			}
			most, err := inRange(fmt.Sprintf("ceilings[%d].maxObjects", i), *g.Ceilings[i].MaxObjects, 0, gc.MaxNumber)
			c.Ceilings[resource], errs = most, append(errs, err)
		}
	}
	return errs
}

// checkEnums checks the enumerated fields of a rule. Those with a default may be empty: rules are an atomic list, so a default that the
// API server filled in would show up as a difference to whoever applies the policy.
func checkEnums(r *gc.CleanupRule) error {
	errs := []error{
		oneOf("after", r.After, "", gc.AfterFinished, gc.AfterCreated, gc.AfterUnused),
		oneOf("dependents", r.Dependents, "", gc.DependentsWithOwner, gc.DependentsAfterOwnerFinished),
		oneOf("propagationPolicy", r.PropagationPolicy, "", metav1.DeletePropagationBackground, metav1.DeletePropagationForeground),
		oneOf("managedElsewhere", r.ManagedElsewhere, "", gc.ManagedElsewhereHold, gc.ManagedElsewhereDelete),
	}
	if r.Outcome != "" {
		errs = append(errs, oneOf("outcome", r.Outcome, gc.OutcomeSucceeded, gc.OutcomeFailed))
	}
	return errors.Join(errs...)
}

// checkResources returns an error about resources that validation would refuse.
func checkResources(field string, resources []string) error {
	var errs []error
	for _, resource := range resources {
		if why := gc.ResourceRefusal(resource); why != "" {
			errs = append(errs, fmt.Errorf("%s: %.64q %s", field, resource, why))
		}
	}
	return errors.Join(errs...)
}

// oneOf returns an error unless value is one of the words. Another version may give a meaning to other words, which must not be
// mistaken for its opposite.
func oneOf[T ~string](field string, value T, words ...T) error {
	if slices.Contains(words, value) {
		return nil
	}
	return fmt.Errorf("%s: %.64q is not one of %q", field, value, words)
}

func parseTTL(t gc.TTL) (ttl, error) {
	d, never, err := t.Parse()
	return ttl{duration: d, never: never}, err
}

// parseDuration parses a TTL that may not be "never".
func parseDuration(t gc.TTL) (ttl, error) {
	d, err := gc.ParseDuration(string(t))
	return ttl{duration: d}, err
}
