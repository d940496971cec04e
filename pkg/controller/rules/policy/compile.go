// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// Compile compiles a stored policy. It fails if the policy could not have passed validation, for example because a newer version wrote it.
// Then the valid fields must not be used either.
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
		if g.RequireServiceAccount {
			out.Cluster.bounds.RequireAccount = out.Name
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
	if name := spec.ServiceAccountName; name != "" && len(apivalidation.ValidateServiceAccountName(name, false)) > 0 {
		return nil, fmt.Errorf("spec.serviceAccountName: %q is not the name of a ServiceAccount", name)
	}
	out := &Policy{
		NamespacedName: types.NamespacedName{Namespace: m.Namespace, Name: m.Name},
		UID:            m.UID, Generation: m.Generation, Preview: spec.Mode == gc.ModePreview, Suspend: spec.Suspend,
		Account: spec.ServiceAccountName, annotationTTL: spec.AnnotationTTL,
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
		if r.all && m.Namespace != "" && spec.ServiceAccountName == "" {
			return nil, fmt.Errorf("spec.rules[%d].resources: %q is not allowed in a policy of a namespace without serviceAccountName",
				i, gc.ResourceAll)
		}
		if names.Has(r.Name) {
			return nil, fmt.Errorf("spec.rules[%d].name: %q is taken", i, r.Name)
		}
		names.Insert(r.Name)
		r.identify(m.UID)
		out.rules = append(out.rules, r)
	}
	return out, nil
}

// compileDefaultRule returns the default rule of a policy; nil if it has none.
func compileDefaultRule(spec *gc.CleanupPolicySpec) (*Rule, error) {
	defaults := spec.DefaultRule()
	if defaults == nil {
		return nil, nil
	}
	if spec.TTLAfterFinished != nil {
		if _, err := parseTTL(*spec.TTLAfterFinished); err != nil {
			return nil, fmt.Errorf("spec.ttlAfterFinished: %w", err)
		}
	}
	r, err := compileRule(defaults)
	if err != nil {
		return nil, fmt.Errorf("spec.%w", err)
	}
	return r, nil
}

func compileRule(r *gc.CleanupRule) (*Rule, error) {
	out := &Rule{
		Name: r.Name, resources: r.Resources, selector: labels.Everything(), outcome: r.Outcome, ttl: ttl{never: true},
		propagation: cmp.Or(r.PropagationPolicy, metav1.DeletePropagationBackground),
	}
	switch {
	case len(r.Resources) == 0:
		out.resources = defaultResources
	case slices.Equal(r.Resources, []string{gc.ResourceAll}):
		out.resources, out.all = nil, true
	}
	var err error
	out.options, err = compileOptions(r)
	if err := errors.Join(err, checkEnums(r), checkResources("resources", out.resources)); err != nil {
		return nil, err
	}
	if r.Selector != nil {
		if out.selector, err = metav1.LabelSelectorAsSelector(r.Selector); err != nil {
			return nil, fmt.Errorf("selector: %w", err)
		}
	}
	if err := errors.Join(
		out.compileConditions(r.MatchConditions), out.compileLimits(r), out.compileWait(r.WaitFor), out.compileNotice(r),
	); err != nil {
		return nil, err
	}
	return out, checkTrigger(r, out.trigger.Trigger, out.selector)
}

// checkTrigger returns an error if validation would refuse the rule because of its trigger.
func checkTrigger(r *gc.CleanupRule, t *gc.Trigger, selector labels.Selector) error {
	if r.Unfinished != "" && !t.CanTakeUnfinished() {
		return errors.New("unfinished: needs after: Created or Matched")
	}
	if err := checkNamed("resources", t, r.Resources); err != nil || t.NeedsFinish() {
		return err
	}
	named := len(r.Resources) > 0 && !slices.Contains(r.Resources, gc.ResourceAll)
	selects := !selector.Empty() || len(r.MatchConditions) > 0
	if !named || !selects || len(r.OnlyFinished()) > 0 {
		return fmt.Errorf("after: %s needs resources, and a selector or matchConditions, and no outcome or activeDeadline", r.After)
	}
	return nil
}

// checkNamed returns an error if a rule with the trigger must not name one of the resources.
func checkNamed(field string, t *gc.Trigger, resources []string) error {
	for _, resource := range resources {
		switch {
		case t.CanName(resource):
		case t.NeedsFinish():
			return fmt.Errorf("%s: %q never finish", field, resource)
		case len(t.Resources) == 0:
			return fmt.Errorf("%s: %q can be counted only from their creation", field, resource)
		default:
			return fmt.Errorf("after: %s is for %s", t.After, strings.Join(t.Resources, " and "))
		}
	}
	return nil
}

// compileLimits sets the TTL, the capacity and the deadline of a rule.
func (r *Rule) compileLimits(from *gc.CleanupRule) error {
	if !from.DoesSomething() {
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

// checkEnums checks the enumerated fields of a rule that are not options.
func checkEnums(r *gc.CleanupRule) error {
	errs := []error{
		oneOf("propagationPolicy", r.PropagationPolicy, "", metav1.DeletePropagationBackground, metav1.DeletePropagationForeground),
	}
	if r.Outcome != "" {
		errs = append(errs, oneOf("outcome", r.Outcome, gc.OutcomeSucceeded, gc.OutcomeFailed))
	}
	return errors.Join(errs...)
}

// checkResources returns an error if validation would refuse one of the resources.
func checkResources(field string, resources []string) error {
	var errs []error
	for _, resource := range resources {
		if why := gc.ResourceRefusal(resource); why != "" {
			errs = append(errs, fmt.Errorf("%s: %.64q %s", field, resource, why))
		}
	}
	return errors.Join(errs...)
}

// oneOf returns an error unless value is one of the words. Another version may give a meaning to other words, and this version must not act
// as if they were empty.
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
