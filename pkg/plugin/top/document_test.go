// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/plugin/internal/plugintest"
	"github.com/winnow-dev/winnow/pkg/plugin/output"
)

// someReading has a row of each sort.
func someReading() *Document {
	d := &Document{Time: plugintest.Now, Rows: []usage{
		{
			Namespace: "team-a", Candidates: 1200, Due: 300, Held: 20, Deleted: 7, DeletedPerMinute: new(int64(120)), sampled: true,
			Capacity: &fullness{"cup/p", "few", "jobs.batch", 180, 200},
		},
		{Namespace: "team-b", Candidates: 250, AtLeast: true, Next: at(5 * time.Minute), sampled: true},
		{ClusterPolicy: "defaults", Candidates: 3, Next: at(-time.Second), sampled: true},
		{Namespace: "team-c"},
	}, backlog: backlog{280, 1000, 140 * time.Second}, Incomplete: []string{"a" + plugintest.Hostile, "b", "c", "d"}}
	d.Total = total(d.Rows)
	return d
}

func texts(lines []output.Line) string {
	var out strings.Builder
	for _, l := range lines {
		out.WriteString(l.Text + "\n")
	}
	return out.String()
}

func TestFrame(t *testing.T) {
	all, err := someReading().Frame("title", nil, false, 200, 40)
	if err != nil {
		t.Fatal(err)
	}
	plugintest.Lines(t, texts(all),
		"title",
		"NAMESPACE       CANDIDATES   DUE    HELD   CAPACITY        RATE      NEXT",
		"team-a          1200         300    20     180/200 (90%)   120/min   now",
		"team-b          250+         0+     0+     -               -         in 5m",
		"ccup/defaults   3            0      0      -               -         now",
		"team-c          0            0      0      ?               -         -",
		"(all)           1453+        300+   20+    -               120/min   now",
		"",
		"Due [#####################---------] 720 of 1000 gone, 280 left, about 2m20s",
		"HELD: something keeps them. To see what: kubectl get cand -n NAMESPACE --field-selector state=Held",
		`ax\x1b[2J\ny`, "b", "c")
	for i, want := range map[int]output.Style{0: output.Plain, 1: output.Bold, 2: output.Yellow, 3: output.Plain, 6: output.Bold, 8: output.Green} {
		if all[i].Style != want {
			t.Errorf("line %d has style %q, want %q", i, all[i].Style, want)
		}
	}
	wide, err := someReading().Frame("title", errors.New("no\nanswer"), true, 200, 40)
	if err != nil || !strings.Contains(texts(wide), "now     7         cup/p few jobs.batch\n") || wide[0] != (output.Line{Text: `Not up to date: no\nanswer`, Style: output.Red}) {
		t.Errorf("wide, after a failure, %v:\n%s", err, texts(wide))
	}
}

// TestFrameFits: whatever the size of the window, nothing is beyond it, and the rows with the most due objects are seen first.
func TestFrameFits(t *testing.T) {
	d := someReading()
	for i := range 50 {
		d.Rows = append(d.Rows, usage{Namespace: fmt.Sprint("team-", i)})
	}
	for width := 1; width < 120; width += 40 {
		for height := 1; height < 70; height += 3 {
			got, err := d.Frame("title", nil, false, width, height)
			if err != nil || len(got) > height {
				t.Fatalf("%d lines in a window of %d, %v", len(got), height, err)
			}
			for _, l := range got {
				if len([]rune(l.Text)) > width {
					t.Fatalf("%q is longer than %d", l.Text, width)
				}
			}
		}
	}
	got, err := d.Frame("title", nil, false, 200, 12)
	if err != nil {
		t.Fatal(err)
	}
	if all := texts(got); len(got) != 12 || !strings.Contains(all, "team-a ") || strings.Contains(all, "ccup/") ||
		!strings.Contains(all, "... 52 more, in a larger window or with --once\n(all) ") || !strings.HasSuffix(all, "\nb\nc\n") {
		t.Errorf("%d lines:\n%s", len(got), all)
	}
}

// TestNoBar: there is none while nothing is due, and no estimate while the backlog does not get smaller.
func TestNoBar(t *testing.T) {
	for want, b := range map[string]backlog{
		"": {},
		"Due [------------------------------] 0 of 9 gone, 9 left\n": {9, 9, 0},
	} {
		if got := texts((&Document{backlog: b}).footer()); got != want {
			t.Errorf("%+v: %q, want %q", b, got, want)
		}
	}
}

// TestPrintedOnce: elsewhere than on a terminal there is the table, without control characters, and without a total of one row.
func TestPrintedOnce(t *testing.T) {
	d := someReading()
	d.Rows = d.Rows[:1]
	printed := func() string {
		var out strings.Builder
		if err := d.Print(output.Escaping(&out), false); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	plugintest.Lines(t, printed(),
		"NAMESPACE   CANDIDATES   DUE   HELD   CAPACITY        RATE      NEXT",
		"team-a      1200         300   20     180/200 (90%)   120/min   now")
	d.Rows = nil
	if got := printed(); !strings.Contains(got, "No policy that deletes anything in any namespace. To see what lies around: kubectl winnow report") {
		t.Error(got)
	}
}
