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
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// Objects of testdata were created at 10:00, and those that say when they finished did so at 11:00.
const (
	running        = "running"
	succeeded      = "Succeeded at 11:00"
	failed         = "Failed at 11:00"
	failedSometime = "Failed, in doubt" // It does not say when.
)

var kubeflow = map[string]string{"running": running, "succeeded": succeeded + ", TTL 1h0m0s", "failed": failed}

// outcomes says what becomes of each object in testdata.
var outcomes = map[string]map[string]string{
	"jobsets.jobset.x-k8s.io": {
		"created": running, "running": running, "suspended": running, "resumed": running,
		"completed": succeeded + ", TTL 1h0m0s", "failed": failed,
	},
	"trainjobs.trainer.kubeflow.org": {
		"created": running, "running": running, "suspended": running,
		"complete": succeeded + ", TTL 10m0s", "failed": failed, "deadline-exceeded": failed, "runtime-not-supported": failed,
	},
	"tfjobs.kubeflow.org": kubeflow, "xgboostjobs.kubeflow.org": kubeflow, "paddlejobs.kubeflow.org": kubeflow, "jaxjobs.kubeflow.org": kubeflow,
	"pytorchjobs.kubeflow.org": {
		"new": running, "created": running, "running": running, "restarting": running, "suspended": running,
		"succeeded": succeeded + ", TTL 1h0m0s", "failed": failed, "succeeded-without-completion-time": succeeded,
	},
	"mpijobs.kubeflow.org": {
		"new": running, "created": running, "running": running, "restarting": running, "suspended": running,
		"succeeded": succeeded + ", TTL 1h0m0s", "failed": failed, "succeeded-without-completion-time": succeeded,
		"failed-without-completion-time": running, "evicted": running, // The operator tries again.
		"v2beta1-running": running, "v2beta1-succeeded": succeeded, "v2beta1-failed": failed,
	},
	"workflows.argoproj.io": {
		"new": running, "pending": running, "running": running, "archiving": running,
		"succeeded": succeeded, "failed": failed, "error": failed, "archived": succeeded,
		"succeeded-with-ttl": succeeded + ", TTL 10s", "failed-with-ttl": failed + ", TTL 20s", "error-with-ttl": failed + ", TTL 30s",
		"succeeded-after-completion": succeeded + ", TTL 30s", "error-after-failure": failed,
		"from-template": succeeded + ", TTL 10s", "overrides-template": succeeded + ", TTL 40s", "empty-strategy": succeeded,
		"without-finish-time": failedSometime,
	},
	"taskruns.tekton.dev": {
		"new": running, "started": running, "running": running, "to-be-retried": running,
		"succeeded": succeeded, "failed": failed, "timed-out": failed, "cancelled": failed, "image-pull-failed": failed,
	},
	"pipelineruns.tekton.dev": {
		"new": running, "started": running, "running": running, "pending": running, "stopping": running,
		"succeeded": succeeded, "completed": succeeded, "failed": failed, "timed-out": failed, "cancelled": failed,
	},
	"rayjobs.ray.io": {
		"new": running, "initializing": running, "pending": running, "running": running, "waiting": running, "suspending": running,
		"suspended": running, "retrying": running, "job-succeeded": running, "scheduled": running, "scheduled-complete": running,
		"complete": succeeded, "stopped": failed, "app-failed": failed, "submission-failed": failed, "deadline-exceeded": failed,
		"without-end-time": failedSometime,
	},
	"sparkapplications.sparkoperator.k8s.io": {
		"created": running, "new": running, "submitted": running, "running": running, "submission-failed": running, "pending-rerun": running,
		"invalidating": running, "succeeding": running, "failing": running, "unknown": running,
		"completed": succeeded + ", TTL 1h0m0s", "failed": failed, "failed-without-termination-time": failedSometime,
	},
	"jobs.batch.volcano.sh": {
		"new": running, "pending": running, "aborting": running, "aborted": running, "running": running, "restarting": running,
		"completing": running, "terminating": running,
		"completed": succeeded + ", TTL 1h0m0s", "terminated": failed, "failed": failed,
	},
	"workloads.kueue.x-k8s.io": {
		"new": running, "pending": running, "admitted": running, "evicted": running,
		"succeeded": succeeded, "failed": failed, "out-of-sync": failed, "admission-checks-rejected": failed,
	},
	"analysisruns.argoproj.io": {
		"new": running, "pending": running, "running": running,
		"successful": succeeded, "failed": failed, "error": failed, "inconclusive": failed,
		"successful-with-ttl": succeeded + ", TTL 10s", "failed-with-ttl": failed + ", TTL 20s", "error-with-ttl": failed + ", TTL 30s",
		"inconclusive-after-failure": failed, "failed-after-completion": failed + ", TTL 30s",
		"without-completion-time": "Succeeded, in doubt",
	},
}

// outcome writes a fact in the words of the table.
func outcome(f *lifecycle.Fact) string {
	out := string(f.Outcome)
	switch {
	case f.Failed != "":
		return f.Failed
	case !f.Finished:
		out = running
	case f.Doubt != "":
		out += ", in doubt"
	default:
		out += " at " + f.FinishedAt.Format("15:04")
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
	if got, want := slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(outcomes)); !slices.Equal(got, want) {
		t.Errorf("there are lifecycles of %v,\nand cases of %v", got, want)
	}
	for resource, want := range outcomes {
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
