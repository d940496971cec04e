// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// topDocument is one reading of top, also for json and yaml.
type topDocument struct {
	Time      time.Time `json:"time"`
	Namespace string    `json:"namespace,omitempty"`
	Rows      []usage   `json:"rows"`
	Total     usage     `json:"total"`
	// Incomplete says what could not be read.
	Incomplete []string `json:"incomplete,omitempty"`

	backlog backlog
}

// table returns lines with the first rows, how many are left out, and the total.
func (d *topDocument) table(most int, wide bool) ([]line, error) {
	t := newTable("Namespace", "Candidates", "Due", "Held", "Capacity", "Rate", "Next", "Deleted+", "Limit+")
	shown := d.Rows[:min(most, len(d.Rows))]
	styles := []style{bold}
	for i := range shown {
		d.addRow(t, &shown[i], shown[i].title())
		if shown[i].Held > 0 {
			styles = append(styles, yellow)
		} else {
			styles = append(styles, plain)
		}
	}
	if len(d.Rows) > 1 {
		all := d.Total
		all.sampled = true
		d.addRow(t, &all, "(all)")
		styles = append(styles, bold)
	}
	var text bytes.Buffer
	if err := t.print(&text, wide); err != nil {
		return nil, err
	}
	var out []line
	for i, row := range strings.Split(strings.TrimRight(text.String(), "\n"), "\n") {
		out = append(out, line{strings.TrimRight(row, " "), styles[i]})
	}
	if more := len(d.Rows) - len(shown); more > 0 {
		last := len(out) - 1
		out = append(out[:last:last], line{fmt.Sprintf("... %d more, in a larger window or with --once", more), plain}, out[last])
	}
	return out, nil
}

func (d *topDocument) addRow(t *table, u *usage, title string) {
	count := func(n int64) string {
		if u.AtLeast {
			return fmt.Sprintf("%d+", n)
		}
		return fmt.Sprint(n)
	}
	capacity, of, rate, next := "-", "-", "-", "-"
	switch c := u.Capacity; {
	case c != nil:
		capacity = fmt.Sprintf("%d/%d (%d%%)", c.Objects, c.MaxObjects, c.percent())
		of = strings.Join(strings.Fields(c.Policy+" "+c.Rule+" "+c.Resource), " ")
	case !u.sampled:
		capacity = "?"
	}
	if u.DeletedPerMinute != nil {
		rate = fmt.Sprintf("%d/min", *u.DeletedPerMinute)
	}
	switch {
	case u.backlog() > 0 || u.Next != nil && !u.Next.After(d.Time): // A status is some seconds old.
		next = "now"
	case u.Next != nil:
		next = when(u.Next.Time, d.Time)
	}
	t.add(title, count(u.Candidates), count(u.Due), count(u.Held), capacity, rate, next, fmt.Sprint(u.Deleted), of)
}

// notesMost is how many notes a window has room for. With --once, all are printed.
const notesMost = 3

// footer returns the lines below the table.
func (d *topDocument) footer() []line {
	var out []line
	if b := d.backlog; b.left > 0 && b.peak > 0 {
		text := fmt.Sprintf("Due %s %d of %d gone, %d left", bar(b.peak-b.left, b.peak), b.peak-b.left, b.peak, b.left)
		if b.remaining > 0 {
			text += ", about " + duration.HumanDuration(max(b.remaining, time.Second))
		}
		out = append(out, line{text, green})
	}
	if d.Total.Held > 0 {
		out = append(out, line{"HELD: something keeps them. To see what: kubectl get cand -n NAMESPACE --field-selector state=Held", plain})
	}
	for _, note := range d.Incomplete[:min(notesMost, len(d.Incomplete))] {
		out = append(out, line{oneLine(note), plain})
	}
	return out
}

// rowsIn returns how many rows fit into a window, beside the lines above and below them: a title, the header, a line about what does not
// fit, the total, and an empty line.
func (d *topDocument) rowsIn(height int) int {
	const others = 5
	return max(height-others-len(d.footer()), 1)
}

// frame returns a whole window: never more than so many lines, of never more than so many characters. failure is why the numbers are old.
func (d *topDocument) frame(title string, failure error, wide bool, width, height int) ([]line, error) {
	table, err := d.table(d.rowsIn(height), wide)
	if err != nil {
		return nil, err
	}
	first := line{title, plain}
	if failure != nil {
		first = line{"Not up to date: " + oneLine(failure.Error()), red}
	}
	out := append([]line{first}, table...)
	if footer := d.footer(); len(footer) > 0 {
		out = append(append(out, line{}), footer...)
	}
	out = out[:min(len(out), height)]
	for i := range out {
		if text := []rune(out[i].text); len(text) > width {
			out[i].text = string(text[:width])
		}
	}
	return out, nil
}
