// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/rules/assessment"
)

// watermark returns what is stored of the assessment of the home namespace; nil if nothing is.
func (w *world) watermark() *assessment.Namespace {
	o := w.store.objects["namespaces-0"].decode("namespaces-0")
	for i := range o.Namespaces {
		if o.Namespaces[i].Name == testbuilders.Home {
			return &o.Namespaces[i]
		}
	}
	return nil
}

// TestWatermarksHaveAllInputs: whatever people change that may make objects due is in what is stored of an assessment, so that a replica that
// starts finds a change that nobody has assessed.
func TestWatermarksHaveAllInputs(t *testing.T) {
	jobs, less := changedJobs(t), quota(2)
	less.ResourceVersion = "5"
	half := testbuilders.Policy("p").Rules(testbuilders.Rule("half", "").For(gc.ResourceJobs).WithoutTTL().KeepingPercent(50))
	run := func(id string) *kinds.Kind {
		gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Run"}
		source := kinds.Source{UID: "uid-runs", ID: id, Text: id}
		return &kinds.Kind{Resource: runs, GroupVersionKind: gvk, Finishes: true, Source: source}
	}
	for name, change := range map[string]func(*world){
		"a policy":                      func(w *world) { w.policy(ttlPolicy("10m", 2)) },
		"a policy, past the API":        func(w *world) { w.policy(half.Default("10m")) },
		"another policy":                func(w *world) { w.policy(testbuilders.Policy("q").Default("10m")) },
		"a cluster policy":              func(w *world) { w.clusterPolicy(ttlClusterPolicy("c", "10m", 1)) },
		"a cluster policy that stops":   func(w *world) { w.clusterPolicy(guardrailPolicy(1, gc.Guardrails{SuspendAll: true})) },
		"a protection":                  func(w *world) { w.namespace(testbuilders.Home, gc.LabelProtected, "true") },
		"a quota":                       func(w *world) { w.ReplaceQuotas([]*memory.Quota{less}, w.now) },
		"the lifecycle of a resource":   func(w *world) { w.SetKinds(w.Kinds().With(jobs), w.now) },
		"the lifecycle of what owns it": func(w *world) { w.SetKinds(w.Kinds().With(run("2")), w.now) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ReplaceQuotas([]*memory.Quota{quota(4)}, w.now)
			w.SetKinds(w.Kinds().With(run("1")), w.now)
			w.StartObserving(run("1"))
			w.policy(half)
			w.listCovered()
			before := w.watermark()
			if before == nil {
				t.Fatal("nothing is stored")
			}
			change(w)
			w.StartObserving(jobs)
			w.listCovered()
			after := w.watermark()
			if after == nil || after.Number == before.Number || after.Inputs.Equal(&before.Inputs) {
				t.Errorf("stored before: %+v, after: %+v", before, after)
			}
		})
	}
}

// TestInputsOfDerived: what follows from policies and labels is known from the policies that apply and from why nothing is deleted. Whoever
// adds a field that follows from anything else adds it to the inputs too; see Gate.inputs.
func TestInputsOfDerived(t *testing.T) {
	fromPolicies := sets.New("PolicyUIDs", "Enforcing", "Previews", "ClusterEnforcing", "ClusterPreviews", "Ceilings", "PreviewCeilings", "Bounds",
		"HasLimits", "NamesAll", "ConditionCount", "Unused", "SuspendedBy", "Unreadable")
	stopped := sets.New("Unselected")
	for f := range reflect.TypeFor[memory.Derived]().Fields() {
		if !fromPolicies.Has(f.Name) && !stopped.Has(f.Name) {
			t.Errorf("it is not known from what Derived.%s follows", f.Name)
		}
	}
}
