// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const header = `
apiVersion: test.gc.winnow.dev/v1alpha1
kind: PolicyTest
now: "2026-06-01T12:00:00Z"
namespace: team-a
`

// The policy, a Job that is due, and one that is not.
const world = `
---
apiVersion: gc.winnow.dev/v1alpha1
kind: CleanupPolicy
metadata: {name: ci}
spec: {ttlAfterFinished: 1h}
---
apiVersion: v1
kind: List
items:
- apiVersion: batch/v1
  kind: Job
  metadata: {name: old}
  status: {conditions: [{type: Complete, status: "True", lastTransitionTime: "2026-06-01T10:00:00Z"}]}
- apiVersion: batch/v1
  kind: Job
  metadata: {name: new}
  status: {conditions: [{type: Failed, status: "True", lastTransitionTime: "2026-06-01T11:30:00Z"}]}
`

// A policy that gives Jobs a deadline, and two that run.
const deadlines = `
---
apiVersion: gc.winnow.dev/v1alpha1
kind: CleanupPolicy
metadata: {name: ci}
spec: {activeDeadline: 6h}
---
apiVersion: batch/v1
kind: Job
metadata: {name: runs}
status: {startTime: "2026-06-01T10:00:00Z"}
---
apiVersion: batch/v1
kind: Job
metadata: {name: queued}
`

// A cluster policy, a Job that is due, and Jobs and a Secret in a protected namespace.
const protected = `
---
apiVersion: gc.winnow.dev/v1alpha1
kind: ClusterCleanupPolicy
metadata: {name: all}
spec: {mode: Enforce, namespaceSelector: {}, ttlAfterFinished: 1h}
---
apiVersion: batch/v1
kind: Job
metadata: {name: old}
status: {conditions: [{type: Complete, status: "True", lastTransitionTime: "2026-06-01T10:00:00Z"}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: system, namespace: kube-system}
status: {conditions: [{type: Complete, status: "True", lastTransitionTime: "2026-06-01T10:00:00Z"}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: other, namespace: kube-system}
---
apiVersion: v1
kind: Secret
metadata: {name: other, namespace: kube-system}
`

const bothExpected = `
expect:
- {object: jobs.batch/old, state: Due, reason: Expired, policy: cup/ci, rule: default, due: "2026-06-01T11:00:00Z"}
- {object: jobs.batch/new, namespace: team-a, state: Waiting}
`

// runText runs a test file with this content. Other files are in the file system.
func runText(t *testing.T, content string, others fstest.MapFS) Result {
	t.Helper()
	return run(t.Context(), "dir/a.test.yaml", func(path string) ([]byte, error) {
		if path == "dir/a.test.yaml" {
			return []byte(content), nil
		}
		if file := others[path]; file != nil {
			return file.Data, nil
		}
		return nil, fs.ErrNotExist
	})
}

func TestRun(t *testing.T) {
	other := fstest.MapFS{
		"objects.yaml":      {Data: []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: team-b}\n")},
		"/abs/objects.yaml": {Data: []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: team-b}\n")},
	}
	for name, c := range map[string]struct {
		content string
		want    []string // each failure, after the object
	}{
		"as expected": {header + bothExpected + world, nil},
		"wrong": {
			header + `
expect:
- {object: jobs.batch/old, state: Held, reason: Suspended, policy: ccup/ci, rule: ci, due: "2026-06-01T11:00:01Z"}
- {object: jobs.batch/new, state: Waiting}
` + world, []string{
				"jobs.batch/old state is Due, want Held", "jobs.batch/old reason is Expired, want Suspended",
				"jobs.batch/old policy is cup/ci, want ccup/ci", "jobs.batch/old rule is default, want ci",
				"jobs.batch/old due is 2026-06-01T11:00:00Z, want 2026-06-01T11:00:01Z",
			},
		},
		"one lacks an expectation": {
			header + "expect:\n- {object: jobs.batch/old, state: Due}\n" + world,
			[]string{"jobs.batch/new it has no expectation, and the test is not partial"},
		},
		"partial": {header + "partial: true\nexpect:\n- {object: jobs.batch/old, state: Due}\n" + world, nil},
		"an object that no policy is about needs no expectation": {header + "files: [../objects.yaml]\n" + bothExpected + world, nil},
		"a file with an absolute name": {
			header + "files: [/abs/objects.yaml]\n" + bothExpected + "- {object: pods/p, namespace: team-b, state: NoCandidate}\n" + world, nil,
		},
		"deadlines": {
			header + `
expect:
- {object: jobs.batch/runs, state: NoCandidate, reason: ActiveDeadline, deadline: "2026-06-01T16:00:01Z"}
- {object: jobs.batch/queued, state: NoCandidate, reason: ActiveDeadline, deadline: "2026-06-01T16:00:00Z"}
` + deadlines, []string{
				"jobs.batch/runs deadline is 2026-06-01T16:00:00Z, want 2026-06-01T16:00:01Z",
				"jobs.batch/queued deadline is not set, want 2026-06-01T16:00:00Z",
			},
		},
		"a protected namespace": {
			header + `
expect:
- {object: jobs.batch/old, state: Due}
- {object: jobs.batch/system, namespace: kube-system, state: NoCandidate, reason: NoPolicy}
` + protected, []string{
				"jobs.batch/system reason is NamespaceProtected, want NoPolicy",
				"jobs.batch/other it has no expectation, and the test is not partial",
			},
		},
		"and can have one": {
			header + "files: [../objects.yaml]\n" + bothExpected + "- {object: pods/p, namespace: team-b, state: Due, rule: x}\n" + world,
			[]string{"pods/p state is NoCandidate, want Due", "pods/p rule is not set, want x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := runText(t, c.content, other)
			if r.Error != "" {
				t.Fatal(r.Error)
			}
			var got []string
			for _, o := range r.Objects {
				for _, f := range o.Failures {
					got = append(got, o.Object+" "+f)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestAdd: a test without expectations says which to add, and then passes. It does not name the time of the test.
func TestAdd(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		has     []string
	}{
		"a TTL": {world, []string{`due: "2026-06-01T11:00:00Z"`, `due: "2026-06-01T12:30:00Z"`}},
		"a number": {
			strings.Replace(world, "ttlAfterFinished: 1h", "capacity: {maxObjects: 1}", 1), []string{"rule: default}", "rule: default}"},
		},
		"deadlines": {deadlines, []string{
			`rule: default, deadline: "2026-06-01T16:00:00Z"}`, "reason: ActiveDeadline, rule: default}",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			content := header + "expect: []\n" + c.content
			lines := ""
			for i, o := range runText(t, content, nil).Objects {
				if lines += o.Add + "\n"; i >= len(c.has) || !strings.Contains(o.Add, c.has[i]) {
					t.Errorf("%q does not have %q", o.Add, c.has)
				}
			}
			r := runText(t, strings.Replace(content, "expect: []\n", "expect:\n"+lines, 1), nil)
			if r.Error != "" || r.Failed() || len(r.Objects) != 2 {
				t.Errorf("with\n%s: %+v", lines, r)
			}
		})
	}
}

// TestHint: a result says what the files lack, if a cluster could decide otherwise because it has it.
func TestHint(t *testing.T) {
	const (
		owned   = "ownerReferences: [{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: set, controller: true}]"
		set     = "---\napiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: set}\n"
		helm    = "annotations: {meta.helm.sh/release-name: web, meta.helm.sh/release-namespace: team-a}"
		managed = "managedFields: [{manager: helm}]"
		argo    = `annotations: {argocd.argoproj.io/tracking-id: "web:batch/Job:team-a/old"}`
	)
	for name, c := range map[string]struct{ metadata, more, reason, want string }{
		"an owner that is not there":    {owned, "", "", "its owner jobsets.jobset.x-k8s.io/set is not in the files"},
		"an owner":                      {owned, set, "LeftToOwner", ""},
		"an owner with another UID":     {strings.Replace(owned, "controller", "uid: abc, controller", 1), set, "LeftToOwner", "remove uid from its ownerReferences"},
		"marks without managed fields":  {helm, "", "ManagedElsewhere", "only managedFields tell"},
		"marks with managed fields":     {helm + ", " + managed, "", "ManagedElsewhere", ""},
		"a mark that proves it":         {argo, "", "ManagedElsewhere", ""},
		"an object without any of that": {"labels: {a: b}", "", "Expired", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := runText(t, header+bothExpected+strings.Replace(world, "{name: old}", "{name: old, "+c.metadata+"}", 1)+c.more, nil)
			if r.Error != "" {
				t.Fatal(r.Error)
			}
			if o := r.Objects[0]; c.reason != "" && o.Reason != c.reason || (o.Hint == "") != (c.want == "") || !strings.Contains(o.Hint, c.want) {
				t.Errorf("%s, hint %q, want %s, %q", o.Reason, o.Hint, c.reason, c.want)
			}
		})
	}
}

// TestNoPolicyAbout: for an object that no policy is about, a result says so, and what the files lack if its namespace has no labels.
func TestNoPolicyAbout(t *testing.T) {
	const (
		expect   = "partial: true\nexpect:\n- {object: jobs.batch/old, state: Due}\n"
		optIn    = "kind: ClusterCleanupPolicy\nmetadata: {name: opt-in}\nspec: {mode: Enforce, namespaceSelector: {matchLabels: {a: b}}, ttlAfterFinished: 1h}"
		everyone = "kind: ClusterCleanupPolicy\nmetadata: {name: all}\nspec: {mode: Enforce, namespaceSelector: {}, rules: [{name: a, resources: [services], ttl: 1h}]}"
		of       = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: team-a}\n"
		hint     = "cluster policy opt-in selects namespaces by label, and the files have no Namespace team-a, so it has no labels"
	)
	own := "kind: CleanupPolicy\nmetadata: {name: ci}\nspec: {ttlAfterFinished: 1h}"
	for name, c := range map[string]struct{ policy, more, hint string }{
		"a namespace without a manifest": {optIn, "", hint},
		"a namespace without labels":     {optIn, of, ""},
		"another resource":               {everyone, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := runText(t, header+expect+strings.Replace(world, own, c.policy, 1)+c.more, nil)
			if r.Error != "" {
				t.Fatal(r.Error)
			}
			if o := r.Objects[0]; o.Message != "no policy is about jobs.batch in namespace team-a" || o.Hint != c.hint {
				t.Errorf("got %q, hint %q", o.Message, o.Hint)
			}
		})
	}
}

// TestErrors: a test that cannot run says which field is wrong, and what to write instead.
func TestErrors(t *testing.T) {
	const another = "apiVersion: gc.winnow.dev/v1alpha1\nkind: CleanupPolicy\nmetadata: {name: ci}\nspec: {}\n"
	test := header + bothExpected
	for content, want := range map[string]string{
		test + "expct: []\n" + world:                                                              `unknown field "expct"; did you mean "expect"?`,
		strings.Replace(test, "state: Due", "stat: Due", 1) + world:                               `unknown field "expect[0].stat"; did you mean "state"?`,
		strings.Replace(test, "state: Due", "state: due", 1) + world:                              `"NoCandidate"; did you mean "Due"?`,
		strings.Replace(test, "state: Due, ", "", 1) + world:                                      "expect[0].state: Required value: one of Waiting, Notified,",
		strings.Replace(test, "reason: Expired", "reason: Expird", 1) + world:                     `did you mean "Expired"?`,
		strings.Replace(test, `now: "2026-06-01T12:00:00Z"`, "", 1) + world:                       "now: Required value: the time of the test",
		strings.Replace(test, `now: "2026-06-01T12:00:00Z"`, "now: today", 1) + world:             "now: Invalid value",
		strings.Replace(test, "jobs.batch/old", "old", 1) + world:                                 `expect[0].object: Invalid value: "old": write "resource.group/name"`,
		strings.Replace(test, "jobs.batch/old", "jobs/old", 1) + world:                            `there is no jobs/old in namespace team-a; did you mean "jobs.batch/old"?`,
		strings.Replace(test, "jobs.batch/old", "jobs.batch/odl", 1) + world:                      `did you mean "jobs.batch/old"?`,
		strings.Replace(test, "namespace: team-a, s", "namespace: b, s", 1) + world:               "but in namespace team-a; set namespace",
		strings.Replace(test, "jobs.batch/new", "jobs.batch/old", 1) + world:                      `expect[1].object: Duplicate value: "jobs.batch/old"`,
		test + "marks: [{object: pods/x, since: \"2026-06-01T12:00:00Z\"}]\n" + world:             "marks[0].object: there is no pods/x",
		test + "marks: [{object: jobs.batch/old, noticeDue: \"2026-06-01T12:00:00Z\"}]\n" + world: "a notice needs both noticeGiven and noticeDue",
		strings.Replace(test, "v1alpha1", "v2", 1) + world:                                        "apiVersion and kind of a test are test.gc.winnow.dev/v1alpha1 and PolicyTest",
		test + "---\n" + test + world:                                                             "more than one PolicyTest",
		world:                                                                                     "has no document with apiVersion: test.gc.winnow.dev/v1alpha1 and kind: PolicyTest",
		test:                                                                                      "the test has no policy",
		test + "files: [missing.yaml]\n" + world:                                                  "files[0]: there is no missing.yaml; names are relative to the test file",
		test + strings.Replace(world, "ttlAfterFinished", "ttlAfterFinishd", 1):                   `did you mean "ttlAfterFinished"?`,
		test + strings.Replace(world, "conditions", "condition", 1):                               `Job old: strict decoding error: unknown field "status.condition"`,
		test + world + "---\nmetadata: {name: x}\n":                                               "Kind",
		test + world + "---\na: b: c\n":                                                           "mapping values are not allowed",
		test + world + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: x}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: x}\n": "two objects pods/x",

		header + strings.ReplaceAll(world, "{name: ci}", "{name: ci, namespace: prod}"): "the test expects nothing",

		test + "files: [a.test.yaml]\n" + world: "a.test.yaml: it has a PolicyTest",

		test + strings.Replace(world, "---\n", "---\n"+another+"---\n", 1): "two CleanupPolicies",

		test + world + "---\napiVersion: v1\nkind: Pod\nmetadata: {labels: {a: b}}\n":                                                 "a Pod has no metadata.name",
		test + world + "---\napiVersion: batch/v2\nkind: Job\nmetadata: {name: x}\n":                                                  "Kubernetes has no kind Job in batch/v2",
		test + world + "---\napiVersion: events.k8s.io/v1\nkind: Event\nmetadata: {name: x}\n":                                        "write it with apiVersion: v1",
		test + strings.Replace(world, "{ttlAfterFinished: 1h}", "{rules: [{name: a, resources: [prowjob.prow.k8s.io], ttl: 1h}]}", 1): `there is no resource "prowjob.prow.k8s.io"; did you mean "prowjobs.prow.k8s.io"?`,
		test + world + "---\napiVersion: batch/v1\nkind: job\nmetadata: {name: x}\n":                                                  "Kubernetes has no kind job in batch/v1",
	} {
		if got := runText(t, content, nil).Error; !strings.Contains(got, want) {
			t.Errorf("got %q, want %q for\n%s", got, want, content)
		}
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"a.test.yaml", "a.yaml", "below/b.test.yaml", "below/c.test.yml", "empty/c.yaml", ".git/d.test.yaml", "vendor/e.test.yaml",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		paths, want []string
		err         string
	}{
		{[]string{""}, []string{"a.test.yaml", "below/b.test.yaml", "below/c.test.yml"}, ""},
		{[]string{"below", "a.yaml"}, []string{"a.yaml", "below/b.test.yaml", "below/c.test.yml"}, ""},
		{[]string{"below", "below/b.test.yaml"}, []string{"below/b.test.yaml", "below/c.test.yml"}, ""},
		{[]string{"vendor"}, []string{"vendor/e.test.yaml"}, ""},
		{[]string{"below", "empty"}, nil, "has no file whose name ends with .test.yaml or .test.yml"},
		{[]string{"missing"}, nil, "no such file"},
	} {
		var paths, want []string
		for _, p := range c.paths {
			paths = append(paths, filepath.Join(dir, p))
		}
		for _, p := range c.want {
			want = append(want, filepath.Join(dir, p))
		}
		got, err := Find(paths)
		if !slices.Equal(got, want) || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %q, %v", c.paths, got, err)
		}
	}
}

// BenchmarkRun runs 1,000 test files: the recipes, again and again.
func BenchmarkRun(b *testing.B) {
	tests, err := Find([]string{recipes})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		var s Summary
		for i := range 1000 {
			s.Add(Run(b.Context(), tests[i%len(tests)]))
		}
		if s.Passed != 1000 {
			b.Fatalf("%d passed, %d failed, %d could not run", s.Passed, s.Failed, s.Errors)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/1000-tests")
}
