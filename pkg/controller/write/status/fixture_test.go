// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
	"github.com/winnow-dev/winnow/pkg/controller/tracker"
	gcfake "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/fake"
)

// fixture is a writer, the tracker that it reads from, and what it wrote. The tracker observes the statuses that the writer writes, as
// through a watch.
type fixture struct {
	*testing.T
	*Writer
	Tracker  *tracker.Tracker
	clock    *clocktesting.FakePassiveClock
	patches  []clienttesting.PatchAction
	wrote    chan string   // may be nil
	takes    time.Duration // how long each patch takes
	refuse   error         // the answer to patches
	cluster  *fake.Clientset
	policies map[string]*gc.CleanupPolicy
	version  uint64
}

func newFixture(t *testing.T, policies ...*testbuilders.PolicyBuilder) *fixture {
	o := &fixture{
		T:        t,
		clock:    clocktesting.NewFakePassiveClock(testbuilders.Now),
		cluster:  fake.NewClientset(),
		policies: map[string]*gc.CleanupPolicy{},
	}
	client := gcfake.NewSimpleClientset()
	client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchAction)
		o.patches = append(o.patches, patch)
		o.clock.SetTime(o.clock.Now().Add(o.takes))
		if patch.GetNamespace() == "" {
			return true, &v1alpha1.ClusterCleanupPolicy{}, o.refuse
		}
		if o.wrote != nil {
			o.wrote <- patch.GetName()
		}
		return true, &v1alpha1.CleanupPolicy{}, o.refuse
	})
	o.Tracker = tracker.New(memory.Config{HoldAbove: -1, HoldAboveTotal: -1}, nil)
	o.Writer = New(
		Config{
			Tracker:  o.Tracker,
			Reported: func(string, []report.Report) {},
			Policies: client.GcV1alpha1(),
			Events:   o.cluster,
			Clock:    o.clock,
			Served: func(resource string) gc.ServedResource {
				if resource == "run.example.com" {
					return gc.ServedResource{Missing: true, Similar: "runs.example.com"}
				}
				return gc.ServedResource{Missing: true}
			},
			Instance: "replica-1",
		},
	)
	o.Tracker.ReplacePolicies(nil, "", testbuilders.Now)
	o.Tracker.ReplaceClusterPolicies(nil, "", testbuilders.Now)
	o.Tracker.ReplaceNamespaces([]*metav1.PartialObjectMetadata{testbuilders.Namespace(testbuilders.Home, "1")}, "", testbuilders.Now)
	o.Tracker.ReplaceCronJobs(nil, testbuilders.Now)
	for _, p := range policies {
		o.policy(p.Obj())
	}
	return o
}

func (o *fixture) policy(p *gc.CleanupPolicy) {
	o.policies[p.Name] = p
	o.Tracker.SetPolicy(p, o.clock.Now())
	for resource := range o.Tracker.Coverage() {
		o.Tracker.BeginMerge(resource, testbuilders.Home).End(true, o.clock.Now())
	}
}

// policiesIn creates a policy of-NAMESPACE in each of these namespaces.
func (o *fixture) policiesIn(namespaces ...string) {
	for _, ns := range namespaces {
		p := testbuilders.Policy("of-" + ns).Default("1h").Obj()
		p.Namespace = ns
		o.Tracker.SetPolicy(p, testbuilders.Now)
	}
}

// nothingUrgent makes no namespace urgent any more.
func (o *fixture) nothingUrgent() {
	for _, ok := o.Tracker.PopUrgent(); ok; _, ok = o.Tracker.PopUrgent() {
	}
}

func (o *fixture) upsert(all ...*lifecycle.Fact) {
	for _, f := range all {
		o.version++
		f.ResourceVersion = o.version
		o.Tracker.Upsert(facts.Compress(f), o.clock.Now())
	}
}

// after advances the clock, flushes, and returns the patches of statuses and the events that were written.
func (o *fixture) after(d time.Duration) (patches []clienttesting.PatchAction, events []eventsv1.Event) {
	o.Helper()
	o.clock.SetTime(o.clock.Now().Add(d))
	o.patches = nil
	o.cluster.ClearActions()
	o.flush(context.Background())
	for _, action := range o.cluster.Actions() {
		events = append(events, *action.(clienttesting.CreateAction).GetObject().(*eventsv1.Event))
	}
	return o.patches, events
}

// observe makes the tracker observe what was patched.
func (o *fixture) observe(patches []clienttesting.PatchAction) {
	o.Helper()
	for _, patch := range patches {
		var versioned v1alpha1.CleanupPolicy
		if err := json.Unmarshal(patch.GetPatch(), &versioned); err != nil {
			o.Fatal(err)
		}
		p := o.policies[patch.GetName()].DeepCopy()
		if err := v1alpha1.Convert_v1alpha1_CleanupPolicyStatus_To_gc_CleanupPolicyStatus(&versioned.Status, &p.Status, nil); err != nil {
			o.Fatal(err)
		}
		o.policy(p)
	}
}

func names(patches []clienttesting.PatchAction) []string {
	var out []string
	for _, p := range patches {
		out = append(out, p.GetName())
	}
	return out
}

func notes(events []eventsv1.Event) []string {
	var out []string
	for _, e := range events {
		out = append(out, e.Type+" "+e.Reason+": "+e.Note)
	}
	return out
}

func (o *fixture) writes(d time.Duration, wantPatches []string, wantNotes []string) {
	o.Helper()
	patches, events := o.after(d)
	if got := names(patches); !slices.Equal(got, wantPatches) {
		o.Fatalf("wrote the status of %q, want %q", got, wantPatches)
	}
	if got := notes(events); !slices.Equal(got, wantNotes) {
		o.Fatalf("wrote events\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(wantNotes, "\n"))
	}
	o.observe(patches)
}
