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
	// goneShown is how long the table shows an object after it is gone.
	goneShown = 8 * time.Second
	gap       = "  "
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

var moods = map[mood]style{previewed: plain, calm: plain, soon: cyan, kept: green, stuck: yellow, gone: dim}

// styled is a line of the view.
type styled struct {
	text string
	style
}

// roomy is the least height at which the view has empty lines between its parts, and the logs.
const roomy = 32

// frame returns the view of the model in exactly height lines.
func frame(m *model, commands, logs []string, height int, now time.Time) []styled {
	var space []styled
	hints := commands
	if height >= roomy {
		space = []styled{{}}
		hints = slices.Concat(commands, logs)
	}
	title := fmt.Sprintf("Winnow demo, running for %s. Press Ctrl-C to end it. In a second terminal:", now.Sub(m.began).Truncate(time.Second))
	head := []styled{{title, bold}}
	for _, h := range hints {
		head = append(head, styled{h, plain})
	}
	head = slices.Concat(head, space, policyTable(m), space)
	foot := slices.Concat(space, seenLines(m))

	room := height - len(head) - len(space) - len(foot) - 1
	objects := objectTable(m, now, max(3, room*3/5))
	out := slices.Concat(head, objects, space, []styled{{"WHAT HAPPENED", bold}})
	for _, l := range m.lines[max(0, len(m.lines)-max(0, room-len(objects))):] {
		out = append(out, styled{l.String(), plain})
	}
	for len(out)+len(foot) < height {
		out = append(out, styled{})
	}
	return append(out, foot...)[:height]
}

// policyTable returns some columns of the table that the server makes for kubectl.
func policyTable(m *model) []styled {
	columns := []string{"Mode", "TTL", "Candidates", "Due", "Deleted", "Next", "Ready"}
	header := []string{"POLICY"}
	for _, c := range columns {
		header = append(header, strings.ToUpper(c))
	}
	rows := [][]string{header}
	for _, p := range m.policies {
		row := []string{titleOf(p.Stored)}
		for _, c := range columns {
			row = append(row, fmt.Sprint(p.cells[c]))
		}
		rows = append(rows, row)
	}
	out := aligned(rows)
	out[0].style = bold
	if m.trouble != nil {
		out = append(out, styled{"cannot show the policies: " + m.trouble.Error(), red})
	}
	return out
}

// shown is a row of the table of objects.
type shown struct {
	*object
	prospect
}

// objectTable returns the table of objects with at most the given number of lines. It leaves out the least interesting objects.
func objectTable(m *model, now time.Time, most int) []styled {
	var all []shown
	for _, o := range m.sorted() {
		if o.gone.IsZero() || now.Sub(o.gone) < goneShown {
			all = append(all, shown{o, m.prospect(o, now)})
		}
	}
	hidden := 0
	for len(all)+1+min(hidden, 1) > most {
		all = dropOne(all)
		hidden++
	}
	rows := [][]string{{"OBJECT", "STATE", "WHEN AND WHY"}}
	styles := []style{bold}
	for _, o := range all {
		rows = append(rows, []string{nameOf(o.fact), o.prospect.state, o.why})
		styles = append(styles, moods[o.mood])
	}
	out := aligned(rows)
	for i := range out {
		out[i].style = styles[i]
	}
	if hidden > 0 {
		out = append(out, styled{fmt.Sprintf("and %d more", hidden), dim})
	}
	return out
}

// dropOne removes the newest object of the least interesting mood.
func dropOne(all []shown) []shown {
	least := len(all) - 1
	for i := least; i >= 0; i-- {
		if all[i].mood < all[least].mood {
			least = i
		}
	}
	return slices.Delete(all, least, least+1)
}

// seenInLine is how many sights fit into a line of 80 characters.
const seenInLine = 4

// seenLines returns the list of sights, and marks those that were seen.
func seenLines(m *model) []styled {
	var out []styled
	for some := range slices.Chunk(m.sights, seenInLine) {
		text := "Seen:"
		for _, s := range some {
			mark := " "
			if s.how != "" {
				mark = "x"
			}
			text += fmt.Sprintf(" [%s] %s", mark, s.what)
		}
		out = append(out, styled{text, plain})
	}
	if len(m.missing()) > 0 {
		return append(out, styled{"You will see all of these soon.", dim})
	}
	for i := range out {
		out[i].style = green
	}
	return append(out, styled{"You have seen everything. Try it yourself: kubectl create job mine --image=none -n " + namespace, plain})
}

// aligned pads all columns except the last one.
func aligned(rows [][]string) []styled {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	out := make([]styled, 0, len(rows))
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			if i == len(row)-1 {
				b.WriteString(cell)
				break
			}
			fmt.Fprintf(&b, "%-*s%s", widths[i], cell, gap)
		}
		out = append(out, styled{text: b.String()})
	}
	return out
}
