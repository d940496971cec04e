// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

func workflows(change func(*gc.ResourceLifecycle)) *gc.ResourceLifecycle {
	l := &gc.ResourceLifecycle{
		ObjectMeta: metav1.ObjectMeta{Name: "workflows.argoproj.io"},
		Spec: gc.ResourceLifecycleSpec{
			Finished: &gc.FinishedExpressions{
				When:      "object.?status.phase.orValue('') in ['Succeeded', 'Failed', 'Error']",
				Succeeded: "object.status.phase == 'Succeeded'",
				At:        "object.status.finishedAt",
			},
			NativeTTL: "object.?spec.ttlStrategy.secondsAfterCompletion.orValue(null)",
		},
	}
	change(l)
	return l
}

// refs are references to Secrets.
func refs(names ...string) []gc.LifecycleReference {
	var out []gc.LifecycleReference
	for _, n := range names {
		out = append(out, gc.LifecycleReference{To: gc.ResourceSecrets, Names: n})
	}
	return out
}

func TestLifecycles(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*gc.ResourceLifecycle)
		errs   []string // what each contains
	}{
		"valid":                {func(*gc.ResourceLifecycle) {}, nil},
		"without a native TTL": {func(l *gc.ResourceLifecycle) { l.Spec.NativeTTL = "" }, nil},
		"without expressions": {func(l *gc.ResourceLifecycle) { l.Spec.Finished = &gc.FinishedExpressions{At: " "} }, []string{
			"spec.finished.when: Required value: set an expression", "spec.finished.succeeded: Required value: set an expression",
			"spec.finished.at: Required value: set an expression",
		}},
		"expressions that do not compile": {
			func(l *gc.ResourceLifecycle) {
				l.Spec.Finished = &gc.FinishedExpressions{When: "object.status.phase", Succeeded: "obj.status", At: "1"}
				l.Spec.NativeTTL = "object."
			},
			[]string{
				`spec.finished.when: Invalid value: "object.status.phase": must evaluate to bool but got dyn`,
				`spec.finished.succeeded: Invalid value: "obj.status": compilation failed: ERROR: <input>:1:1: undeclared reference to 'obj'`,
				`spec.finished.at: Invalid value: "1": must evaluate to one of`,
				`spec.nativeTTL: Invalid value: "object.": compilation failed: ERROR: <input>:1:8: Syntax error`,
			},
		},
		"a long expression": {
			func(l *gc.ResourceLifecycle) {
				l.Spec.Finished.When = "true" + strings.Repeat(" ", maxExpressionLength)
			},
			[]string{"spec.finished.when: Too long: may not be more than 4096 bytes"}},
		"references and a finish": {func(l *gc.ResourceLifecycle) { l.Spec.References = refs("object.spec.secretName") }, nil},
		"references alone": {func(l *gc.ResourceLifecycle) {
			l.Spec = gc.ResourceLifecycleSpec{References: refs("object.spec.secretName", "['a', 'ns/b']", "object.spec", "null")}
		}, nil},
		"nothing": {
			func(l *gc.ResourceLifecycle) { l.Spec = gc.ResourceLifecycleSpec{} },
			[]string{"spec.finished: Required value: set finished (when an object has finished), references (what it refers to), or dependents: Independent"},
		},
		"nothing but a native TTL": {
			func(l *gc.ResourceLifecycle) { l.Spec.Finished = nil }, []string{"spec.finished: Required value: set finished"},
		},
		"references and a native TTL": {
			func(l *gc.ResourceLifecycle) { l.Spec.Finished, l.Spec.References = nil, refs("'a'") },
			[]string{"spec.nativeTTL: Forbidden: may be set only with finished"},
		},
		"independent dependents alone": {
			func(l *gc.ResourceLifecycle) { l.Spec = gc.ResourceLifecycleSpec{Dependents: gc.LifecycleIndependent} }, nil},
		"independent dependents except some": {func(l *gc.ResourceLifecycle) {
			l.Spec = gc.ResourceLifecycleSpec{Dependents: gc.LifecycleIndependent, Needs: "object.?status.active.orValue([]).map(a, a.name)"}
		}, nil},
		"needs that do not compile": {func(l *gc.ResourceLifecycle) {
			l.Spec.Dependents, l.Spec.Needs = gc.LifecycleIndependent, "1"
		}, []string{`spec.needs: Invalid value: "1": must evaluate to one of`}},
		"needs of what is left to the owner anyway": {
			func(l *gc.ResourceLifecycle) { l.Spec.Needs = "'a'" }, []string{"spec.needs: Forbidden: may be set only with dependents: Independent"}},
		"references that do not compile": {
			func(l *gc.ResourceLifecycle) {
				l.Spec.References = refs("object.spec.secretName", " ", "object.", "1", strings.Repeat(" ", maxExpressionLength)+"'a'")
			},
			[]string{
				`spec.references[1].names: Required value: set an expression for the names`,
				`spec.references[2].names: Invalid value: "object.": compilation failed`,
				`spec.references[3].names: Invalid value: "1": must evaluate to one of`,
				`spec.references[4].names: Too long: may not be more than 4096 bytes`,
			},
		},
		"an owner": {
			func(l *gc.ResourceLifecycle) {
				l.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "a", UID: "b"}}
			},
			[]string{"metadata.ownerReferences[0]: Forbidden: lifecycles cannot have owners"}},
		"a bad name": {
			func(l *gc.ResourceLifecycle) { l.Name = "Workflows_argoproj" }, []string{`metadata.name: Invalid value: "Workflows_argoproj": a lowercase`}},
	} {
		t.Run(name, func(t *testing.T) {
			checkErrors(t, ValidateResourceLifecycle(workflows(tc.change)), tc.errs)
		})
	}
}

func checkErrors(t *testing.T, errs field.ErrorList, want []string) {
	t.Helper()
	for i, err := range errs {
		if i >= len(want) || !strings.Contains(err.Error(), want[i]) {
			t.Errorf("unexpected: %v", err)
		}
	}
	if len(errs) < len(want) {
		t.Errorf("got %d errors %v, want %q", len(errs), errs, want)
	}
}

func TestLifecycleNames(t *testing.T) {
	for name, want := range map[string]string{
		"workflows.argoproj.io":    "",
		"jobs.batch":               "",
		"pods":                     "",
		"configmaps":               "",
		"secrets":                  "Secrets do not finish",
		"events":                   "Events never finish",
		"controllerrevisions.apps": "is never deleted",
		"volumesnapshots.snapshot.storage.k8s.io": "",
		"jobs.batch.volcano.sh":                   "",
		"deployments.apps":                        "",
		"events.example.com":                      "", // Custom resources, not the ones of Kubernetes.
		"jobs":                                    `did you mean "jobs.batch"?`,
		"job.batch":                               `did you mean "jobs.batch"?`,
		"workflows.v1alpha1.argoproj.io":          `did you mean "workflows.argoproj.io"?`,
		"namespaces":                              "is never deleted",
		"pv":                                      "is never deleted",
		"leases.coordination.k8s.io":              "is never deleted",
		"roles.rbac.authorization.k8s.io":         "is never deleted",
		"customresourcedefinitions.apiextensions.k8s.io": "is never deleted",
		"pods.metrics.k8s.io":                            "is never deleted",
		"cleanuppolicies.gc.winnow.dev":                  "is never deleted",
		"storedcleanuppolicies.internal.gc.winnow.dev":   "is never deleted",
	} {
		errs := ValidateResourceLifecycle(workflows(func(l *gc.ResourceLifecycle) { l.Name = name }))
		switch {
		case want == "" && len(errs) > 0:
			t.Errorf("%s: %v", name, errs)
		case want != "" && (len(errs) != 1 || errs[0].Field != "metadata.name" || !strings.Contains(errs[0].Detail, want)):
			t.Errorf("%s: got %v, want %s", name, errs, want)
		}
	}
}

// TestLifecycleUpdates: what was accepted once stays valid, though a newer environment might refuse it.
func TestLifecycleUpdates(t *testing.T) {
	old := workflows(func(*gc.ResourceLifecycle) {})
	if errs := ValidateResourceLifecycleUpdate(old, old); len(errs) > 0 {
		t.Error(errs)
	}
	changed := workflows(func(l *gc.ResourceLifecycle) { l.Spec.Finished.When = "object.status.done" })
	checkErrors(t, ValidateResourceLifecycleUpdate(changed, old), []string{"spec.finished.when: Invalid value"})
}

// TestUpdatesOfReferences: those that stay are compiled as stored ones, wherever they stand in the list now, and a new target makes another
// reference of them.
func TestUpdatesOfReferences(t *testing.T) {
	old := workflows(func(l *gc.ResourceLifecycle) { l.Spec.References = refs("object.a", "object.b") })
	for name, tc := range map[string]struct {
		change func(*gc.ResourceLifecycle)
		errs   []string
	}{
		"the same":       {func(*gc.ResourceLifecycle) {}, nil},
		"another order":  {func(l *gc.ResourceLifecycle) { slices.Reverse(l.Spec.References) }, nil},
		"one less":       {func(l *gc.ResourceLifecycle) { l.Spec.References = l.Spec.References[1:] }, nil},
		"none":           {func(l *gc.ResourceLifecycle) { l.Spec.References = nil }, nil},
		"another target": {func(l *gc.ResourceLifecycle) { l.Spec.References[0].To = gc.ResourceConfigMaps }, nil},
		"a broken one": {
			func(l *gc.ResourceLifecycle) { l.Spec.References = append(l.Spec.References, refs("object.")...) },
			[]string{"spec.references[2].names: Invalid value"},
		},
		"no finish any more": {func(l *gc.ResourceLifecycle) { l.Spec.Finished, l.Spec.NativeTTL = nil, "" }, nil},
		"nothing any more": {
			func(l *gc.ResourceLifecycle) { l.Spec = gc.ResourceLifecycleSpec{} }, []string{"spec.finished: Required value"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			next := old.DeepCopy()
			tc.change(next)
			checkErrors(t, ValidateResourceLifecycleUpdate(next, old), tc.errs)
		})
	}
	alone := workflows(func(l *gc.ResourceLifecycle) { l.Spec = gc.ResourceLifecycleSpec{References: refs("object.a")} })
	if errs := ValidateResourceLifecycleUpdate(workflows(func(*gc.ResourceLifecycle) {}), alone); len(errs) > 0 {
		t.Errorf("a finish comes: %v", errs)
	}
}

func TestLifecycleStatus(t *testing.T) {
	s := &gc.ResourceLifecycleStatus{Conditions: []metav1.Condition{{Type: "Accepted"}}}
	if errs := ValidateResourceLifecycleStatus(s); len(errs) == 0 || !strings.HasPrefix(errs[0].Field, "status.conditions[0]") {
		t.Errorf("got %v", errs)
	}
}
