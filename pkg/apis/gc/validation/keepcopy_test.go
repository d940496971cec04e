// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

func copying(d gc.TTL, resources ...string) func(*gc.CleanupRule) {
	return func(r *gc.CleanupRule) { r.KeepCopy, r.Resources = ttl(d), resources }
}

// TestKeepCopy: which rules may keep copies, and for how long.
func TestKeepCopy(t *testing.T) {
	const widgets = "widgets.example.com"
	for name, tc := range map[string]struct {
		rule   gc.CleanupRule
		remedy string // empty if the rule is valid
	}{
		"a custom resource":        {rule("a", copying("7d", widgets)), ""},
		"a custom resource of k8s": {rule("a", copying("7d", "volumesnapshots.snapshot.storage.k8s.io")), ""},
		"two of them":              {rule("a", copying("1s", widgets, "taskruns.tekton.dev")), ""},
		"ConfigMaps":               {rule("a", unused("configmaps"), copying("7d", "configmaps")), ""},
		"Secrets":                  {rule("a", unused("configmaps"), copying("7d", "configmaps", "secrets")), "does not read the data of Secrets; move it to a separate rule"},
		"Jobs":                     {rule("a", copying("7d", widgets, "jobs.batch")), `"jobs.batch" cannot be copied`},
		"Pods":                     {rule("a", copying("7d", "pods")), "move it to a separate rule without keepCopy"},
		"a resource of Kubernetes": {rule("a", copying("7d", "ingresses.networking.k8s.io")), "only of ConfigMaps and custom resources"},
		"no resources":             {rule("a", copying("7d")), "a rule that names none is for Jobs and Pods"},
		"zero":                     {rule("a", copying("0s", widgets)), "remove keepCopy"},
		"never":                    {rule("a", copying("never", widgets)), "must be a duration"},
		"a unit":                   {rule("a", copying("7 days", widgets)), `did you mean "7d"?`},
		"an empty time":            {rule("a", copying("", widgets)), `use for example "7d"`},
		"90 days":                  {rule("a", copying("90d", widgets)), ""},
		"91 days":                  {rule("a", copying("91d", widgets)), `at most "90d"`},
		"more than ten years":      {rule("a", copying("3651d", widgets)), "ten years"},
	} {
		t.Run(name, func(t *testing.T) {
			var errs field.ErrorList
			for _, err := range ValidateCleanupPolicy(policy(tc.rule)) {
				if err.Field == "spec.rules[0].keepCopy" {
					errs = append(errs, err)
				}
			}
			switch {
			case tc.remedy == "" && len(errs) > 0:
				t.Errorf("got %v", errs)
			case tc.remedy != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), tc.remedy)):
				t.Errorf("got %v, want %q", errs, tc.remedy)
			}
		})
	}
	if errs := ValidateCleanupPolicy(policy(rule("a", copying("7d", "*")))); len(errs) == 0 {
		t.Error("a rule for everything keeps copies")
	}
}
