// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

const docs = "../../../../docs/"

// fullDeletion has every field.
func fullDeletion() event.Event {
	g := gone("nightly-29398320")
	g.Fact = testbuilders.Job("nightly-29398320").Complete(testbuilders.Now.Add(-time.Hour)).ControlledBy("batch/v1", "CronJob", "nightly").Fact()
	g.Account = "winnow-cleaner"
	return newDeletionNotice(&g).event("", testbuilders.Now)
}

// bareDeletion has as few fields as may be: a ceiling of a cluster policy decided.
func bareDeletion() event.Event {
	g := gone("a")
	g.Fact = testbuilders.Job("a").Fact()
	g.Policy, g.Rule = types.NamespacedName{Name: "everywhere"}, ""
	return newDeletionNotice(&g).event("", testbuilders.Now)
}

func holdEvent(phase string, change func(*gc.PolicyHold)) event.Event {
	at := testbuilders.Now
	if phase == phaseEnded {
		at = at.Add(time.Minute)
	}
	n := holdNotice{
		policy: Policy{Namespace: testbuilders.Home, Name: "p", UID: "uid-p", Generation: 3}, listed: hold("8a1f0c2b9d3e"), phase: phase, at: at,
	}
	if change != nil {
		change(&n.listed)
	}
	return n.event("", testbuilders.Now.Add(time.Hour))
}

// noticeOf returns the event about a notice.
func noticeOf(change func(*view.DeletionNotice)) event.Event {
	d := view.DeletionNotice{
		Fact: testbuilders.Job("nightly-29398320").Complete(testbuilders.Now.Add(-time.Hour)).ControlledBy("batch/v1", "CronJob", "nightly").Fact(),
		Kind: schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, Policy: types.NamespacedName{Namespace: testbuilders.Home, Name: "p"},
		PolicyUID: "uid-p", PolicyGeneration: 3, Rule: "r", Reason: "Expired", Due: testbuilders.Now,
		Announcement: policy.Announcement{At: testbuilders.Now.Add(time.Hour)}, Keep: "kubectl annotate",
	}
	if change != nil {
		change(&d)
	}
	return newAnnouncement(&d, testbuilders.Now.Add(time.Second), d.GivenAt(testbuilders.Now.Add(time.Second)).At).event("", testbuilders.Now)
}

// TestEvents: events are valid, and have the attributes and data that receivers rely on.
func TestEvents(t *testing.T) {
	everywhere := func(h *gc.PolicyHold) { h.Namespace, h.Policy, h.Since, h.Resources = "", "everywhere", nil, nil }
	dropped := &droppedNotice{Dropped{TypeDeletion, testbuilders.Now, 3, 4}, "replica-1/1"}
	for name, c := range map[string]struct {
		event                     event.Event
		source, subject, id, time string
		data                      []string // what the data contains
		not                       []string
	}{
		"a deletion": {
			fullDeletion(), "/apis/gc.winnow.dev/v1alpha1/namespaces/team-a/cleanuppolicies/p", "jobs.batch/team-a/nightly-29398320",
			"uid-nightly-29398320/deletion", "2026-03-01T12:00:01.5Z",
			[]string{`"kind":"CronJob","name":"nightly"`, `"serviceAccount":"winnow-cleaner"`, `"finishedAt":"2026-03-01T11:00:00Z"`, `"generation":3`, `"trigger":"Finished"`},
			nil,
		},
		"a deletion by a ceiling": {
			bareDeletion(), "/apis/gc.winnow.dev/v1alpha1/clustercleanuppolicies/everywhere", "jobs.batch/team-a/a", "uid-a/deletion",
			"2026-03-01T12:00:01.5Z", []string{`"policy":{"name":"everywhere"`}, []string{"rule", "owner", "finishedAt", "serviceAccount"},
		},
		"a notice": {
			noticeOf(nil), "/apis/gc.winnow.dev/v1alpha1/namespaces/team-a/cleanuppolicies/p", "jobs.batch/team-a/nightly-29398320",
			"uid-nightly-29398320/notice/2026-03-01T12:00:00Z", "2026-03-01T12:00:01Z",
			[]string{
				`"kind":"CronJob","name":"nightly"`, `"rule":"r"`, `"dueAt":"2026-03-01T12:00:00Z"`, `"givenAt":"2026-03-01T12:00:01Z"`,
				`"deletedFrom":"2026-03-01T13:00:00Z"`, `"keep":"kubectl annotate"`,
			}, nil,
		},
		"a notice of a ceiling": {
			noticeOf(func(d *view.DeletionNotice) {
				d.Policy, d.Rule, d.Fact = types.NamespacedName{Name: "everywhere"}, "", testbuilders.Job("a").Fact()
			}), "/apis/gc.winnow.dev/v1alpha1/clustercleanuppolicies/everywhere", "jobs.batch/team-a/a", "uid-a/notice/2026-03-01T12:00:00Z",
			"2026-03-01T12:00:01Z", []string{`"policy":{"name":"everywhere"`}, []string{"rule", "owner"},
		},
		"a hold": {
			holdEvent(phaseFound, nil), "/apis/gc.winnow.dev/v1alpha1/namespaces/team-a/cleanuppolicies/p",
			"cleanuppolicies.gc.winnow.dev/team-a/p", "uid-p/8a1f0c2b9d3e/2026-03-01T12:00:00Z/found", "2026-03-01T12:00:00Z",
			[]string{`"approveCommand":"kubectl annotate --overwrite cleanuppolicies.gc.winnow.dev p -n team-a gc.winnow.dev/approved-hold=8a1f0c2b9d3e"`},
			nil,
		},
		"a hold of another policy, in all namespaces": {
			holdEvent(phaseFound, everywhere), "/apis/gc.winnow.dev/v1alpha1/namespaces/team-a/cleanuppolicies/p",
			"cleanuppolicies.gc.winnow.dev/team-a/p", "uid-p/8a1f0c2b9d3e/found", "2026-03-01T12:00:00Z",
			[]string{
				`clustercleanuppolicies.gc.winnow.dev everywhere gc.winnow.dev/approved-hold=8a1f0c2b9d3e"`, `"kubectl get jobs.batch,pods --all-namespaces"`,
				`"approvePolicy":"clustercleanuppolicies.gc.winnow.dev/everywhere"`,
			},
			[]string{"since", "resources"},
		},
		"a hold that has ended": {
			holdEvent(phaseEnded, nil), "/apis/gc.winnow.dev/v1alpha1/namespaces/team-a/cleanuppolicies/p",
			"cleanuppolicies.gc.winnow.dev/team-a/p", "uid-p/8a1f0c2b9d3e/2026-03-01T12:00:00Z/ended", "2026-03-01T12:01:00Z",
			[]string{`"phase":"Ended"`}, []string{"approveCommand", "listCommand"},
		},
		"what was dropped": {
			dropped.event("https://prod", testbuilders.Now.Add(time.Hour)), "https://prod/apis/gc.winnow.dev/v1alpha1", "",
			"replica-1/1", "2026-03-01T13:00:00Z",
			[]string{`{"eventType":"dev.winnow.gc.deletion.v1","since":"2026-03-01T12:00:00Z","queueFull":3,"refused":4}`}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := c.event
			if err := e.Validate(); err != nil {
				t.Fatal(err)
			}
			at := e.Time().Format(time.RFC3339Nano)
			if e.Source() != c.source || e.Subject() != c.subject || e.ID() != c.id || at != c.time {
				t.Errorf("got source %s, subject %s, ID %s, time %s", e.Source(), e.Subject(), e.ID(), at)
			}
			for _, want := range c.data {
				if !strings.Contains(string(e.Data()), want) {
					t.Errorf("no %s in %s", want, e.Data())
				}
			}
			for _, not := range c.not {
				if strings.Contains(string(e.Data()), `"`+not+`":`) {
					t.Errorf("%s in %s", not, e.Data())
				}
			}
			expectSchema(t, &e)
		})
	}
}

// expectSchema checks that the schema on docs/notifications.md allows the data of an event, and describes every field of it.
func expectSchema(t *testing.T, e *event.Event) {
	t.Helper()
	name := strings.TrimPrefix(e.Type(), "dev.winnow.gc.")
	content, err := os.ReadFile(filepath.Join(docs, "reference/events", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var described spec.Schema
	var data map[string]any
	if err := json.Unmarshal(content, &described); err != nil {
		t.Fatal(err)
	}
	if err := e.DataAs(&data); err != nil {
		t.Fatal(err)
	}
	validator := validate.NewSchemaValidator(&described, nil, "", strfmt.Default)
	for _, err := range validator.Validate(data).Errors {
		t.Error(err)
	}
	for _, field := range undescribed("", data, &described) {
		t.Errorf("%s.json does not describe %s", name, field)
	}
	delete(data, described.Required[0])
	if validator.Validate(data).IsValid() {
		t.Errorf("%s.json allows data without %s", name, described.Required[0])
	}
}

func undescribed(path string, data map[string]any, by *spec.Schema) (out []string) {
	for name, value := range data {
		property, ok := by.Properties[name]
		if !ok {
			out = append(out, path+name)
		}
		if object, isObject := value.(map[string]any); isObject {
			out = append(out, undescribed(path+name+".", object, &property)...)
		}
	}
	return out
}

// TestPage: docs/notifications.md shows a batch as it is sent, and the receiver as it is in artifacts.
func TestPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(docs, "notifications.md"))
	if err != nil {
		t.Fatal(err)
	}
	batch, err := json.MarshalIndent([]event.Event{fullDeletion(), holdEvent(phaseFound, nil)}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("../../../../artifacts/examples/receiver/main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(program), "package main\n")
	for language, want := range map[string]string{"json": string(batch), "go": "package main\n" + strings.TrimSpace(code)} {
		block := regexp.MustCompile("(?s)```" + language + "\n(.*?)\n```").FindSubmatch(page)
		if block == nil || string(block[1]) != want {
			t.Errorf("docs/notifications.md needs this %s:\n%s", language, want)
		}
	}
}

// TestSourcePrefix: clusters that share a receiver can be told apart.
func TestSourcePrefix(t *testing.T) {
	g := gone("a")
	e := newDeletionNotice(&g).event("/clusters/prod", testbuilders.Now)
	if want := "/clusters/prod/apis/gc.winnow.dev/v1alpha1/namespaces/team-a/cleanuppolicies/p"; e.Source() != want || e.Validate() != nil {
		t.Errorf("source %s, %v", e.Source(), e.Validate())
	}
}

// TestOverlongOwner: whoever creates an object can write anything into the reference to its owner, even a megabyte.
func TestOverlongOwner(t *testing.T) {
	name, kind := strings.Repeat("n", 253), strings.Repeat("K", 63)
	for what, c := range map[string]struct {
		owner lifecycle.Owner
		has   bool
	}{
		"as long as may be": {lifecycle.Owner{GroupKind: schema.GroupKind{Group: name, Kind: kind}, Name: name, UID: "uid"}, true},
		"the name":          {lifecycle.Owner{GroupKind: schema.GroupKind{Kind: "A"}, Name: name + "n", UID: "uid"}, false},
		"the kind":          {lifecycle.Owner{GroupKind: schema.GroupKind{Kind: kind + "K"}, Name: "a", UID: "uid"}, false},
		"the group":         {lifecycle.Owner{GroupKind: schema.GroupKind{Group: name + "n", Kind: "A"}, Name: "a", UID: "uid"}, false},
		"the UID":           {lifecycle.Owner{GroupKind: schema.GroupKind{Kind: "A"}, Name: "a", UID: types.UID(name)}, false},
	} {
		t.Run(what, func(t *testing.T) {
			g := gone("a")
			g.Fact.Controller = &c.owner
			d := newDeletionNotice(&g)
			if has := d.Owner != nil; has != c.has {
				t.Errorf("got owner %+v", d.Owner)
			}
			body, err := json.Marshal(d.event("", testbuilders.Now))
			if err != nil {
				t.Fatal(err)
			}
			// What the queue counts is what memory and requests take, as far as names go.
			if n := len(body); n > 2*d.size() || d.size() > 2*n {
				t.Errorf("the event has %d bytes, counted are %d", n, d.size())
			}
		})
	}
}
