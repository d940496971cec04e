// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

func served(group, version, kind, plural string) Served {
	return Served{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, Plural: plural}
}

// stored is a ResourceLifecycle of a user, whose objects have finished when they have a certain phase.
func stored(name, phase string, generation int64) *gc.ResourceLifecycle {
	return &gc.ResourceLifecycle{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: generation},
		Spec: gc.ResourceLifecycleSpec{Finished: &gc.FinishedExpressions{
			When: "object.status.phase == '" + phase + "'", Succeeded: "true", At: "object.status.at",
		}},
	}
}

func lifecyclesOf(all ...*gc.ResourceLifecycle) map[string]*gc.ResourceLifecycle {
	out := map[string]*gc.ResourceLifecycle{}
	for _, l := range all {
		out[l.Name] = l
	}
	return out
}

// TestCatalogTables: from a first table, what is served or stored changes. Exactly the kinds that follow from that change.
func TestCatalogTables(t *testing.T) {
	const workflows, runs, secrets = "workflows.argoproj.io", "runs.example.com", "secrets"
	first := []Served{
		served("argoproj.io", "v1alpha1", "Workflow", "workflows"), served("example.com", "v1", "Run", "runs"), served("", "v1", "Secret", "secrets"),
		{GroupVersionKind: batchv1.SchemeGroupVersion.WithKind("Job"), Plural: "jobs"},
	}
	users := lifecyclesOf(stored(runs, "Done", 1))
	for name, tc := range map[string]struct {
		served    []Served
		users     map[string]*gc.ResourceLifecycle
		changed   string
		source    string // of the first that changed
		unchanged string
	}{
		"nothing": {first, users, "", "", "jobs.batch pods runs.example.com secrets workflows.argoproj.io"},
		"a resource comes": {
			append(slices.Clone(first), served("tekton.dev", "v1", "TaskRun", "taskruns")), users,
			"taskruns.tekton.dev", "taskruns.tekton.dev, which the cluster serves in tekton.dev/v1,", "jobs.batch workflows.argoproj.io",
		},
		"a resource goes":   {first[1:], users, workflows, "", "jobs.batch runs.example.com secrets"},
		"everything goes":   {nil, users, "runs.example.com secrets workflows.argoproj.io", "", "jobs.batch pods"},
		"another version":   {[]Served{served("argoproj.io", "v1", "Workflow", "workflows"), first[1], first[2]}, users, workflows, "workflows.argoproj.io, which the cluster serves in argoproj.io/v1,", "runs.example.com"},
		"another kind":      {[]Served{served("argoproj.io", "v1alpha1", "Flow", "workflows"), first[1], first[2]}, users, workflows, "workflows.argoproj.io, which the cluster serves in argoproj.io/v1alpha1,", "runs.example.com"},
		"a lifecycle comes": {first, lifecyclesOf(stored(runs, "Done", 1), stored(secrets, "Used", 3)), secrets, "generation 3 of ResourceLifecycle secrets", "runs.example.com workflows.argoproj.io"},
		"a lifecycle goes":  {first, nil, runs, "runs.example.com, which the cluster serves in example.com/v1,", "workflows.argoproj.io secrets"},
		"a lifecycle is edited": {
			first, lifecyclesOf(stored(runs, "Over", 2)), runs, "generation 2 of ResourceLifecycle runs.example.com", "workflows.argoproj.io secrets",
		},
		"a built-in lifecycle is replaced": {
			first, lifecyclesOf(stored(runs, "Done", 1), stored(workflows, "Done", 1)), workflows,
			"generation 1 of ResourceLifecycle workflows.argoproj.io", "runs.example.com secrets",
		},
		"a lifecycle of a resource that is not served": {first, lifecyclesOf(stored(runs, "Done", 1), stored("a.b", "Done", 1)), "", "", "runs.example.com"},
		"a lifecycle that says only what is referred to": {
			first, lifecyclesOf(stored(runs, "Done", 1), referring(workflows, 1, toSecret("'a'")), referring(secrets, 1)), "", "",
			"workflows.argoproj.io runs.example.com secrets",
		},
		"a lifecycle that says only what is independent": {
			first, lifecyclesOf(stored(runs, "Done", 1), independent(secrets, "")), secrets, "generation 1 of ResourceLifecycle secrets",
			"workflows.argoproj.io runs.example.com",
		},
		"a lifecycle no longer says when objects finish": {
			first, lifecyclesOf(referring(runs, 2, toSecret("'a'"))), runs, "runs.example.com, which the cluster serves in example.com/v1,", "workflows.argoproj.io",
		},
		"Jobs have the lifecycle of Builtin": {first, lifecyclesOf(stored(runs, "Done", 1), stored(gc.ResourceJobs, "Done", 1)), "", "", "jobs.batch"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := NewCatalog()
			if err != nil {
				t.Fatal(err)
			}
			before := c.Table(first, users, Builtin())
			after := c.Table(tc.served, tc.users, before)
			changed := slices.Sorted(slices.Values(after.Changed(before).UnsortedList()))
			if got := strings.Join(changed, " "); got != tc.changed {
				t.Fatalf("changed: %s; want %s", got, tc.changed)
			}
			if tc.source != "" {
				if k, err := after.For(changed[0]); err != nil || k.Source.Text != tc.source {
					t.Errorf("its source is %q, %v; want %q", k.Source.Text, err, tc.source)
				}
			}
			for _, resource := range strings.Fields(tc.unchanged) {
				was, _ := before.For(resource)
				is, err := after.For(resource)
				if err != nil || was != is {
					t.Errorf("%s has changed, %v", resource, err)
				}
			}
		})
	}
}

// TestWhatFinishes: resources with a lifecycle, of a user or built in, finish; others do not.
func TestWhatFinishes(t *testing.T) {
	c, err := NewCatalog()
	if err != nil {
		t.Fatal(err)
	}
	table := c.Table([]Served{
		served("argoproj.io", "v1alpha1", "Workflow", "workflows"), served("example.com", "v1", "Run", "runs"), served("", "v1", "Secret", "secrets"),
	}, lifecyclesOf(stored("runs.example.com", "Done", 1)), Builtin())
	for resource, finishes := range map[string]bool{
		"workflows.argoproj.io": true, "runs.example.com": true, "secrets": false, "jobs.batch": true, "pods": true,
	} {
		k, err := table.For(resource)
		if err != nil || k.Finishes != finishes || !k.Deletable() {
			t.Errorf("%s: %+v, %v", resource, k, err)
		}
	}
}

// TestCompileLifecycle: a lifecycle need not say when objects finish, and what it says must be valid.
func TestCompileLifecycle(t *testing.T) {
	kind := schema.GroupKind{Group: "example.com", Kind: "Run"}
	const runs = "runs.example.com"
	both := stored(runs, "Done", 1)
	both.Spec.References = []gc.LifecycleReference{toSecret("object.spec.secretName")}
	broken := stored(runs, "Done", 1)
	broken.Spec.References = []gc.LifecycleReference{toSecret("'a'"), toSecret("object.newFunction()")}
	for name, tc := range map[string]struct {
		lifecycle *gc.ResourceLifecycle
		compiled  bool
		err       string
	}{
		"a finish":                    {stored(runs, "Done", 1), true, ""},
		"references":                  {referring(runs, 1, toSecret("object.spec.secretName")), false, ""},
		"both":                        {both, true, ""},
		"neither":                     {referring(runs, 1), false, ""},
		"a broken reference":          {broken, false, "spec.references[1].names: "},
		"a target that is not known":  {referring(runs, 1, gc.LifecycleReference{To: "pods", Names: "'a'"}), false, "spec.references[0].to: "},
		"references that are damaged": {damaged(func(string) *gc.ResourceLifecycle { return referring(runs, 1, toSecret("'a'")) })(runs), false, "unknown field"},
	} {
		got, err := CompileLifecycle(tc.lifecycle, kind)
		if (got != nil) != tc.compiled || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestUnreadableLifecycles: a lifecycle of a newer version, or one that is damaged, holds all objects of its resource.
func TestUnreadableLifecycles(t *testing.T) {
	odd := stored("runs.example.com", "Done", 1)
	odd.Spec.Finished.When = "object.newFunction()"
	damaged := stored("runs.example.com", "Done", 1)
	damaged.Annotations = map[string]string{gc.AnnotationUnreadable: "spec.finished: unknown field"}
	references := stored("runs.example.com", "Done", 1)
	references.Spec.References = []gc.LifecycleReference{toSecret("object.newFunction()")}
	for why, l := range map[string]*gc.ResourceLifecycle{
		"ResourceLifecycle runs.example.com: spec.references[0].names: ":   references,
		"ResourceLifecycle runs.example.com: spec.finished.when: ":         odd,
		"ResourceLifecycle runs.example.com: spec.finished: unknown field": damaged,
	} {
		c, err := NewCatalog()
		if err != nil {
			t.Fatal(err)
		}
		table := c.Table([]Served{served("example.com", "v1", "Run", "runs")}, lifecyclesOf(l), Builtin())
		k, err := table.For("runs.example.com")
		if err != nil {
			t.Fatal(err)
		}
		f, err := k.Fact(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "r", ResourceVersion: "1"}})
		if err != nil || !strings.HasPrefix(f.Failed, why) || f.Finished || !k.Finishes {
			t.Errorf("got %+v, %v; want it to fail because %s", f, err, why)
		}
	}
}

// independent is a ResourceLifecycle of a user that says of no object when it has finished.
func independent(name, needs string) *gc.ResourceLifecycle {
	return &gc.ResourceLifecycle{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec:       gc.ResourceLifecycleSpec{Dependents: gc.LifecycleIndependent, Needs: needs},
	}
}

// TestIndependentKinds: a lifecycle without finished says whether objects need what they control, and leaves the rest as it is built in.
func TestIndependentKinds(t *testing.T) {
	c, err := NewCatalog()
	if err != nil {
		t.Fatal(err)
	}
	workflows := served("argoproj.io", "v1alpha1", "Workflow", "workflows")
	crons := served("argoproj.io", "v1alpha1", "CronWorkflow", "cronworkflows")
	runs := served("example.com", "v1", "Run", "runs")
	newer := independent("runs.example.com", "")
	gc.MarkUnreadable(newer, errors.New("a newer version wrote it"))
	for name, tc := range map[string]struct {
		served      Served
		user        *gc.ResourceLifecycle
		finishes    bool
		independent lifecycle.Independence
		needs       bool
	}{
		"built in, it finishes":                {workflows, nil, true, lifecycle.Dependent, false},
		"built in, it does not":                {crons, nil, false, lifecycle.FinishedIndependent, true},
		"of a user":                            {runs, independent("runs.example.com", ""), false, lifecycle.Independent, false},
		"of a user, except some":               {runs, independent("runs.example.com", "'a'"), false, lifecycle.Independent, true},
		"besides what is built in":             {workflows, independent("workflows.argoproj.io", ""), true, lifecycle.Independent, false},
		"instead of what is built in":          {crons, independent("cronworkflows.argoproj.io", ""), false, lifecycle.Independent, false},
		"only what is referred to":             {crons, referring("cronworkflows.argoproj.io", 1, toSecret("'a'")), false, lifecycle.FinishedIndependent, true},
		"a finish instead of what is built in": {crons, stored("cronworkflows.argoproj.io", "Done", 1), true, lifecycle.Dependent, false},
		"it cannot be read":                    {runs, newer, true, lifecycle.Dependent, false},
		"nothing":                              {runs, nil, false, lifecycle.Dependent, false},
	} {
		k := c.Kind(tc.served, tc.user, NewTable())
		if k.Finishes != tc.finishes || k.Independent != tc.independent || k.HasNeeds != tc.needs {
			t.Errorf("%s: finishes %v, independent %v, needs %v", name, k.Finishes, k.Independent, k.HasNeeds)
		}
	}
}
