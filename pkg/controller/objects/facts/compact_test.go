// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package facts_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// plain returns a fact with its labels as a map, so that it can be compared.
func plain(f *lifecycle.Fact, keys ...string) lifecycle.Fact {
	out, set := *f, labels.Set{}
	for _, key := range keys {
		if value, ok := f.Labels.Lookup(key); ok && f.Labels.Has(key) && f.Labels.Get(key) == value {
			set[key] = value
		}
	}
	out.Labels = set
	return out
}

// TestCompactHasTheWholeFact: Fact returns every field of the fact, whatever else was compressed before.
func TestCompactHasTheWholeFact(t *testing.T) {
	testbuilders.Checks(t, 2000)
	rapid.Check(t, func(t *rapid.T) {
		f := model.DrawObject(t, testbuilders.Now, rapid.IntRange(0, 9).Draw(t, "i"))
		f.Finishes, f.Usage = false, lifecycle.Usage{} // They are not part of the object.
		switch rapid.IntRange(0, 5).Draw(t, "time") {
		case 1:
			f.Created = f.Created.Add(time.Nanosecond) // No time of Kubernetes has parts of a second, but nothing forbids it.
		case 2:
			f.Created = time.Date(1969, 12, 31, 23, 59, 59, 0, time.UTC)
		case 3:
			f.Created = time.Date(2106, 2, 7, 6, 28, 16, 0, time.UTC)
		}
		if rapid.IntRange(0, 9).Draw(t, "fails") == 0 {
			f.Failed = "spec.finished.when: no such key: status"
		}
		keys := []string{"app", "run", "own"}
		if own := rapid.SampledFrom([]string{"", "none", f.Name, string(f.UID)}).Draw(t, "own"); own != "none" {
			f.Labels = labels.Merge(plain(f, keys...).Labels.(labels.Set), labels.Set{"own": own})
		}
		if f.Controller != nil && rapid.Bool().Draw(t, "named by its schedule") {
			f.Name = fmt.Sprintf(
				"%s-%d",
				f.Controller.Name,
				f.Scheduled.Add(rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "off")).Unix()/60,
			)
		}
		if rapid.IntRange(0, 9).Draw(t, "long name") == 0 {
			f.Name += strings.Repeat("n", 200) // Its length takes two bytes.
		}
		k := facts.Compress(f)
		want, got := plain(f, keys...), plain(k.Fact(), append(keys, "none")...)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("kept\n%+v as\n%+v", want, got)
		}
		if k.UID() != f.UID || k.Name() != f.Name || !k.Created().Equal(f.Created) || !k.FinishedAt().Equal(f.FinishedAt) ||
			k.Terminating() != f.Terminating {
			t.Fatalf("kept\n%+v as\n%+v", want, k)
		}
		again := facts.Compress(k.Fact()) // Of the identity, DeepEqual compares only the length.
		if !reflect.DeepEqual(again, k) || again.UID() != k.UID() || again.Name() != k.Name() || again.Content() != k.Content() {
			t.Fatalf("compressed %+v again as %+v", k, again)
		}
	})
}

// TestCompactIsSmall: there may be a million facts.
func TestCompactIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(facts.Compact{}); size > 32 {
		t.Errorf("%d bytes, more than 32", size)
	}
	same := map[string]*lifecycle.Fact{
		"a": testbuilders.Job("a").Label("app", "train").Label("run", "1").Complete(testbuilders.Now).Fact(),
		"b": testbuilders.Job("b").Label("app", "train").Label("run", "1").Complete(testbuilders.Now.Add(time.Hour)).Fact(),
	}
	kept := map[string]*facts.Compact{}
	for name, f := range same {
		kept[name] = facts.Compress(f)
	}
	if unsafe.StringData(kept["a"].Namespace) != unsafe.StringData(kept["b"].Namespace) ||
		kept["a"].Fact().Labels != kept["b"].Fact().Labels {
		t.Error("what two objects have in common is kept twice")
	}
}

// TestGeneratedLabelsAreShared: the API server labels Jobs without labels with their own UID and name.
func TestGeneratedLabelsAreShared(t *testing.T) {
	var kept []*facts.Compact
	for _, name := range []string{"a", "b"} {
		kept = append(
			kept,
			facts.Compress(
				testbuilders.Job(name).
					Label("controller-uid", string(testbuilders.UID(name))).
					Label("job-name", name).
					Complete(testbuilders.Now).
					Fact(),
			),
		)
	}
	if unsafe.StringData(kept[0].Namespace) != unsafe.StringData(kept[1].Namespace) {
		t.Error("what two objects have in common is kept twice")
	}
	for i, name := range []string{"a", "b"} {
		all := kept[i].Fact().Labels
		selector := labels.SelectorFromSet(labels.Set{"controller-uid": string(testbuilders.UID(name)), "job-name": name})
		if !selector.Matches(all) || all.Get("job-name") != name || all.Has("none") {
			t.Errorf("%s has labels %v", name, all)
		}
	}
}

// TestLabelSet: all labels are there with the values of the object, also those that repeat its name or UID.
func TestLabelSet(t *testing.T) {
	for name, want := range map[string]labels.Set{
		"none":         nil,
		"some":         {"app": "train", "empty": "", "tier": "x"},
		"placeholders": {"app": "train", "batch.kubernetes.io/job-name": "placeholders", "controller-uid": string(testbuilders.UID("placeholders"))},
	} {
		job := testbuilders.Job(name).Complete(testbuilders.Now)
		for key, value := range want {
			job.Label(key, value)
		}
		for form, fact := range map[string]*lifecycle.Fact{"compact": job.Fact(), "full": job.TTL("1h").Fact()} {
			if got := facts.Compress(fact).LabelSet(); !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %s: got %#v, want %#v", name, form, got, want)
			}
		}
	}
}

// TestScheduledJobsShareTheirCronJob: each Job has a different scheduled time, which is part of its name.
func TestScheduledJobsShareTheirCronJob(t *testing.T) {
	run := func(name string, at time.Time) *facts.Compact {
		return facts.Compress(testbuilders.Job(name).ControlledBy("batch/v1", "CronJob", "nightly").Created(at.Add(time.Second)).
			Annotation(batchv1.CronJobScheduledTimestampAnnotation, at.Format(time.RFC3339)).Complete(testbuilders.Now).Fact())
	}
	tonight, lastNight := testbuilders.Now.Add(-9*time.Hour), testbuilders.Now.Add(-33*time.Hour)
	first := run(fmt.Sprintf("nightly-%d", lastNight.Unix()/60), lastNight)
	for name, same := range map[string]bool{fmt.Sprintf("nightly-%d", tonight.Unix()/60): true, "nightly-1": false, "nightly-": false, "other": false} {
		k := run(name, tonight)
		if got := k.Fact(); !got.Scheduled.Equal(tonight) || got.Name != name {
			t.Errorf("%s is scheduled for %v", got.Name, got.Scheduled)
		}
		if shares := k.Fact().Labels == first.Fact().Labels; shares != same {
			t.Errorf("%s has all in common with another run: %v", name, shares)
		}
	}
}

// TestSharedPartsAreForgotten: the parts that objects share are forgotten with the last object, although each object may have other labels.
func TestSharedPartsAreForgotten(t *testing.T) {
	eventually(t, 0) // Of other tests, which would be forgotten while this one counts.
	all := map[int]*facts.Compact{}
	for i := range 100 {
		all[i] = facts.Compress(testbuilders.Job("a").Label("run", time.Duration(i).String()).Complete(testbuilders.Now).Fact())
	}
	if n := facts.Interned(); n != len(all) {
		t.Errorf("%d for %d objects that have nothing in common", n, len(all))
	}
	maps.DeleteFunc(all, func(i int, _ *facts.Compact) bool { return i > 0 })
	eventually(t, 1)
	runtime.KeepAlive(all)
}

// eventually waits until the garbage collector has found that a shared part is unused, and it is forgotten.
func eventually(t *testing.T, interned int) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		runtime.GC()
		return facts.Interned() == interned, nil
	}); err != nil {
		t.Fatalf("%d, not %d", facts.Interned(), interned)
	}
}

// TestFactsDoNotChange: a fact is of one state of the object, also if another state is stored in the same place.
func TestFactsDoNotChange(t *testing.T) {
	labelled := func(name string) *facts.Compact {
		return facts.Compress(testbuilders.Job(name).Label("own", name).Complete(testbuilders.Now).Fact())
	}
	stored := *labelled("a")
	f := stored.Fact()
	stored = *labelled("b")
	if f.Name != "a" || f.Labels.Get("own") != "a" {
		t.Errorf("the fact of a is of %s with %q", f.Name, f.Labels.Get("own"))
	}
	var asked lifecycle.Fact
	stored.Unpack(&asked)
	if asked.ObjectName() != "b" || asked.Stored.UID() != stored.UID() || asked.Labels.Get("own") != "b" {
		t.Errorf("asked of b: %s, %s", asked.ObjectName(), asked.Labels.Get("own"))
	}
}
