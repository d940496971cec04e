// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/humantime"
	"github.com/winnow-dev/winnow/pkg/plugin/output"
)

// Document is one reading, also for json and yaml.
type Document struct {
	Time      time.Time `json:"time"`
	Namespace string    `json:"namespace,omitempty"`
	Rows      []usage   `json:"rows"`
	Total     usage     `json:"total"`
	// Incomplete says what could not be read.
	Incomplete []string `json:"incomplete,omitempty"`

	backlog backlog
}

// Print prints a reading without limits of a window.
func (d *Document) Print(w io.Writer, wide bool) error {
	if len(d.Rows) == 0 {
		fmt.Fprintf(w, "No policy that deletes anything %s. To see what lies around: kubectl winnow report\n", gc.InNamespace(d.Namespace))
		return nil
	}
	lines, err := d.Table(math.MaxInt, wide)
	for _, l := range lines {
		fmt.Fprintln(w, l.Text)
	}
	return err
}

// Table returns lines with the first rows, how many are left out, and the total.
func (d *Document) Table(most int, wide bool) ([]output.Line, error) {
	t := output.NewTable("Namespace", "Candidates", "Due", "Held", "Capacity", "Rate", "Next", "Deleted+", "Limit+")
	shown := d.Rows[:min(most, len(d.Rows))]
	styles := []output.Style{output.Bold}
	for i := range shown {
		d.addRow(t, &shown[i], shown[i].title())
		if shown[i].Held > 0 {
			styles = append(styles, output.Yellow)
		} else {
			styles = append(styles, output.Plain)
		}
	}
	if len(d.Rows) > 1 {
		all := d.Total
		all.sampled = true
		d.addRow(t, &all, "(all)")
		styles = append(styles, output.Bold)
	}
	var text bytes.Buffer
	if err := t.Print(&text, wide); err != nil {
		return nil, err
	}
	var out []output.Line
	for i, row := range strings.Split(strings.TrimRight(text.String(), "\n"), "\n") {
		out = append(out, output.Line{Text: strings.TrimRight(row, " "), Style: styles[i]})
	}
	if more := len(d.Rows) - len(shown); more > 0 {
		last := len(out) - 1
		out = append(out[:last:last], output.Line{Text: fmt.Sprintf("... %d more, in a larger window or with --once", more)}, out[last])
	}
	return out, nil
}

func (d *Document) addRow(t *output.Table, u *usage, title string) {
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
		next = output.When(u.Next.Time, d.Time)
	}
	t.Add(title, count(u.Candidates), count(u.Due), count(u.Held), capacity, rate, next, fmt.Sprint(u.Deleted), of)
}

// notesMost is how many notes a window has room for. With --once, all are printed.
const notesMost = 3

// footer returns the lines below the table.
func (d *Document) footer() []output.Line {
	var out []output.Line
	if b := d.backlog; b.left > 0 && b.peak > 0 {
		text := fmt.Sprintf("Due %s %d of %d gone, %d left", output.Bar(b.peak-b.left, b.peak), b.peak-b.left, b.peak, b.left)
		if b.remaining > 0 {
			text += ", about " + humantime.Duration(max(b.remaining, time.Second))
		}
		out = append(out, output.Line{Text: text, Style: output.Green})
	}
	if d.Total.Held > 0 {
		out = append(out, output.Line{Text: "HELD: something keeps them. To see what: kubectl get cand -n NAMESPACE --field-selector state=Held"})
	}
	for _, note := range d.Incomplete[:min(notesMost, len(d.Incomplete))] {
		out = append(out, output.Line{Text: output.OneLine(note)})
	}
	return out
}

// RowsIn returns how many rows fit into a window, beside the lines above and below them: a title, the header, a line about what does not
// fit, the total, and an empty line.
func (d *Document) RowsIn(height int) int {
	const others = 5
	return max(height-others-len(d.footer()), 1)
}

// Frame returns a whole window: never more than so many lines, of never more than so many characters. failure is why the numbers are old.
func (d *Document) Frame(title string, failure error, wide bool, width, height int) ([]output.Line, error) {
	table, err := d.Table(d.RowsIn(height), wide)
	if err != nil {
		return nil, err
	}
	first := output.Line{Text: title}
	if failure != nil {
		first = output.Line{Text: "Not up to date: " + output.OneLine(failure.Error()), Style: output.Red}
	}
	out := append([]output.Line{first}, table...)
	if footer := d.footer(); len(footer) > 0 {
		out = append(append(out, output.Line{}), footer...)
	}
	out = out[:min(len(out), height)]
	for i := range out {
		if text := []rune(out[i].Text); len(text) > width {
			out[i].Text = string(text[:width])
		}
	}
	return out, nil
}
