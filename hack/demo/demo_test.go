// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

var now = time.Date(2026, 1, 2, 15, 4, 5, 0, time.Local)

// finished is a Job that finished some time ago.
func finished(name string, ago time.Duration, change ...func(*object)) *object {
	o := &object{state: state{fact: &lifecycle.Fact{
		Resource: gc.ResourceJobs, Namespace: namespace, Name: name, UID: types.UID(name), Created: now.Add(-time.Minute),
		Finished: true, Outcome: gc.OutcomeSucceeded, FinishedAt: now.Add(-ago),
	}}}
	for _, f := range change {
		f(o)
	}
	return o
}

// modelOf has the policy "defaults" with a TTL, in a mode, and its condition's message.
func modelOf(ttl gc.TTL, mode gc.PolicyMode, message string, objects ...*object) *model {
	m := newModel(now.Add(-time.Minute))
	m.namespaces = []*metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: namespace}}}
	p := &gc.CleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "defaults"},
		Spec: gc.CleanupPolicySpec{
			Mode:             cmp.Or(mode, gc.ModeEnforce),
			TTLAfterFinished: &ttl,
			AnnotationTTL:    gc.AnnotationExtendOnly,
		},
		Status: gc.CleanupPolicyStatus{Conditions: []metav1.Condition{{Type: gc.ConditionReady, Message: message}}},
	}
	m.policies = []policyRow{{Stored: policy.StoredOf(p), object: p}}
	for _, o := range objects {
		m.objects[o.fact.UID] = o
	}
	m.forecast = m.foresee(now)
	m.look(now)
	return m
}

func TestOutlook(t *testing.T) {
	deletion := &logEntry{
		Policy: "demo/defaults", Rule: "default", FinishedAt: now.Add(-20 * time.Second), Due: now.Add(-10 * time.Second),
		Delay: delay(8 * time.Millisecond),
	}
	for name, c := range map[string]struct {
		ttl     gc.TTL
		mode    gc.PolicyMode
		message string
		object  *object
		want    string
	}{
		"running": {ttl: "10s", object: finished("a", 0, func(o *object) { o.fact.Finished = false }), want: "running 1m: has not finished"},
		"waiting": {ttl: "10s", object: finished("a", 3*time.Second), want: "waiting 7s: due at 15:04:12 by demo/defaults, rule default"},
		"kept":    {ttl: "1h", object: finished("a", 5*time.Second), want: "kept 59m: until 16:04:00 by demo/defaults, rule default"},
		"for ever": {ttl: "never", object: finished("a", 5*time.Second),
			want: "kept: forever by demo/defaults, rule default"},
		"annotated": {ttl: "10s", object: finished("a", 5*time.Second, func(o *object) { o.fact.TTL = new("1h") }),
			want: "kept 59m: until 16:04:00 by demo/defaults, rule default, annotated ttl=1h"},
		"preview": {ttl: "3s", mode: gc.ModePreview, object: finished("a", 5*time.Second),
			want: "previewed: would have been deleted at 15:04:03 by demo/defaults"},
		"due": {ttl: "3s", object: finished("a", 5*time.Second), want: "due 2s: by demo/defaults, rule default"},
		"refused": {ttl: "3s", object: finished("a", 5*time.Second),
			message: "Deletes what is due. Held, Refused: jobs.batch/a (a webhook said no).", want: "due 2s: Refused: a webhook said no"},
		"terminating": {ttl: "3s", object: finished("a", 5*time.Second, func(o *object) { o.deleting = now.Add(-4 * time.Second) }),
			message: `Deletes what is due. Being deleted, Terminating: jobs.batch/a (waits for finalizers ["x"]) and 2 more.`,
			want:    `terminating 4s: Terminating: waits for finalizers ["x"]`},
		"terminating, not named by Winnow": {
			ttl: "3s", object: finished("a", 5*time.Second, func(o *object) { o.deleting = now.Add(-4 * time.Second) }),
			message: `Deletes what is due. Being deleted, Terminating: jobs.batch/ab (waits for finalizers ["x"]).`, want: "terminating 4s: being deleted",
		},
		"gone": {ttl: "10s", object: finished("a", 20*time.Second, func(o *object) { o.gone, o.deletion = now, deletion }),
			want: "gone: at 15:03:55 by demo/defaults, rule default, 8 ms late"},
		"gone otherwise": {ttl: "10s", object: finished("a", 0, func(o *object) { o.gone = now }), want: "gone: not by Winnow"},
	} {
		t.Run(name, func(t *testing.T) {
			got := modelOf(c.ttl, c.mode, c.message, c.object).prospect(c.object, now)
			if text := got.state + ": " + got.why; text != c.want {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}

// TestOutlookOfMany is of what depends on more than the object itself.
func TestOutlookOfMany(t *testing.T) {
	m := modelOf("10s", "", "")
	m.namespaces[0].Labels = map[string]string{"guarded": "true"}
	for i, ago := range []time.Duration{6, 8, 9, 2} {
		o := finished(fmt.Sprint("job-", i), ago*time.Second)
		m.objects[o.fact.UID] = o
	}
	own := &gc.CleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "defaults", UID: "u", Generation: 1},
		Spec: gc.CleanupPolicySpec{
			Mode: gc.ModeEnforce, AnnotationTTL: gc.AnnotationExtendOnly,
			Capacity: &gc.Capacity{MaxObjects: new(int64(1)), Per: gc.CapacityPerNamespace},
		},
	}
	guardrails := &gc.ClusterCleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "guardrails"},
		Spec: gc.ClusterCleanupPolicySpec{
			Mode: gc.ModeEnforce, AnnotationTTL: gc.AnnotationExtendOnly,
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"guarded": "true"}},
			Guardrails:        &gc.Guardrails{MinTTL: new(gc.TTL("7s")), HoldAbove: &gc.HoldAbove{Objects: new(int64(1))}},
		},
	}
	m.policies = []policyRow{
		{Stored: policy.StoredOf(own), object: own}, {Stored: policy.StoredOf(guardrails), object: guardrails},
	}
	id := approval.HoldID("u", namespace, approval.GenerationID("u", 1))
	check := func(want ...string) {
		t.Helper()
		m.forecast = m.foresee(now)
		for i, o := range m.sorted() {
			prospect := m.prospect(o, now)
			if text := prospect.state + ": " + prospect.why; !strings.HasPrefix(text, want[i]) {
				t.Errorf("%s: got %q, want %q", o.fact.Name, text, want[i])
			}
		}
	}
	waits, stays := "waiting 1s: due at 15:04:06 by demo/defaults, rule default", "kept: until newer ones replace it, by demo/defaults, rule default"
	held := "held: until somebody approves hold " + id + " of demo/defaults"
	check(waits, held, held, stays)
	own.Status = gc.CleanupPolicyStatus{ObservedGeneration: 1, Holds: []gc.PolicyHold{{ID: id, Namespace: namespace}}}
	check(waits, held, held, stays)
	own.Annotations = map[string]string{gc.AnnotationApprovedHold: id}
	check(waits, "due ", "due ", stays)
}

func TestFrameFillsTheTerminal(t *testing.T) {
	var objects []*object
	for i := range 30 {
		objects = append(objects, finished(fmt.Sprintf("job-%d", i), time.Duration(i)*time.Second/4))
	}
	objects = append(objects, finished("held", time.Minute, func(o *object) { o.deleting = now }))
	m := modelOf("10s", gc.ModeEnforce, "", objects...)
	for i := range 50 {
		m.tell(now, "line %d", i)
	}
	for height := 5; height < 80; height++ {
		lines := frame(m, []string{"command"}, []string{"log"}, height, now)
		if len(lines) != height {
			t.Errorf("%d lines for a terminal of %d", len(lines), height)
		}
		text := fmt.Sprint(lines)
		if height >= 16 && (!strings.Contains(text, "job/held") || !strings.Contains(text, "line 49") || !strings.Contains(text, "Seen:")) {
			t.Errorf("height %d: what matters most is missing: %s", height, text)
		}
	}
}

func TestLinesAreCutToTheWidth(t *testing.T) {
	s := &screen{colour: true}
	for width, want := range map[int]string{20: "\x1b[1mabcdef\x1b[m", 6: "\x1b[1mabcdef\x1b[m", 5: "\x1b[1mab...\x1b[m", 2: "\x1b[1m..\x1b[m"} {
		if got := s.paint(styled{"abcdef", bold}, width); got != want {
			t.Errorf("width %d: got %q, want %q", width, got, want)
		}
	}
}

func TestLogIsReadInWholeLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	o := &observer{logFile: file}
	read := func(content string) []logEntry {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		entries, err := o.readLog()
		if err != nil {
			t.Fatal(err)
		}
		return entries
	}
	first := "a line of something else\n" + `{"msg":"Deleted","uid":"u","delay":"0.008s"}` + "\n"
	if got := read(first + `{"msg":"Del`); len(got) != 1 || got[0].UID != "u" || got[0].Delay != delay(8*time.Millisecond) {
		t.Errorf("got %+v", got)
	}
	if got := read(first + `{"msg":"Deleted","uid":"v"}` + "\n"); len(got) != 1 || got[0].UID != "v" {
		t.Errorf("got %+v", got)
	}
}
