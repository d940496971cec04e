// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

func ttl(s gc.TTL) *gc.TTL { return &s }

func rule(name string, change ...func(*gc.CleanupRule)) gc.CleanupRule {
	r := gc.CleanupRule{Name: name, TTL: ttl("7d")}
	for _, f := range change {
		f(&r)
	}
	return r
}

func policy(rules ...gc.CleanupRule) *gc.CleanupPolicy {
	return &gc.CleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "defaults", Namespace: "team-a"},
		Spec:       gc.CleanupPolicySpec{TTLAfterFinished: ttl("1h"), Rules: rules},
	}
}

func number(n int64) *int64 { return &n }

func limited(c gc.Capacity) func(*gc.CleanupRule) {
	return func(r *gc.CleanupRule) { r.Capacity = &c }
}

// created makes a rule count from the creation.
func created() func(*gc.CleanupRule) {
	return func(r *gc.CleanupRule) {
		r.After, r.Resources = gc.AfterCreated, []string{"configmaps"}
		r.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "preview"}}
	}
}

// matched makes a rule count from the match.
func matched() func(*gc.CleanupRule) {
	return func(r *gc.CleanupRule) {
		created()(r)
		r.After = gc.AfterMatched
	}
}

// unused makes a rule count from the last use.
func unused(resources ...string) func(*gc.CleanupRule) {
	return func(r *gc.CleanupRule) {
		created()(r)
		r.After, r.Resources = gc.AfterUnused, resources
	}
}

func of(resources ...string) func(*gc.CleanupRule) {
	return func(r *gc.CleanupRule) { r.Resources = resources }
}

func TestValid(t *testing.T) {
	for name, p := range map[string]*gc.CleanupPolicy{
		"defaults": policy(),
		"empty":    {ObjectMeta: metav1.ObjectMeta{Name: "empty", Namespace: "team-a"}},
		"dots":     {ObjectMeta: metav1.ObjectMeta{Name: "team-a.defaults", Namespace: "team-a"}},
		"rules": policy(
			rule("failures", of(gc.ResourceJobs)),
			rule("all", of(gc.ResourcePods, gc.ResourceJobs), func(r *gc.CleanupRule) { r.TTL = ttl(gc.TTLNever) }),
			rule("selected", func(r *gc.CleanupRule) {
				r.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "train"}}
				r.TTL = ttl("0s")
			}),
			rule("few", func(r *gc.CleanupRule) {
				r.TTL, r.Capacity = nil, &gc.Capacity{MaxObjects: number(3), Per: gc.CapacityPerOwner}
			}),
			rule("unused", unused("configmaps", "secrets")),
			rule("unused by condition", unused("configmaps"), func(r *gc.CleanupRule) {
				r.Selector, r.MatchConditions = nil, []gc.MatchCondition{{Name: "a", Expression: "object.metadata.name.startsWith('web-')"}}
			}),
			rule("unused for ever", unused("secrets"), func(r *gc.CleanupRule) { r.TTL = ttl(gc.TTLNever) }),
			rule("few of each", limited(gc.Capacity{
				PercentOfQuota: number(50), Per: gc.CapacityPerLabel, LabelKey: "example.com/pipeline", MinAge: ttl("10m"),
			})),
		),
	} {
		if errs := ValidateCleanupPolicy(p); len(errs) > 0 {
			t.Errorf("%s: %v", name, errs)
		}
		if errs := ValidateCleanupPolicyUpdate(p, p); len(errs) > 0 {
			t.Errorf("%s, updated: %v", name, errs)
		}
	}
}

// manyConditions returns rules with 16 match conditions each.
func manyConditions(rules int) []gc.CleanupRule {
	var out []gc.CleanupRule
	for i := range rules {
		out = append(out, rule(fmt.Sprint("a", i), func(r *gc.CleanupRule) {
			for j := range 16 {
				r.MatchConditions = append(r.MatchConditions, gc.MatchCondition{Name: fmt.Sprint("c", j), Expression: "object.kind == 'Job'"})
			}
		}))
	}
	return out
}

// TestInvalid says of each wrong policy which field is refused, for which kind of reason, and what the remedy is.
func TestInvalid(t *testing.T) {
	type refused struct {
		field  string
		reason field.ErrorType
		remedy string
	}
	const example = gc.TTLExample
	for name, tc := range map[string]struct {
		policy *gc.CleanupPolicy
		want   refused
	}{
		"duration":       {withTTL("1.5h"), refused{"spec.ttlAfterFinished", field.ErrorTypeInvalid, example}},
		"long duration":  {withTTL("99999999999d"), refused{"spec.ttlAfterFinished", field.ErrorTypeInvalid, "ten years"}},
		"many digits":    {withTTL(gc.TTL(strings.Repeat("0", 40) + "1s")), refused{"spec.ttlAfterFinished", field.ErrorTypeTooLong, example}},
		"empty duration": {withTTL(""), refused{"spec.ttlAfterFinished", field.ErrorTypeInvalid, example}},
		"rule's duration": {
			policy(rule("a", func(r *gc.CleanupRule) { r.TTL = ttl("1h30") })),
			refused{"spec.rules[0].ttl", field.ErrorTypeInvalid, example},
		},
		"rule without ttl": {
			policy(rule("a", func(r *gc.CleanupRule) { r.TTL = nil })),
			refused{"spec.rules[0].ttl", field.ErrorTypeRequired, example},
		},
		"conditions on the data of Secrets": {
			policy(rule("a", created(), of("configmaps", gc.ResourceSecrets), func(r *gc.CleanupRule) {
				r.MatchConditions = []gc.MatchCondition{
					{Name: "a", Expression: "object.metadata.name == 'a'"}, {Name: "b", Expression: "object.type == 'Opaque'"},
				}
			})),
			refused{"spec.rules[0].matchConditions[1].expression", field.ErrorTypeInvalid, "select them by label"},
		},
		"many conditions": {
			policy(manyConditions(5)...),
			refused{"spec.rules", field.ErrorTypeTooMany, "at most 64 matchConditions together"},
		},
		"deadline of zero": {
			policy(rule("a", func(r *gc.CleanupRule) { r.ActiveDeadline = ttl("0s") })),
			refused{"spec.rules[0].activeDeadline", field.ErrorTypeInvalid, `at least "1s"`},
		},
		"deadline of never": {
			policy(rule("a", func(r *gc.CleanupRule) { r.ActiveDeadline = ttl(gc.TTLNever) })),
			refused{"spec.rules[0].activeDeadline", field.ErrorTypeInvalid, "must be a duration; " + durationExample + ", or leave it unset"},
		},
		"deadline of what has none": {
			policy(rule("a", of("pods", "workflows.argoproj.io"), func(r *gc.CleanupRule) { r.ActiveDeadline = ttl("6h") })),
			refused{"spec.rules[0].activeDeadline", field.ErrorTypeInvalid, `deadlines for Jobs and Pods only; move "workflows.argoproj.io" to`},
		},
		"after its creation, of any resource": {
			policy(rule("a", created(), func(r *gc.CleanupRule) { r.Resources = nil })),
			refused{"spec.rules[0].resources", field.ErrorTypeRequired, "name each resource"},
		},
		"after its creation, whatever its labels": {
			policy(rule("a", created(), func(r *gc.CleanupRule) { r.Selector = &metav1.LabelSelector{} })),
			refused{"spec.rules[0].selector", field.ErrorTypeRequired, "select the objects by label"},
		},
		"after its creation, without a ttl": {
			policy(rule("a", created(), func(r *gc.CleanupRule) { r.TTL = nil; r.PropagationPolicy = "" })),
			refused{"spec.rules[0].ttl", field.ErrorTypeRequired, example},
		},
		"after its creation, with an outcome": {
			policy(rule("a", created(), func(r *gc.CleanupRule) { r.Outcome = gc.OutcomeFailed })),
			refused{"spec.rules[0].outcome", field.ErrorTypeForbidden, "only with after: Finished"},
		},
		"after its creation, with a capacity of nothing": {
			policy(rule("a", created(), limited(gc.Capacity{}))),
			refused{"spec.rules[0].capacity.maxObjects", field.ErrorTypeRequired, "set how many objects to keep"},
		},
		"after the match, of any resource": {
			policy(rule("a", matched(), func(r *gc.CleanupRule) { r.Resources = nil })),
			refused{"spec.rules[0].resources", field.ErrorTypeRequired, "name each resource"},
		},
		"after the match, whatever its labels": {
			policy(rule("a", matched(), func(r *gc.CleanupRule) { r.Selector = nil })),
			refused{"spec.rules[0].selector", field.ErrorTypeRequired, "select the objects by label"},
		},
		"after the match, without a ttl": {
			policy(rule("a", matched(), func(r *gc.CleanupRule) { r.TTL = nil })),
			refused{"spec.rules[0].ttl", field.ErrorTypeRequired, "after their match, or set capacity"},
		},
		"after the match, of Events": {
			policy(rule("a", matched(), of("events"))),
			refused{"spec.rules[0].resources[0]", field.ErrorTypeInvalid, "Events can be counted only from their creation"},
		},
		"unfinished after the finish": {
			policy(rule("a", func(r *gc.CleanupRule) { r.Unfinished = gc.UnfinishedDelete })),
			refused{"spec.rules[0].unfinished", field.ErrorTypeForbidden, "may be Delete only with after: Created or after: Matched"},
		},
		"unfinished after the last use": {
			policy(rule("a", unused("secrets"), func(r *gc.CleanupRule) { r.Unfinished = gc.UnfinishedDelete })),
			refused{"spec.rules[0].unfinished", field.ErrorTypeForbidden, "remove it, or change after"},
		},
		"after the last use, of any resource": {
			policy(rule("a", unused())), refused{"spec.rules[0].resources", field.ErrorTypeRequired, "may use without a reference"},
		},
		"after the last use, of what cannot be unused": {
			policy(rule("a", unused("configmaps", "jobs.batch"))),
			refused{"spec.rules[0].resources[1]", field.ErrorTypeNotSupported,
				`supported values: "configmaps", "secrets"; only these can be unused; for other resources, set after: Created or after: Matched`},
		},
		"after the last use, whatever its labels": {
			policy(rule("a", unused("secrets"), func(r *gc.CleanupRule) { r.Selector = nil })),
			refused{"spec.rules[0].selector", field.ErrorTypeRequired, "select the objects by label, or by matchConditions"},
		},
		"after the last use, without a ttl": {
			policy(rule("a", unused("secrets"), func(r *gc.CleanupRule) { r.TTL = nil })),
			refused{"spec.rules[0].ttl", field.ErrorTypeRequired, example},
		},
		"after the last use, with an outcome": {
			policy(rule("a", unused("secrets"), func(r *gc.CleanupRule) { r.Outcome = gc.OutcomeFailed })),
			refused{"spec.rules[0].outcome", field.ErrorTypeForbidden, "only with after: Finished"},
		},
		"after its creation, with a deadline": {
			policy(rule("a", created(), of("pods"), limited(gc.Capacity{MaxObjects: number(3)}),
				func(r *gc.CleanupRule) { r.ActiveDeadline = ttl("6h") })),
			refused{"spec.rules[0].activeDeadline", field.ErrorTypeForbidden, "only with after: Finished"},
		},
		"after the last use, by the data of Secrets": {
			policy(rule("a", unused("secrets"), func(r *gc.CleanupRule) {
				r.MatchConditions = []gc.MatchCondition{{Name: "a", Expression: "object.type == 'Opaque'"}}
			})),
			refused{"spec.rules[0].matchConditions[0].expression", field.ErrorTypeInvalid, "select them by label"},
		},
		"default deadline": {
			&gc.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "team-a"}, Spec: gc.CleanupPolicySpec{ActiveDeadline: ttl("6")}},
			refused{"spec.activeDeadline", field.ErrorTypeInvalid, durationExample},
		},
		"rule without name": {policy(rule("")), refused{"spec.rules[0].name", field.ErrorTypeRequired, "keep-failures"}},
		"reserved name":     {policy(rule("default")), refused{"spec.rules[0].name", field.ErrorTypeInvalid, "choose another"}},
		"name twice":        {policy(rule("a"), rule("b"), rule("a")), refused{"spec.rules[2].name", field.ErrorTypeDuplicate, "must be unique"}},
		"resource twice": {
			policy(rule("a", of("pods", "pods"))),
			refused{"spec.rules[0].resources[1]", field.ErrorTypeDuplicate, "once"},
		},
		"orphan": {
			policy(rule("a", func(r *gc.CleanupRule) { r.PropagationPolicy = metav1.DeletePropagationOrphan })),
			refused{"spec.rules[0].propagationPolicy", field.ErrorTypeNotSupported, `finalizer "orphan"`},
		},
		"operator": {
			policy(rule("a", selecting("Equals", "train"))),
			refused{"spec.rules[0].selector.matchExpressions[0].operator", field.ErrorTypeNotSupported, `"DoesNotExist"`},
		},
		"operator without values": {
			policy(rule("a", selecting(metav1.LabelSelectorOpIn))),
			refused{"spec.rules[0].selector.matchExpressions[0].values", field.ErrorTypeRequired, "must be specified"},
		},
		"name": {
			&gc.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: "No_Name", Namespace: "team-a"}},
			refused{"metadata.name", field.ErrorTypeInvalid, "example.com"},
		},
		"long name": {
			&gc.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("a", 254), Namespace: "team-a"}},
			refused{"metadata.name", field.ErrorTypeInvalid, "253"},
		},
		"default's capacity": {
			&gc.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "team-a"}, Spec: gc.CleanupPolicySpec{Capacity: &gc.Capacity{}}},
			refused{"spec.capacity.maxObjects", field.ErrorTypeRequired, "percentOfQuota instead"},
		},
		"capacity of nothing": {
			policy(rule("a", limited(gc.Capacity{}))),
			refused{"spec.rules[0].capacity.maxObjects", field.ErrorTypeRequired, "for example 200"},
		},
		"capacity in two ways": {
			policy(rule("a", limited(gc.Capacity{MaxObjects: number(0), PercentOfQuota: number(50)}))),
			refused{"spec.rules[0].capacity.percentOfQuota", field.ErrorTypeInvalid, "remove one of the two"},
		},
		"label without key": {
			policy(rule("a", limited(gc.Capacity{MaxObjects: number(3), Per: gc.CapacityPerLabel}))),
			refused{"spec.rules[0].capacity.labelKey", field.ErrorTypeRequired, "example.com/pipeline"},
		},
		"label with a wrong key": {
			policy(rule("a", limited(gc.Capacity{MaxObjects: number(3), Per: gc.CapacityPerLabel, LabelKey: "-/ /" + strings.Repeat("a", 400)}))),
			refused{"spec.rules[0].capacity.labelKey", field.ErrorTypeInvalid, "example.com/pipeline"},
		},
		"key without label": {
			policy(rule("a", limited(gc.Capacity{MaxObjects: number(3), Per: gc.CapacityPerOwner, LabelKey: "app"}))),
			refused{"spec.rules[0].capacity.labelKey", field.ErrorTypeInvalid, `only when per is "Label"`},
		},
		"minAge never": {
			policy(rule("a", limited(gc.Capacity{MaxObjects: number(3), MinAge: ttl(gc.TTLNever)}))),
			refused{"spec.rules[0].capacity.minAge", field.ErrorTypeInvalid, "leave it unset"},
		},
		"minAge without unit": {
			policy(rule("a", limited(gc.Capacity{MaxObjects: number(3), MinAge: ttl("10")}))),
			refused{"spec.rules[0].capacity.minAge", field.ErrorTypeInvalid, durationExample},
		},
		"finalizer": {
			&gc.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "team-a", Finalizers: []string{"example.com/mine"}}},
			refused{"metadata.finalizers[0]", field.ErrorTypeForbidden, "remove it"},
		},
		"owner": {
			&gc.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "team-a", OwnerReferences: []metav1.OwnerReference{owner("a")}}},
			refused{"metadata.ownerReferences[0]", field.ErrorTypeForbidden, "remove the owner"},
		},
	} {
		errs := ValidateCleanupPolicy(tc.policy)
		if len(errs) != 1 {
			t.Errorf("%s: want one error, got %v", name, errs)
			continue
		}
		got := errs[0]
		if got.Field != tc.want.field || got.Type != tc.want.reason || !strings.Contains(got.Error(), tc.want.remedy) {
			t.Errorf("%s: got %v, want %s of type %s with %q", name, got, tc.want.field, tc.want.reason, tc.want.remedy)
		}
	}
}

// TestUnusedWithSeveralMistakes: each is reported.
func TestUnusedWithSeveralMistakes(t *testing.T) {
	for name, tc := range map[string]struct {
		rule gc.CleanupRule
		want []string // the fields
	}{
		"an outcome instead of a ttl": {
			rule("a", unused("secrets"), func(r *gc.CleanupRule) { r.TTL, r.Outcome = nil, gc.OutcomeFailed }),
			[]string{"spec.rules[0].ttl", "spec.rules[0].outcome"},
		},
		"a limit instead of a ttl is none": {
			rule("a", unused("secrets"), limited(gc.Capacity{MaxObjects: number(3)}), func(r *gc.CleanupRule) { r.TTL = nil }), nil,
		},
		"nor is a limit by creation": {
			rule("a", created(), limited(gc.Capacity{MaxObjects: number(3), Per: gc.CapacityPerLabel, LabelKey: "app"}),
				func(r *gc.CleanupRule) { r.TTL = nil }), nil,
		},
		"the default of unfinished": {rule("a", func(r *gc.CleanupRule) { r.Unfinished = gc.UnfinishedHold }), nil},
		"nor is one by the match, of what runs": {
			rule("a", matched(), of("pods"), limited(gc.Capacity{MaxObjects: number(3)}),
				func(r *gc.CleanupRule) { r.TTL, r.Unfinished = nil, gc.UnfinishedDelete }), nil,
		},
		"every resource":      {rule("a", unused(gc.ResourceAll)), []string{"spec.rules[0].resources[0]", "spec.rules[0].resources"}},
		"a misspelt resource": {rule("a", unused("configmap")), []string{"spec.rules[0].resources[0]"}},
		"several that cannot be unused": {
			rule("a", unused("jobs.batch", "secrets", "pods")), []string{"spec.rules[0].resources[0]", "spec.rules[0].resources[2]"},
		},
	} {
		var got []string
		for _, err := range ValidateCleanupPolicy(policy(tc.rule)) {
			got = append(got, err.Field)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: errors of %q, want %q", name, got, tc.want)
		}
	}
}

func withTTL(s gc.TTL) *gc.CleanupPolicy {
	p := policy()
	p.Spec.TTLAfterFinished = &s
	return p
}

func selecting(op metav1.LabelSelectorOperator, values ...string) func(*gc.CleanupRule) {
	return func(r *gc.CleanupRule) {
		r.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: op, Values: values}}}
	}
}

func owner(name string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: types.UID(name)}
}

// TestTiesOnUpdate keeps the finalizers and owners that are there, so that they can be taken off, and refuses more.
func TestTiesOnUpdate(t *testing.T) {
	old := policy()
	old.Finalizers, old.OwnerReferences = []string{"example.com/old"}, []metav1.OwnerReference{owner("old")}
	if errs := ValidateCleanupPolicyUpdate(old, old); len(errs) > 0 {
		t.Errorf("unchanged: %v", errs)
	}
	if errs := ValidateCleanupPolicyUpdate(policy(), old); len(errs) > 0 {
		t.Errorf("removed: %v", errs)
	}
	added := old.DeepCopy()
	added.Finalizers, added.OwnerReferences = append(added.Finalizers, "example.com/new"), append(added.OwnerReferences, owner("new"))
	checkErrors(t, ValidateCleanupPolicyUpdate(added, old), []string{"metadata.finalizers[1]: Forbidden", "metadata.ownerReferences[1]: Forbidden"})
}

func TestOneErrorForEachField(t *testing.T) {
	a, b := field.NewPath("a"), field.NewPath("b")
	byHand := field.ErrorList{field.Required(a, "with a remedy")}.MarkFromImperative()
	got := OneErrorForEachField(append(byHand, field.Required(a, ""), field.Required(b, "")))
	if len(got) != 2 || got[0].Detail != "with a remedy" || got[1].Field != "b" {
		t.Errorf("got %v", got)
	}
}
