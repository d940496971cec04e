// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

var now = time.Date(2026, 1, 2, 15, 4, 5, 0, time.Local)

// candidate is a Job that finished some seconds ago, in a state.
func candidate(
	state v1alpha1.CandidateState, policy string, outcome v1alpha1.Outcome, ago int, ttl v1alpha1.TTL,
) *v1alpha1.CleanupCandidateStatus {
	since := now.Add(-time.Duration(ago) * time.Second)
	c := &v1alpha1.CleanupCandidateStatus{
		State: state, Reason: "Reason", Message: "it says so", Since: &metav1.Time{Time: since}, Outcome: outcome, TTL: ttl,
		DecidedBy: &v1alpha1.CandidatePolicy{Name: policy},
	}
	if d, err := time.ParseDuration(string(ttl)); err == nil {
		c.DueTime = &metav1.Time{Time: since.Add(d)}
	}
	return c
}

func waiting(ago int) *v1alpha1.CleanupCandidateStatus {
	return candidate(v1alpha1.CandidateWaiting, defaults, v1alpha1.OutcomeSucceeded, ago, "10s")
}

func failed(state v1alpha1.CandidateState, ago int, ttl v1alpha1.TTL) *v1alpha1.CleanupCandidateStatus {
	c := candidate(state, failures, v1alpha1.OutcomeFailed, ago, ttl)
	if state == v1alpha1.CandidateHeld {
		c.Reason = string(state)
	}
	return c
}

func annotated() *v1alpha1.CleanupCandidateStatus {
	c := candidate(v1alpha1.CandidateKept, defaults, v1alpha1.OutcomeSucceeded, 30, "never")
	c.Adjustments = []v1alpha1.CandidateAdjustment{{Source: "annotation gc.winnow.dev/ttl", To: "never"}}
	return c
}

// keptUntil is a Job that an annotation keeps for an hour.
func keptUntil() *v1alpha1.CleanupCandidateStatus {
	c := waiting(3)
	c.DueTime = &metav1.Time{Time: now.Add(time.Hour)}
	c.Adjustments = []v1alpha1.CandidateAdjustment{{
		Source: "annotation gc.winnow.dev/keep-until", To: c.DueTime.UTC().Format(time.RFC3339),
	}}
	return c
}

// observed is a Job by its name, with its candidate if it has one.
type observed map[string]*v1alpha1.CleanupCandidateStatus

// see updates the model by Jobs and by lines of the log.
func (m *model) see(at time.Time, jobs observed, log ...logEntry) {
	o := &observation{
		candidates: map[types.UID]*v1alpha1.CleanupCandidateStatus{}, log: log,
		policies: map[string]*v1alpha1.CleanupPolicy{
			defaults: newPolicy(defaults, v1alpha1.OutcomeSucceeded, succeededTTL),
			failures: newPolicy(failures, v1alpha1.OutcomeFailed, failedTTL),
		},
	}
	for name, c := range jobs {
		o.jobs = append(o.jobs, batchv1.Job{ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name), CreationTimestamp: metav1.Time{Time: now.Add(-time.Minute)},
		}})
		o.candidates[types.UID(name)] = c
	}
	m.update(o, at)
	m.look(at)
}

// deleted is the line of the log about a Job that finished some seconds ago, and was deleted a moment after it was due.
func deleted(name, policy string, ago int) logEntry {
	finished := now.Add(-time.Duration(ago) * time.Second)
	due := finished.Add(succeededTTL)
	return logEntry{
		Message: "Deleted", UID: types.UID(name), Policy: namespace + "/" + policy, FinishedAt: finished, Due: due,
		Delay: delay(8 * time.Millisecond), Milliseconds: float64(due.Add(8 * time.Millisecond).UnixMilli()),
	}
}

func TestRow(t *testing.T) {
	for name, c := range map[string]struct {
		candidate *v1alpha1.CleanupCandidateStatus
		gone      []logEntry // it is gone if it is not nil
		want      string
		line      string
	}{
		"running": {nil, nil, "Running - has not finished", "job/a is Running (has not finished)"},
		"waiting": {waiting(3), nil, "Waiting in 7s policy defaults: 10s after it succeeded",
			"job/a is Waiting until 15:04:12 (policy defaults: 10s after it succeeded)"},
		"annotated": {annotated(), nil, "Kept never annotation gc.winnow.dev/ttl: never", "job/a is Kept (annotation gc.winnow.dev/ttl: never)"},
		"kept until": {keptUntil(), nil, "Waiting in 60m kept until 2026-01-02 16:04",
			"job/a is Waiting until 16:04:05 (kept until 2026-01-02 16:04)"},
		"held": {failed(v1alpha1.CandidateHeld, 20, "10s"), nil, "Held - policy failures: waits for approval",
			"job/a is Held (policy failures: waits for approval)"},
		"held otherwise": {candidate(v1alpha1.CandidateHeld, defaults, "", 20, "10s"), nil, "Held 10s ago Reason: it says so",
			"job/a is Held (Reason: it says so)"},
		"due": {candidate(v1alpha1.CandidateDue, defaults, v1alpha1.OutcomeSucceeded, 11, "10s"), nil,
			"Due 1s ago policy defaults: 10s after it succeeded", "job/a is Due (policy defaults: 10s after it succeeded)"},
		"due a moment ago, rounded up": {candidate(v1alpha1.CandidateDue, defaults, v1alpha1.OutcomeSucceeded, 9, "10s"), nil,
			"Due 0s ago policy defaults: 10s after it succeeded", "job/a is Due (policy defaults: 10s after it succeeded)"},
		"deleted after the last look at the clock": {waiting(9), []logEntry{deleted("a", defaults, 9)},
			"Deleted 0s ago policy defaults: 10s after it succeeded",
			"job/a is Deleted 8 ms after it was due (policy defaults: 10s after it succeeded)"},
		"terminating": {candidate(v1alpha1.CandidateTerminating, defaults, "", 20, "10s"), nil, "Terminating 10s ago Reason: it says so",
			"job/a is Terminating (Reason: it says so)"},
		"deleted": {waiting(20), []logEntry{deleted("a", defaults, 20)}, "Deleted 10s ago policy defaults: 10s after it succeeded",
			"job/a is Deleted 8 ms after it was due (policy defaults: 10s after it succeeded)"},
		"approved": {failed(v1alpha1.CandidateHeld, 20, "10s"), []logEntry{deleted("a", failures, 20)},
			"Deleted 10s ago policy failures: the change was approved", "job/a is Deleted (policy failures: the change was approved)"},
		"deleted by somebody else": {waiting(3), []logEntry{}, "Deleted 2s ago not by Winnow", "job/a is Deleted (not by Winnow)"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(now)
			m.see(now.Add(-2*time.Second), observed{"a": c.candidate})
			if c.gone != nil {
				m.see(now.Add(-2*time.Second), nil, c.gone...)
			}
			j := m.named("a")[0]
			r := j.row(now)
			if got := fmt.Sprintf("%s %s %s", r.state, r.goes(now), r.why); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got := j.line(r); got != c.line {
				t.Errorf("got the line %q, want %q", got, c.line)
			}
		})
	}
}

var hints = []string{
	"In a second terminal:  source bin/demo.env", "                       " + why, "In a browser:          http://127.0.0.1:1/x/",
}

func screenful() *model {
	m := newModel(now)
	m.see(now, observed{
		report: annotated(), "train-1": failed(v1alpha1.CandidateWaiting, 20, "1h"), "lint-1": waiting(7), "backup-2": waiting(3),
		"convert-3": waiting(1), "index-4": nil,
	})
	m.see(now, observed{
		report: annotated(), "train-1": failed(v1alpha1.CandidateWaiting, 20, "1h"), "backup-2": waiting(3), "convert-3": waiting(1),
		"index-4": nil,
	}, deleted("lint-1", defaults, 12))
	m.say(now, "One.", "Two.")
	return m
}

func TestFrame(t *testing.T) {
	want := strings.TrimPrefix(`
Winnow deletes finished Jobs: see which ones, when, and why. Ctrl-C ends this.

POLICY       SAYS
defaults     Jobs that succeeded are deleted after 10s.
failures     Jobs that failed are deleted after 1h.
guardrails   Changes that would delete over 2 Jobs at once wait for approval.

JOB          STATE        GOES         WHY
backup-2     Waiting      in 7s        policy defaults: 10s after it succeeded
convert-3    Waiting      in 9s        policy defaults: 10s after it succeeded
index-4      Running      -            has not finished
lint-1       Deleted      2s ago       policy defaults: 10s after it succeeded
report       Kept         never        annotation gc.winnow.dev/ttl: never
train-1      Waiting      in 60m       policy failures: 1h after it failed

One.
Two.

In a second terminal:  source bin/demo.env
                       kubectl winnow why job/report
In a browser:          http://127.0.0.1:1/x/
`, "\n")
	var got strings.Builder
	for _, l := range frame(screenful(), hints, 24, now) {
		got.WriteString(l.text + "\n")
	}
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &got, want)
	}
}

func TestFrameFitsTheTerminal(t *testing.T) {
	m := screenful()
	for height := 1; height < 60; height++ {
		lines := frame(m, hints, height, now)
		text, shown := fmt.Sprint(lines), 0
		for _, j := range m.sorted() {
			shown += strings.Count(text, "{"+j.name+" ")
		}
		if len(lines) > height || !strings.Contains(text, title) {
			t.Errorf("height %d: %d lines: %s", height, len(lines), text)
		}
		if more := fmt.Sprintf("and %d more", len(m.jobs)-shown); height >= 3 && shown < len(m.jobs) && !strings.Contains(text, more) {
			t.Errorf("height %d: not %q: %s", height, more, text)
		}
		if height >= 5 && shown == 0 || height >= 19 && !strings.Contains(text, why) {
			t.Errorf("height %d: what matters most is missing: %s", height, text)
		}
	}
	m.policies[failures].Status.Holds = []v1alpha1.PolicyHold{{}}
	want := styled{"failures     Jobs that failed are deleted after 1h (waits for approval).", yellow}
	if lines := frame(m, hints, 24, now); !slices.Contains(lines, want) {
		t.Errorf("nothing says that a change waits: %s", lines)
	}
	m.fail(now, errors.New("no\nanswer"))
	if text := fmt.Sprint(frame(m, hints, 24, now)); !strings.Contains(text, "Trouble: no answer") || strings.Contains(text, "One.") {
		t.Errorf("the trouble is not shown: %s", text)
	}
}

func TestLinesAreWrittenOnce(t *testing.T) {
	m := newModel(now)
	for range 2 {
		m.see(now, observed{"a": waiting(3)})
		m.fail(now, errors.New("no answer"))
	}
	m.fail(now, nil)
	want := []string{"15:04:05 job/a is Waiting until 15:04:12 (policy defaults: 10s after it succeeded)", "15:04:05 Trouble: no answer"}
	if !slices.Equal(m.lines, want) {
		t.Errorf("got %q, want %q", m.lines, want)
	}
}

func TestLinesAreCutToTheWidth(t *testing.T) {
	s := &screen{colour: true}
	for width, want := range map[int]string{
		20: "\x1b[1mabcdef\x1b[m", 6: "\x1b[1mabcdef\x1b[m", 5: "\x1b[1mab...\x1b[m", 2: "\x1b[1m..\x1b[m",
	} {
		if got := s.paint(styled{"abcdef", bold}, width); got != want {
			t.Errorf("width %d: got %q, want %q", width, got, want)
		}
	}
	s.colour = false
	if got := s.paint(styled{"abcdef", bold}, 6); got != "abcdef" {
		t.Errorf("without colours: got %q", got)
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
