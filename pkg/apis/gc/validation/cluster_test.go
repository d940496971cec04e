// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// clusterPolicy is valid and bounds everything.
func clusterPolicy(change ...func(*gc.ClusterCleanupPolicySpec)) *gc.ClusterCleanupPolicy {
	never := true
	p := &gc.ClusterCleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "defaults"},
		Spec: gc.ClusterCleanupPolicySpec{
			Mode:              gc.ModeEnforce,
			NamespaceSelector: &metav1.LabelSelector{},
			TTLAfterFinished:  ttl("7d"),
			Guardrails: &gc.Guardrails{
				MinTTL: ttl("5m"), MaxTTL: ttl("30d"), AllowNever: &never, MaxDeletionsPerMinute: number(6000),
				HoldAbove: &gc.HoldAbove{Objects: number(0)},
				Ceilings: []gc.Ceiling{
					{Resources: []string{gc.ResourcePods}, MaxObjects: number(12500)},
					{Resources: []string{gc.ResourceJobs}, MaxObjects: number(5000)},
				},
			},
		},
	}
	for _, f := range change {
		f(&p.Spec)
	}
	return p
}

func TestValidClusterPolicy(t *testing.T) {
	for name, p := range map[string]*gc.ClusterCleanupPolicy{
		"everything": clusterPolicy(),
		"empty": clusterPolicy(func(s *gc.ClusterCleanupPolicySpec) {
			*s = gc.ClusterCleanupPolicySpec{Mode: gc.ModePreview, NamespaceSelector: &metav1.LabelSelector{}}
		}),
		"one ceiling for both": clusterPolicy(func(s *gc.ClusterCleanupPolicySpec) {
			s.Guardrails.Ceilings = []gc.Ceiling{{MaxObjects: number(0)}}
		}),
	} {
		if errs := ValidateClusterCleanupPolicy(p); len(errs) > 0 {
			t.Errorf("%s: %v", name, errs)
		}
		if errs := ValidateClusterCleanupPolicyUpdate(p, p); len(errs) > 0 {
			t.Errorf("%s, updated: %v", name, errs)
		}
	}
}

// TestInvalidClusterPolicy says of each wrong policy which field is refused, for which kind of reason, and what the remedy is.
func TestInvalidClusterPolicy(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*gc.ClusterCleanupPolicySpec)
		field  string
		reason field.ErrorType
		remedy string
	}{
		"mode": {
			func(s *gc.ClusterCleanupPolicySpec) { s.Mode = "" },
			"spec.mode", field.ErrorTypeRequired, `"Preview" shows`,
		},
		"no selector": {
			func(s *gc.ClusterCleanupPolicySpec) { s.NamespaceSelector = nil },
			"spec.namespaceSelector", field.ErrorTypeRequired, "{} selects all except protected ones",
		},
		"wrong selector": {
			func(s *gc.ClusterCleanupPolicySpec) { s.NamespaceSelector.MatchLabels = map[string]string{"a b": "c"} },
			"spec.namespaceSelector.matchLabels", field.ErrorTypeInvalid, "name part",
		},
		"default": {
			func(s *gc.ClusterCleanupPolicySpec) { s.TTLAfterFinished = ttl("1h30") },
			"spec.ttlAfterFinished", field.ErrorTypeInvalid, gc.TTLExample,
		},
		"default's capacity": {
			func(s *gc.ClusterCleanupPolicySpec) { s.Capacity = &gc.Capacity{} },
			"spec.capacity.maxObjects", field.ErrorTypeRequired, "percentOfQuota instead",
		},
		"rule": {
			func(s *gc.ClusterCleanupPolicySpec) { s.Rules = []gc.CleanupRule{{Name: "a"}} },
			"spec.rules[0].ttl", field.ErrorTypeRequired, "capacity",
		},
		"deadline of everything": {
			func(s *gc.ClusterCleanupPolicySpec) {
				s.Rules = []gc.CleanupRule{{Name: "a", Resources: []string{gc.ResourceAll}, ActiveDeadline: ttl("6h")}}
			},
			"spec.rules[0].activeDeadline", field.ErrorTypeInvalid, `move "*" to a separate rule`,
		},
		"minTTL": {
			func(s *gc.ClusterCleanupPolicySpec) { s.Guardrails.MinTTL = ttl(gc.TTLNever) },
			"spec.guardrails.minTTL", field.ErrorTypeInvalid, "must be a duration",
		},
		"maxTTL": {
			func(s *gc.ClusterCleanupPolicySpec) { s.Guardrails.MaxTTL = ttl("a month") },
			"spec.guardrails.maxTTL", field.ErrorTypeInvalid, durationExample,
		},
		"never is not allowed and nothing else is said": {
			func(s *gc.ClusterCleanupPolicySpec) { s.Guardrails.MaxTTL, *s.Guardrails.AllowNever = nil, false },
			"spec.guardrails.maxTTL", field.ErrorTypeRequired, `for example "30d"`,
		},
		"holdAbove": {
			func(s *gc.ClusterCleanupPolicySpec) { s.Guardrails.HoldAbove = &gc.HoldAbove{} },
			"spec.guardrails.holdAbove", field.ErrorTypeRequired, "for example 1000",
		},
		"a window without a schedule": {
			func(s *gc.ClusterCleanupPolicySpec) { s.Guardrails.Windows = []gc.Window{{Duration: "6h"}} },
			"spec.guardrails.windows[0].schedule", field.ErrorTypeRequired, `set when the window opens; for example "0 22 * * 1-5"`,
		},
		"a window with a bad schedule": {
			func(s *gc.ClusterCleanupPolicySpec) {
				s.Guardrails.Windows = []gc.Window{{Schedule: "@daily", Duration: "6h"}, {Schedule: "at night", Duration: "6h"}}
			},
			"spec.guardrails.windows[1].schedule", field.ErrorTypeInvalid, `expected exactly 5 fields, found 2: [at night]; for example`,
		},
		"a window with a time zone in its schedule": {
			func(s *gc.ClusterCleanupPolicySpec) {
				s.Guardrails.Windows = []gc.Window{{Schedule: "TZ=Europe/Berlin 0 22 * * *", Duration: "6h"}}
			},
			"spec.guardrails.windows[0].schedule", field.ErrorTypeInvalid, "must not have TZ or CRON_TZ; set timeZone",
		},
		"a window without a duration": {
			func(s *gc.ClusterCleanupPolicySpec) { s.Guardrails.Windows = []gc.Window{{Schedule: "@daily"}} },
			"spec.guardrails.windows[0].duration", field.ErrorTypeRequired, `set how long the window stays open; use for example "6h"`,
		},
		"a window of no time": {
			func(s *gc.ClusterCleanupPolicySpec) {
				s.Guardrails.Windows = []gc.Window{{Schedule: "@daily", Duration: "0s"}}
			},
			"spec.guardrails.windows[0].duration", field.ErrorTypeInvalid, "must be at least 1m, so that there is time to delete; use for example",
		},
		"a window that is too long": {
			func(s *gc.ClusterCleanupPolicySpec) {
				s.Guardrails.Windows = []gc.Window{{Schedule: "@daily", Duration: "5w"}}
			},
			"spec.guardrails.windows[0].duration", field.ErrorTypeInvalid, "must be at most 31d",
		},
		"a window in an unknown time zone": {
			func(s *gc.ClusterCleanupPolicySpec) {
				s.Guardrails.Windows = []gc.Window{{Schedule: "@daily", Duration: "6h", TimeZone: new("CEST")}}
			},
			"spec.guardrails.windows[0].timeZone", field.ErrorTypeInvalid, `unknown time zone CEST; use for example "Europe/Berlin"`,
		},
		"ceiling without number": {
			func(s *gc.ClusterCleanupPolicySpec) { s.Guardrails.Ceilings[1].MaxObjects = nil },
			"spec.guardrails.ceilings[1].maxObjects", field.ErrorTypeRequired, "for example 12500",
		},
		"ceiling for what is never deleted": {
			func(s *gc.ClusterCleanupPolicySpec) { s.Guardrails.Ceilings[1].Resources[0] = "ccup" },
			"spec.guardrails.ceilings[1].resources[0]", field.ErrorTypeInvalid, "never deleted",
		},
		"two ceilings": {
			func(s *gc.ClusterCleanupPolicySpec) { s.Guardrails.Ceilings[1].Resources[0] = gc.ResourcePods },
			"spec.guardrails.ceilings[1].resources", field.ErrorTypeDuplicate, "in only one of them",
		},
		"two ceilings, one without names": {
			func(s *gc.ClusterCleanupPolicySpec) { s.Guardrails.Ceilings[1].Resources = nil },
			"spec.guardrails.ceilings[1].resources", field.ErrorTypeDuplicate, "in only one of them",
		},
	} {
		errs := ValidateClusterCleanupPolicy(clusterPolicy(tc.change))
		if len(errs) != 1 {
			t.Errorf("%s: want one error, got %v", name, errs)
			continue
		}
		if got := errs[0]; got.Field != tc.field || got.Type != tc.reason || !strings.Contains(got.Error(), tc.remedy) {
			t.Errorf("%s: got %v, want %s of type %s with %q", name, got, tc.field, tc.reason, tc.remedy)
		}
	}
}

// TestClusterMetadata has no namespace, and no finalizers and owners but those that were there.
func TestClusterMetadata(t *testing.T) {
	wrong := clusterPolicy()
	wrong.Namespace, wrong.Finalizers = "team-a", []string{"example.com/mine"}
	wrong.OwnerReferences = []metav1.OwnerReference{owner("a")}
	ties := []string{"metadata.finalizers[0]: Forbidden", "metadata.ownerReferences[0]: Forbidden: policies cannot have owners"}
	checkErrors(t, ValidateClusterCleanupPolicy(wrong), append([]string{"metadata.namespace: Forbidden"}, ties...))
	checkErrors(t, ValidateClusterCleanupPolicyUpdate(wrong, wrong), nil)
	checkErrors(t, ValidateClusterCleanupPolicyUpdate(wrong, clusterPolicy()), ties)
}
