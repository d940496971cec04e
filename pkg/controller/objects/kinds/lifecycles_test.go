// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/winnow-dev/winnow/pkg/apis/gc/validation"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// outcomes returns the outcome of each object in testdata, by resource.
func outcomes(t testing.TB) map[string]map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/outcomes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]map[string]string
	if err := yaml.UnmarshalStrict(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// outcome writes a fact in the words of the table.
func outcome(f *lifecycle.Fact) string {
	out := string(f.Outcome)
	switch {
	case f.Failed != "":
		return f.Failed
	case !f.Finished:
		out = "running"
	case f.Doubt != "":
		out += ", in doubt"
	default:
		out += " at " + f.FinishedAt.Format("15:04")
	}
	if len(f.Needs) > 0 {
		out += fmt.Sprintf(", needs %v", f.Needs)
	}
	if f.NativeTTL != nil {
		out += ", TTL " + f.NativeTTL.String()
	}
	return out
}

func builtIn(t testing.TB, resource string) *lifecycle.Compiled {
	t.Helper()
	all, err := Lifecycles()
	if err != nil {
		t.Fatal(err)
	}
	c, err := lifecycle.Compile(resource, schema.GroupKind{}, &all[resource].Spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestLifecycles reduces the objects in testdata with the built-in lifecycles.
func TestLifecycles(t *testing.T) {
	all, err := Lifecycles()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(outcomes(t))); !slices.Equal(got, want) {
		t.Errorf("there are lifecycles of %v,\nand cases of %v", got, want)
	}
	for resource, want := range outcomes(t) {
		t.Run(resource, func(t *testing.T) {
			c := builtIn(t, resource)
			got := map[string]string{}
			for _, object := range samples(t, resource) {
				f, err := c.Fact(object)
				if err != nil {
					t.Fatal(err)
				}
				got[f.Name] = outcome(f)
			}
			for _, name := range slices.Sorted(maps.Keys(got)) {
				if got[name] != want[name] {
					t.Errorf("%s: got %s, want %s", name, got[name], want[name])
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d objects, and %d cases", len(got), len(want))
			}
		})
	}
}

// samples reads the objects of a resource in testdata.
func samples(t testing.TB, resource string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile("testdata/" + resource + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out []*unstructured.Unstructured
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		json, err := yaml.YAMLToJSONStrict([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(json); err != nil {
			t.Fatal(err)
		}
		out = append(out, object)
	}
	return out
}

// TestLifecyclesAreValid: each is what a user could write, in a file of its name that begins with what it was read from.
func TestLifecyclesAreValid(t *testing.T) {
	all, err := Lifecycles()
	if err != nil {
		t.Fatal(err)
	}
	for resource, l := range all {
		if errs := validation.ValidateResourceLifecycle(l); len(errs) > 0 {
			t.Errorf("%s: %v", resource, errs)
		}
		text, err := lifecycles.ReadFile("lifecycles/" + resource + ".yaml")
		if err != nil || !strings.Contains(string(text), "# Read from ") || !strings.Contains(string(text), "https://") {
			t.Errorf("%s: %v: the file does not say what it was read from", resource, err)
		}
	}
}

// TestLifecyclesReadLittle: objects are large, and only the fields that are read are decoded.
func TestLifecyclesReadLittle(t *testing.T) {
	for resource, want := range map[string]string{
		"jobsets.jobset.x-k8s.io":                "[[spec ttlSecondsAfterFinished] [status conditions]]",
		"mpijobs.kubeflow.org":                   "[[apiVersion] [spec runPolicy ttlSecondsAfterFinished] [status completionTime] [status conditions]]",
		"taskruns.tekton.dev":                    "[[status completionTime] [status conditions]]",
		"sparkapplications.sparkoperator.k8s.io": "[[spec timeToLiveSeconds] [status applicationState state] [status terminationTime]]",
		"prowjobs.prow.k8s.io": "[[metadata labels prow.k8s.io/gerrit-report-label] [spec type] [status completionTime] " +
			"[status prev_report_states gcsk8sreporter] [status prev_report_states gcsreporter] " +
			"[status prev_report_states github-reporter] [status state]]",
		"workflows.argoproj.io": "[[metadata labels workflows.argoproj.io/workflow-archiving-status] [spec ttlStrategy] [status finishedAt] " +
			"[status phase] [status storedWorkflowTemplateSpec ttlStrategy]]",
	} {
		if got := fmt.Sprint(builtIn(t, resource).Fields()); got != want {
			t.Errorf("%s reads\n%s, want\n%s", resource, got, want)
		}
	}
}

// BenchmarkLifecycles: there may be a hundred thousand objects.
func BenchmarkLifecycles(b *testing.B) {
	c, object := builtIn(b, "workflows.argoproj.io"), samples(b, "workflows.argoproj.io")[6]
	for b.Loop() {
		if _, err := c.Fact(object); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(time.Second)/float64(b.Elapsed())*float64(b.N), "objects/s")
}
