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
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
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
func modelOf(t *testing.T, ttl v1alpha1.TTL, mode v1alpha1.PolicyMode, message string, objects ...*object) *model {
	t.Helper()
	m := newModel(now.Add(-time.Minute))
	m.policies = []v1alpha1.CleanupPolicy{{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "defaults"},
		Spec:       v1alpha1.CleanupPolicySpec{Mode: cmp.Or(mode, v1alpha1.ModeEnforce), TTLAfterFinished: &ttl, AnnotationTTL: v1alpha1.AnnotationExtendOnly},
		Status:     v1alpha1.CleanupPolicyStatus{Conditions: []metav1.Condition{{Type: gc.ConditionReady, Message: message}}},
	}}
	var err error
	if m.forecast, err = newForecaster(m.policies); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		m.objects[o.fact.UID] = o
	}
	m.look(now)
	return m
}

func TestOutlook(t *testing.T) {
	deletion := &logEntry{
		Policy: "demo/defaults", Rule: "default", FinishedAt: now.Add(-20 * time.Second), Due: now.Add(-10 * time.Second),
		Lateness: lateness(8 * time.Millisecond),
	}
	for name, c := range map[string]struct {
		ttl     v1alpha1.TTL
		mode    v1alpha1.PolicyMode
		message string
		object  *object
		want    string
	}{
		"running": {ttl: "10s", object: finished("a", 0, func(o *object) { o.fact.Finished = false }), want: "running 1m: has not finished"},
		"waiting": {ttl: "10s", object: finished("a", 3*time.Second), want: "waiting 7s: goes at 15:04:12 by demo/defaults, rule default"},
		"kept":    {ttl: "1h", object: finished("a", 5*time.Second), want: "kept 59m: until 16:04:00 by demo/defaults, rule default"},
		"for ever": {ttl: "never", object: finished("a", 5*time.Second),
			want: "kept: for ever by demo/defaults, rule default"},
		"annotated": {ttl: "10s", object: finished("a", 5*time.Second, func(o *object) { o.fact.TTL = new("1h") }),
			want: "kept 59m: until 16:04:00 by demo/defaults, rule default, annotated ttl=1h"},
		"preview": {ttl: "3s", mode: v1alpha1.ModePreview, object: finished("a", 5*time.Second),
			want: "previewed: would have gone at 15:04:03 by demo/defaults, rule default"},
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
			got := modelOf(t, c.ttl, c.mode, c.message).withObject(c.object).outlook(c.object, now)
			if text := got.state + ": " + got.why; text != c.want {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}

func (m *model) withObject(o *object) *model {
	m.objects[o.fact.UID] = o
	return m
}

func TestFrameFillsTheTerminal(t *testing.T) {
	var objects []*object
	for i := range 30 {
		objects = append(objects, finished(fmt.Sprintf("job-%d", i), time.Duration(i)*time.Second/4))
	}
	objects = append(objects, finished("held", time.Minute, func(o *object) { o.deleting = now }))
	m := modelOf(t, "10s", v1alpha1.ModeEnforce, "", objects...)
	for i := range 50 {
		m.tell(now, "line %d", i)
	}
	for height := 5; height < 80; height++ {
		lines := frame(m, []string{"hint"}, height, now)
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
	first := "a line of something else\n" + `{"msg":"Deleted","uid":"u","lateness":"0.008s"}` + "\n"
	if got := read(first + `{"msg":"Del`); len(got) != 1 || got[0].UID != "u" || got[0].Lateness != lateness(8*time.Millisecond) {
		t.Errorf("got %+v", got)
	}
	if got := read(first + `{"msg":"Deleted","uid":"v"}` + "\n"); len(got) != 1 || got[0].UID != "v" {
		t.Errorf("got %+v", got)
	}
}
