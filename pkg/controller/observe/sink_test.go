// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testkinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/observe/decode"
	"github.com/winnow-dev/winnow/pkg/controller/tracker"
)

// recorded returns a sink, and the log of what it passes on.
func recorded() (*sink[*facts.Compact], *[]string) {
	var log []string
	write := func(what string) func(*facts.Compact) {
		return func(f *facts.Compact) {
			log = append(log, fmt.Sprintf("%s %s/%s@%d", what, f.Resource, f.Name(), f.ResourceVersion))
		}
	}
	return &sink[*facts.Compact]{
		reduce: func(object any) (*facts.Compact, error) { return decode.Fact(testkinds.Of(object), object) }, upsert: write("upsert"), remove: write("remove"),
		replace: func(all []*facts.Compact, rv string) {
			log = append(log, fmt.Sprintf("replace %d@%s", len(all), rv))
			for _, f := range all {
				write("with")(f)
			}
		},
		bookmark: func(rv string) { log = append(log, "bookmark "+rv) },
	}, &log
}

func TestSinkReducesObjects(t *testing.T) {
	s, log := recorded()
	small, err := s.Transformer()(testbuilders.Job("a").Complete(testbuilders.Now).Obj())
	if _, ok := small.(*facts.Compact); !ok || err != nil {
		t.Fatalf("a Job became %T, %v", small, err)
	}
	again, err := s.Transformer()(small)
	if again != small || err != nil {
		t.Fatalf("a reduced object became %v, %v", again, err)
	}
	for _, err := range []error{
		s.Replace([]any{small, testbuilders.Pod("b").Version("2").Obj()}, "7"),
		s.Add(testbuilders.Pod("c").Version("8").Obj()),
		s.Update(testbuilders.Pod("c").Version("9").Obj()),
		s.Delete(testbuilders.Job("a").Version("10").Obj()),
		s.Bookmark("11"),
		s.Resync(),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	want := []string{
		"replace 2@7",
		"with jobs.batch/a@1",
		"with pods/b@2",
		"upsert pods/c@8",
		"upsert pods/c@9",
		"remove jobs.batch/a@10",
		"bookmark 11",
	}
	if !slices.Equal(*log, want) {
		t.Errorf("got  %q\nwant %q", *log, want)
	}
}

func TestSinkLeavesOutUnreadableObjects(t *testing.T) {
	s, log := recorded()
	bad := testbuilders.Pod("bad").Version("x").Obj()
	if err := s.Replace([]any{bad, testbuilders.Pod("good").Obj(), &corev1.Secret{}, "nonsense"}, "7"); err != nil {
		t.Error(err)
	}
	for what, do := range map[string]func(any) error{"Add": s.Add, "Update": s.Update, "Delete": s.Delete} {
		if do(bad) == nil {
			t.Errorf("%s of an unreadable object returns no error", what)
		}
	}
	if want := []string{"replace 1@7", "with pods/good@1"}; !slices.Equal(*log, want) {
		t.Errorf("got  %q\nwant %q", *log, want)
	}
	if err := (&sink[*facts.Compact]{}).Bookmark("7"); err != nil {
		t.Error(err)
	}
}

func TestSinksRefuseOtherKinds(t *testing.T) {
	o := New(Config{Tracker: tracker.New(memory.Config{}, nil), Clock: clocktesting.NewFakeClock(testbuilders.Now)})
	jobs := testkinds.Of(&batchv1.Job{})
	for name, reduce := range map[string]func(any) error{
		"policies":   func(x any) error { _, err := o.policySink().reduce(x); return err },
		"namespaces": func(x any) error { _, err := o.namespaceSink().reduce(x); return err },
		"cron jobs":  func(x any) error { _, err := o.cronJobSink().reduce(x); return err },
		"facts":      func(x any) error { _, err := o.factSink(jobs, o.newListStream(jobs, nil, nil)).reduce(x); return err },
	} {
		if err := reduce(&corev1.Secret{}); err == nil || !strings.Contains(err.Error(), "*v1.Secret") {
			t.Errorf("%s took a Secret: %v", name, err)
		}
	}
}

// TestEachKindHasASink: kinds that policies can name become facts, and the others are observed for another purpose.
func TestEachKindHasASink(t *testing.T) {
	o := New(Config{Tracker: tracker.New(memory.Config{}, nil), Clock: clocktesting.NewFakeClock(testbuilders.Now)})
	table := kinds.Builtin()
	resources := append(table.Deletable(), kinds.ResourceQuotas)
	for _, resource := range table.Deletable() {
		for _, owner := range table.ObservedOwners(resource) {
			resources = append(resources, owner.Resource)
		}
	}
	for _, resource := range resources {
		k, err := table.For(resource)
		if err != nil {
			t.Fatal(err)
		}
		if _, only := o.dependencies[resource]; only == k.Deletable() {
			t.Errorf("%s: deletable: %t, a dependency: %t", resource, k.Deletable(), only)
		}
	}
}

func reducePod(object any) (*facts.Compact, error) {
	return decode.Fact(testkinds.Of(&corev1.Pod{}), object)
}
