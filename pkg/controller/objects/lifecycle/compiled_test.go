// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

var kindRun = schema.GroupKind{Group: "example.com", Kind: "Run"}

func runLifecycle() gc.ResourceLifecycleSpec {
	return gc.ResourceLifecycleSpec{
		Finished: &gc.FinishedExpressions{
			When:      "object.?status.phase.orValue('') in ['Done', 'Failed']",
			Succeeded: "object.status.phase == 'Done'",
			At:        "object.status.at",
		},
		NativeTTL: "object.?spec.ttl.orValue(null)",
	}
}

func run(spec, status map[string]any) *unstructured.Unstructured {
	object := map[string]any{
		"apiVersion": "example.com/v1", "kind": "Run",
		"metadata": map[string]any{
			"namespace": "team-a", "name": "r", "uid": "uid-r", "resourceVersion": "7", "creationTimestamp": "2026-03-01T10:00:00Z",
			"labels":          map[string]any{"app": "web"},
			"annotations":     map[string]any{gc.AnnotationTTL: "2h"},
			"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": true}},
		},
	}
	if spec != nil {
		object["spec"] = spec
	}
	if status != nil {
		object["status"] = status
	}
	return &unstructured.Unstructured{Object: object}
}

func TestCompiledFacts(t *testing.T) {
	at, hour := time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC), time.Hour
	done := func(fields ...any) map[string]any {
		out := map[string]any{"phase": "Done", "at": "2026-03-01T11:00:00Z"}
		for i := 0; i < len(fields); i += 2 {
			out[fields[i].(string)] = fields[i+1]
		}
		return out
	}
	type want struct {
		end
		ttl    *time.Duration
		failed string // how it begins
	}
	for name, tc := range map[string]struct {
		spec, status map[string]any
		want         want
	}{
		"without status":              {nil, nil, want{}},
		"running":                     {nil, map[string]any{"phase": "Running"}, want{}},
		"succeeded":                   {nil, done(), want{end: end{true, gc.OutcomeSucceeded, at, ""}}},
		"failed":                      {nil, done("phase", "Failed"), want{end: end{true, gc.OutcomeFailed, at, ""}}},
		"with a native TTL":           {map[string]any{"ttl": int64(3600)}, done(), want{end: end{true, gc.OutcomeSucceeded, at, ""}, ttl: &hour}},
		"running, with a native TTL":  {map[string]any{"ttl": int64(3600)}, nil, want{}},
		"its finish time is null":     {nil, done("at", nil), want{end: end{true, gc.OutcomeSucceeded, time.Time{}, "its status does not say when it finished"}}},
		"it finished before creation": {nil, done("at", "2026-03-01T09:00:00Z"), want{end: end{true, gc.OutcomeSucceeded, at.Add(-time.Hour), ""}}},
		"its finish time is missing": {
			nil, map[string]any{"phase": "Done"},
			want{failed: "spec.finished.at: expression 'object.status.at' resulted in error: no such key: at"}},
		"its finish time is a number": {nil, done("at", int64(1)), want{failed: "spec.finished.at: "}},
		"its finish time is no time":  {nil, done("at", "soon"), want{failed: "spec.finished.at: "}},
		"its native TTL is no duration": {
			map[string]any{"ttl": "soon"}, done(), want{failed: "spec.nativeTTL: "}},
		"its phase is no string": {nil, done("phase", map[string]any{}), want{}},
		"its status is a string": {nil, nil, want{}},
	} {
		t.Run(name, func(t *testing.T) {
			object := run(tc.spec, tc.status)
			if strings.HasSuffix(name, "status is a string") {
				object.Object["status"] = "odd"
			}
			spec := runLifecycle()
			c, err := lifecycle.Compile("runs.example.com", kindRun, &spec)
			if err != nil {
				t.Fatal(err)
			}
			f, err := c.Fact(object)
			if err != nil {
				t.Fatal(err)
			}
			checkEnd(t, f, tc.want.end)
			if fmt.Sprint(f.NativeTTL != nil && *f.NativeTTL == hour) != fmt.Sprint(tc.want.ttl != nil) {
				t.Errorf("its native TTL is %v", f.NativeTTL)
			}
			if (f.Failed == "") != (tc.want.failed == "") || !strings.HasPrefix(f.Failed, tc.want.failed) {
				t.Errorf("failed: %s", f.Failed)
			}
			if f.Resource != "runs.example.com" || f.Namespace != "team-a" || f.Name != "r" || f.UID != "uid-r" || f.ResourceVersion != 7 ||
				f.Labels.Get("app") != "web" || f.TTL == nil || *f.TTL != "2h" || f.Controller.String() != "Pod/p" {
				t.Errorf("its metadata became %+v", f)
			}
		})
	}
}

// TestLongFailures: an error repeats values of the object, and there may be many such objects.
func TestLongFailures(t *testing.T) {
	spec := runLifecycle()
	c, err := lifecycle.Compile("runs.example.com", kindRun, &spec)
	if err != nil {
		t.Fatal(err)
	}
	f, err := c.Fact(run(nil, map[string]any{"phase": "Done", "at": strings.Repeat("x", 1<<20)}))
	if err != nil || f.Failed == "" || len(f.Failed) > 512+len("...") {
		t.Errorf("%d bytes, %v", len(f.Failed), err)
	}
}

func TestCompileErrors(t *testing.T) {
	for want, change := range map[string]func(*gc.ResourceLifecycleSpec){
		"spec.finished.when: compilation failed: ":     func(s *gc.ResourceLifecycleSpec) { s.Finished.When = "" },
		"spec.finished.succeeded: must evaluate to ":   func(s *gc.ResourceLifecycleSpec) { s.Finished.Succeeded = "1" },
		"spec.finished.at: must evaluate to one of ":   func(s *gc.ResourceLifecycleSpec) { s.Finished.At = "1" },
		"spec.nativeTTL: compilation failed: ERROR: <": func(s *gc.ResourceLifecycleSpec) { s.NativeTTL = "x" },
	} {
		spec := runLifecycle()
		change(&spec)
		if _, err := lifecycle.Compile("runs.example.com", kindRun, &spec); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestCompiledReads(t *testing.T) {
	spec := runLifecycle()
	c, err := lifecycle.Compile("runs.example.com", kindRun, &spec)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(c.Fields()), "[[spec ttl] [status at] [status phase]]"; got != want {
		t.Errorf("reads %s, want %s", got, want)
	}
	if !c.Finishes() || c.Needs() {
		t.Error("it does not finish, or needs something")
	}
	bad := run(nil, nil)
	bad.SetResourceVersion("x")
	if f, err := c.Fact(bad); err == nil {
		t.Errorf("a resource version that is no number became %d", f.ResourceVersion)
	}
}

// TestCompiledNeeds: what an object needs of what it controls, also if objects of the resource do not finish.
func TestCompiledNeeds(t *testing.T) {
	for needs, want := range map[string]struct {
		names  []string
		failed string // how it begins
	}{
		"object.?status.active.orValue([]).map(a, a.name)": {[]string{"x", "y"}, ""},
		"object.status.last":                        {[]string{"x"}, ""},
		"[dyn(object.status.last), dyn(['z', ''])]": {[]string{"x", "z"}, ""},
		"object.?status.none.orValue('')":           {nil, ""},
		"object.status.none":                        {nil, "spec.needs: "},
		"object.status":                             {nil, "spec.needs: "},
		"[1]":                                       {nil, "spec.needs: "},
	} {
		c, err := lifecycle.Compile("runs.example.com", kindRun, &gc.ResourceLifecycleSpec{Dependents: gc.LifecycleIndependent, Needs: needs})
		if err != nil {
			if want.failed != "" {
				continue // It is refused when it is written.
			}
			t.Fatal(err)
		}
		f, err := c.Fact(run(nil, map[string]any{
			"last": "x", "active": []any{map[string]any{"name": "x"}, map[string]any{"name": "y"}},
		}))
		if err != nil {
			t.Fatal(err)
		}
		if c.Finishes() || f.Finished || !slices.Equal(f.Needs, want.names) || !strings.HasPrefix(f.Failed, want.failed) ||
			(f.Failed == "") != (want.failed == "") {
			t.Errorf("%s: needs %v, failed %q, finished %v", needs, f.Needs, f.Failed, f.Finished)
		}
	}
}

func TestFromMetadata(t *testing.T) {
	f, err := lifecycle.FromMetadata("secrets", schema.GroupKind{Kind: "Secret"}, &metav1.ObjectMeta{Name: "s", ResourceVersion: "3"})
	if err != nil || f.Resource != "secrets" || f.Name != "s" || f.ResourceVersion != 3 || f.Finished {
		t.Errorf("got %+v, %v", f, err)
	}
}
