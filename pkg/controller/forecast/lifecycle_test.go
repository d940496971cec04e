// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/trial"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/observe"
	"github.com/winnow-dev/winnow/pkg/controller/observe/decode"
)

const runs = "runs.example.com"

var served = kinds.Served{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Run"}, Plural: "runs"}

// lifecycleOf returns a lifecycle of Runs.
func lifecycleOf(generation int64, when string) *gc.ResourceLifecycle {
	return &gc.ResourceLifecycle{
		ObjectMeta: metav1.ObjectMeta{Name: runs, UID: "uid-runs", Generation: generation},
		Spec: gc.ResourceLifecycleSpec{
			Finished:   &gc.FinishedExpressions{When: when, Succeeded: "true", At: "object.status.at"},
			Dependents: gc.LifecycleLeaveToOwner,
		},
	}
}

var (
	whenDone   = lifecycleOf(1, "object.status.phase == 'Done'")
	whenPaused = lifecycleOf(2, "object.status.phase in ['Done', 'Paused']")
)

// independent returns a lifecycle with objects that do not need the objects that they control.
func independent() *gc.ResourceLifecycle {
	l := lifecycleOf(2, whenDone.Spec.Finished.When)
	l.Spec.Dependents = gc.LifecycleIndependent
	return l
}

// run returns a Run that has been in a phase for two hours, and was created an hour before that.
func run(namespace, name, phase string) *unstructured.Unstructured {
	at := testbuilders.Now.Add(-2 * time.Hour)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Run",
		"metadata": map[string]any{
			"namespace": namespace, "name": name, "uid": "uid-" + name, "resourceVersion": "1",
			"creationTimestamp": at.Add(-time.Hour).Format(time.RFC3339), "labels": map[string]any{"app": "train"},
		},
		"status": map[string]any{"phase": phase, "at": at.Format(time.RFC3339)},
	}}
}

// runsIn returns Runs in a phase.
func runsIn(namespace, phase string, n int) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for i := range n {
		out = append(out, run(namespace, fmt.Sprintf("%s-%s-%d", namespace, strings.ToLower(phase), i), phase))
	}
	return out
}

// runCluster serves Runs, of a namespace or of all.
type runCluster struct {
	runs  []*unstructured.Unstructured
	err   error
	asked []string
}

func (c *runCluster) RoundTrip(r *http.Request) (*http.Response, error) {
	c.asked = append(c.asked, r.URL.Path)
	if c.err != nil {
		return nil, c.err
	}
	var items []any
	for _, o := range c.runs {
		if !strings.Contains(r.URL.Path, "/namespaces/") || strings.Contains(r.URL.Path, "/namespaces/"+o.GetNamespace()+"/") {
			items = append(items, o.Object)
		}
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "example.com/v1", "kind": "RunList", "metadata": map[string]any{"resourceVersion": "9"}, "items": items,
	})
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}}, Body: io.NopCloser(bytes.NewReader(text)),
		Request: r,
	}, err
}

// runWorld is a world with Runs, which have a lifecycle or none.
type runWorld struct {
	*world
	runCluster
	t       *testing.T
	present *kinds.Kind
}

func newRunWorld(t *testing.T, l *gc.ResourceLifecycle, all ...*unstructured.Unstructured) *runWorld {
	t.Helper()
	w := &runWorld{world: newWorld(), runCluster: runCluster{runs: all}, t: t}
	w.present = w.kind(l)
	w.SetKinds(kinds.Builtin().With(w.present), testbuilders.Now)
	w.StartObserving(w.present)
	return w
}

// kind returns the kind of Runs with a lifecycle, or with none.
func (w *runWorld) kind(l *gc.ResourceLifecycle) *kinds.Kind {
	catalog := kinds.Catalog{}
	return catalog.Kind(served, l, w.Kinds())
}

// with sets policies and lists everything.
func (w *runWorld) with(policies ...metav1.Object) *runWorld {
	w.t.Helper()
	w.world.with(policies...)
	w.list(runs, w.reduced(w.present))
	for w.Step(testbuilders.Now) {
	}
	return w
}

// reduced returns the facts of all Runs.
func (w *runWorld) reduced(k *kinds.Kind) []*facts.Compact {
	w.t.Helper()
	var out []*facts.Compact
	for _, o := range w.runs {
		var object runtime.Object = o.DeepCopy()
		if !k.Finishes {
			m := &metav1.PartialObjectMetadata{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, m); err != nil {
				w.t.Fatal(err)
			}
			object = m
		}
		compact, err := decode.Fact(k, object)
		if err != nil {
			w.t.Fatal(err)
		}
		out = append(out, compact)
	}
	return out
}

func (w *runWorld) forecaster() *Forecaster {
	client, err := observe.NewClient(&rest.Config{Host: "http://cluster.test", QPS: -1, Transport: &w.runCluster})
	if err != nil {
		w.t.Fatal(err)
	}
	return New(Config{Tracker: w.Tracker, Client: client, Clock: clocktesting.NewFakePassiveClock(testbuilders.Now)})
}

// forecast forecasts a change of the lifecycle.
func (w *runWorld) forecast(change gc.LifecycleChange) []string {
	return w.forecaster().ForecastLifecycle(w.t.Context(), change, w.kind(change.After))
}

func ofRuns(ttl gc.TTL) *testbuilders.RuleBuilder { return testbuilders.Rule("runs", ttl).For(runs) }

func TestForecastLifecycle(t *testing.T) {
	p := testbuilders.Policy("p").Rules(ofRuns("1h")).Obj()
	everything := clusterPolicy("all", func(s *gc.ClusterCleanupPolicySpec) {
		s.Rules = []gc.CleanupRule{{
			Name: "all", Resources: []string{gc.ResourceAll}, TTL: &hour,
			MatchConditions: []gc.MatchCondition{{Name: "c", Expression: "object.metadata.name != 'team-b-done-0'"}},
		}}
	})
	created := policyOf("p", func(s *gc.CleanupPolicySpec) {
		s.Rules = []gc.CleanupRule{{
			Name: "runs", Resources: []string{runs}, After: gc.AfterCreated, TTL: &hour,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "train"}},
		}}
	})
	wait := func(would string) string {
		return `they ` + would + `wait for approval, because generation 2 of ResourceLifecycle runs.example.com made more objects due at once than ` +
			`--default-hold-above allows (5 in ten minutes). To look at them: `
	}
	for name, tc := range map[string]struct {
		before, after *gc.ResourceLifecycle
		runs          []*unstructured.Unstructured
		policies      []metav1.Object
		dryRun        bool
		want          []string // beginnings of lines
	}{
		"a new one": {
			after: whenDone, runs: slices.Concat(runsIn("team-a", "Done", 3), runsIn("team-a", "Busy", 3)), policies: []metav1.Object{p},
			want: []string{`with this lifecycle, policy "team-a/p" makes 3 Runs in team-a due`},
		},
		"nothing is due":       {after: whenDone, runs: runsIn("team-a", "Busy", 3), policies: []metav1.Object{p}},
		"in another namespace": {after: whenDone, runs: runsIn("team-b", "Done", 3), policies: []metav1.Object{p}},
		"no policy names it":   {after: whenDone, runs: runsIn("team-a", "Done", 3), policies: []metav1.Object{ttlPolicy("p", "1h")}},
		"an edit": {
			before: whenDone, after: whenPaused, policies: []metav1.Object{p},
			runs: slices.Concat(runsIn("team-a", "Done", 3), runsIn("team-a", "Paused", 1), runsIn("team-a", "Busy", 1)),
			want: []string{`with this change, policy "team-a/p" makes 1 Run in team-a due`},
		},
		"the reverse edit": {
			before: whenPaused, after: lifecycleOf(3, whenDone.Spec.Finished.When), policies: []metav1.Object{p},
			runs: slices.Concat(runsIn("team-a", "Done", 3), runsIn("team-a", "Paused", 1)),
		},
		"too many": {
			before: whenDone, after: whenPaused, runs: runsIn("team-a", "Paused", 6), policies: []metav1.Object{p},
			want: []string{`with this change, policy "team-a/p" makes 6 Runs in team-a due; ` + wait("") + gc.ListCommand([]string{runs}, "team-a") +
				"; to approve: kubectl annotate --overwrite cleanuppolicies.gc.winnow.dev p -n team-a gc.winnow.dev/approved-hold="},
		},
		"too many in a dry run": {
			before: whenDone, after: whenPaused, dryRun: true, runs: runsIn("team-a", "Paused", 6), policies: []metav1.Object{p},
			want: []string{`with this change, policy "team-a/p" makes 6 Runs in team-a due; ` + wait("would ")},
		},
		"too many by a new one in a dry run": {
			after: whenPaused, dryRun: true, runs: runsIn("team-a", "Paused", 6), policies: []metav1.Object{p},
			want: []string{strings.TrimSuffix(`with this lifecycle, policy "team-a/p" makes 6 Runs in team-a due; `+wait("would "), ". To look at them: ")},
		},
		"deleted, and there is no other": {
			before: whenDone, runs: runsIn("team-a", "Busy", 2), policies: []metav1.Object{created},
			want: []string{`without this lifecycle, policy "team-a/p" makes 2 Runs in team-a due`},
		},
		"a new one for a policy of all resources": {
			after: whenDone, runs: slices.Concat(runsIn("team-a", "Done", 2), runsIn("team-b", "Done", 2)), policies: []metav1.Object{everything},
			want: []string{`with this lifecycle, cluster policy "all" makes 3 Runs in 2 namespaces due: team-a (2), team-b (1)`},
		},
		"Preview": {
			after: whenDone, runs: runsIn("team-a", "Done", 2), policies: []metav1.Object{testbuilders.Policy("p").Preview().Rules(ofRuns("1h")).Obj()},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRunWorld(t, tc.before, tc.runs...).with(tc.policies...)
			got := w.forecast(gc.LifecycleChange{Before: tc.before, After: tc.after, DryRun: tc.dryRun})
			same := slices.EqualFunc(got, tc.want, strings.HasPrefix)
			if !same || strings.HasPrefix(name, "too many by a new one") && !slices.Equal(got, tc.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
			if name == "no policy names it" && len(w.asked) > 0 {
				t.Errorf("asked for %q", w.asked)
			}
		})
	}
}

// TestLifecycleHold: the forecast names the hold that the change leads to.
func TestLifecycleHold(t *testing.T) {
	w := newRunWorld(t, whenDone, runsIn("team-a", "Paused", 6)...).with(testbuilders.Policy("p").Rules(ofRuns("1h")).Obj())
	told := w.forecast(gc.LifecycleChange{Before: whenDone, After: whenPaused})
	w.present = w.kind(whenPaused)
	w.SetKinds(w.Kinds().With(w.present), testbuilders.Now)
	w.StartObserving(w.present)
	w.with()
	holds, _ := w.Holds(testbuilders.Policy("p").Obj())
	if len(holds) != 1 || holds[0].Objects != 6 || len(told) != 1 || !strings.HasSuffix(told[0], "="+holds[0].ID) {
		t.Errorf("holds %+v, told %q", holds, told)
	}
}

// TestWhatRunsControl: the forecast gives no details about objects of other resources, which the author may not be allowed to see.
func TestWhatRunsControl(t *testing.T) {
	w := newRunWorld(t, whenDone, runsIn("team-a", "Busy", 1)...)
	w.objects = []runtime.Object{
		testbuilders.Job("child").Complete(testbuilders.Now.Add(-2*time.Hour)).ControlledBy("example.com/v1", "Run", "team-a-busy-0").Obj(),
	}
	w.with(testbuilders.Policy("p").Rules(testbuilders.Rule("all", "1h").For(runs, gc.ResourceJobs)).Obj())
	got := w.forecast(gc.LifecycleChange{Before: whenDone, After: independent()})
	want := []string{"with this change, objects that are controlled by objects of runs.example.com become due"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLifecycleBounds: the forecast says so if it could not check all objects.
func TestLifecycleBounds(t *testing.T) {
	p := testbuilders.Policy("p").Rules(ofRuns("1h")).Obj()
	for name, tc := range map[string]struct {
		phase string
		most  int
		err   error
		want  []string
	}{
		"exactly as many": {phase: "Done", most: 4, want: []string{`with this lifecycle, policy "team-a/p" makes 4 Runs in team-a due`}},
		"one too many":    {phase: "Done", most: 3, want: []string{`with this lifecycle, policy "team-a/p" makes at least 3 Runs in team-a due`}},
		"none of the first is due": {
			phase: "Busy", most: 3, want: []string{"nothing is due among the first 3 objects; there was no time to check the rest"},
		},
		"refused": {
			phase: "Done", most: 4, err: errors.New("no right"),
			want: []string{`more objects may be due than were counted: runs.example.com cannot be listed: ` +
				`Get "http://cluster.test/apis/example.com/v1/namespaces/team-a/runs?limit=16": no right`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRunWorld(t, nil, runsIn("team-a", tc.phase, 4)...).with(p)
			w.err = tc.err
			f := w.forecaster()
			f.listedMost = tc.most
			got := f.ForecastLifecycle(t.Context(), gc.LifecycleChange{After: whenDone}, w.kind(whenDone))
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestOnlyWhatMatters: however many Jobs there are, they do not matter for the forecast.
func TestOnlyWhatMatters(t *testing.T) {
	w := newRunWorld(t, whenDone, runsIn("team-a", "Paused", 2)...)
	w.objects = jobs("team-a", minutesAgo(70, 50)...)
	w.with(testbuilders.Policy("p").Default("1d").Rules(testbuilders.Rule("all", "1h").For(runs)).Obj())
	f := w.forecaster()
	f.knownMost = 2
	got := f.ForecastLifecycle(t.Context(), gc.LifecycleChange{Before: whenDone, After: whenPaused}, w.kind(whenPaused))
	want := []string{`with this change, policy "team-a/p" makes 2 Runs in team-a due`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLifecycleTrialEnds: a trial notices soon that its context has ended, at any step.
func TestLifecycleTrialEnds(t *testing.T) {
	const n = 100
	w := newRunWorld(t, whenDone, runsIn("team-a", "Done", n)...).with(testbuilders.Policy("p").Rules(ofRuns("1h")).Obj())
	kind := w.kind(whenPaused)
	run := func(asks int) (int, error) {
		ctx := &testbuilders.Countdown{Context: t.Context(), Left: asks}
		snapshot := w.Snapshot(ctx, trial.ProposeKind(kind), 2*n, testbuilders.Now)
		tried := attempt{Engine: snapshot.Engine, now: testbuilders.Now}
		err := tried.runLifecycle(ctx, snapshot, &listing{kept: w.reduced(kind)}, kind)
		return asks - ctx.Left, err
	}
	most, err := run(1 << 20)
	if err != nil || most < 2*n {
		t.Fatalf("got %v after %d questions, want at least one for each of %d objects before and after", err, most, n)
	}
	for _, asks := range []int{0, 1, n / 2, n + 5, most - 1} {
		if asked, err := run(asks); err == nil || asked > asks+2 {
			t.Errorf("after %d questions: got %v, and %d more", asks, err, asked-asks)
		}
	}
}
