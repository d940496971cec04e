// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// goneShown is how long the table shows a Job after it is gone.
	goneShown = 5 * time.Second
	// tableLeast is the least height of the table. Where there is no room for it, other parts are left out.
	tableLeast = 5
	gap        = "   "
)

// style is the style of a line, as a parameter of the SGR control sequence.
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

// styled is a line of the view.
type styled struct {
	text string
	style
}

// frame returns the view of the model, in at most height lines.
func frame(m *model, hints []string, height int, now time.Time) []styled {
	head := slices.Concat([]styled{{title, bold}, {}}, policyLines(m), []styled{{}})
	foot := []styled{{}}
	for _, c := range captionOf(m) {
		foot = append(foot, styled{c, m.mood()})
	}
	foot = append(foot, styled{})
	for _, h := range hints {
		foot = append(foot, styled{h, plain})
	}
	if height < len(head)+tableLeast+len(foot) {
		foot = nil
	}
	if height < len(head)+tableLeast {
		head = head[:1]
	}
	table := jobTable(m, now, max(1, height-len(head)-len(foot)))
	out := slices.Concat(head, table, foot)
	return out[:min(height, len(out))]
}

// captionLines is how many lines a caption has, so that nothing below it moves.
const captionLines = 2

// captionOf returns what is going on, or why nothing is.
func captionOf(m *model) []string {
	out := slices.Clone(m.caption)
	if m.trouble != nil {
		out = []string{"Trouble: " + strings.ReplaceAll(m.trouble.Error(), "\n", " ")}
	}
	for len(out) < captionLines {
		out = append(out, "")
	}
	return out
}

// mood is the style of the caption.
func (m *model) mood() style {
	switch {
	case m.trouble != nil:
		return red
	case len(m.holds(failures)) > 0:
		return yellow
	}
	return plain
}

// policyLines says what the policies of the demonstration say.
func policyLines(m *model) []styled {
	rows := [][]string{{"POLICY", "SAYS"}}
	styles := []style{bold}
	for _, name := range []string{defaults, failures} {
		says, s := "not there", plain
		if p := m.policies[name]; p != nil && len(p.Spec.Rules) > 0 && p.Spec.Rules[0].TTL != nil {
			r := &p.Spec.Rules[0]
			says = fmt.Sprintf("Jobs that %s are deleted after %s.", strings.ToLower(string(r.Outcome)), *r.TTL)
		}
		if len(m.holds(name)) > 0 {
			says, s = strings.TrimSuffix(says, ".")+" (waits for approval).", yellow
		}
		rows, styles = append(rows, []string{name, says}), append(styles, s)
	}
	limit := fmt.Sprintf("Changes that would delete over %d Jobs at once wait for approval.", holdAbove)
	return aligned(append(rows, []string{guardrails, limit}), append(styles, plain))
}

// jobTable returns the table of Jobs in at most the given number of lines. Where there is no room, it leaves out those that are gone, and
// then the newest.
func jobTable(m *model, now time.Time, most int) []styled {
	jobs := slices.DeleteFunc(m.sorted(), func(j *job) bool { return !j.gone.IsZero() && now.Sub(j.gone) >= goneShown })
	hidden := 0
	for len(jobs)+1+min(hidden, 1) > most && len(jobs) > 0 {
		least := max(0, slices.IndexFunc(jobs, func(j *job) bool { return !j.gone.IsZero() }))
		if jobs[least].gone.IsZero() {
			least = len(jobs) - 1
		}
		jobs = slices.Delete(jobs, least, least+1)
		hidden++
	}
	rows := [][]string{{"JOB", "STATE", "GOES", "WHY"}}
	styles := []style{bold}
	for _, j := range jobs {
		r := j.row(now)
		rows, styles = append(rows, []string{j.name, r.state, r.goes(now), r.why}), append(styles, r.style)
	}
	out := aligned(rows, styles)
	if hidden > 0 {
		out = append(out, styled{fmt.Sprintf("and %d more", hidden), dim})
	}
	return out
}

// columnLeast is the least width of a column, so that few changes of its cells move the next one.
const columnLeast = 10

// aligned pads all columns except the last one.
func aligned(rows [][]string, styles []style) []styled {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)), columnLeast)
		}
	}
	out := make([]styled, 0, len(rows))
	for i, row := range rows {
		var b strings.Builder
		for column, cell := range row[:len(row)-1] {
			fmt.Fprintf(&b, "%-*s%s", widths[column], cell, gap)
		}
		out = append(out, styled{b.String() + row[len(row)-1], styles[i]})
	}
	return out
}
