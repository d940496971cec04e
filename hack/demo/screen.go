// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/component-base/term"
)

// Control sequences of ECMA-48 that all terminals understand.
const (
	home       = "\x1b[H"
	clearLine  = "\x1b[K"
	clearBelow = "\x1b[J"
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	resetStyle = "\x1b[m"
)

// screen shows the model. On a terminal it draws the view again and again; otherwise it prints lines as things happen.
type screen struct {
	out      *output
	terminal bool
	colour   bool
	commands []string
	logs     []string
	begun    bool
	told     int  // how many lines of the model were printed
	summed   bool // the policies were printed after everything was seen
}

func newScreen(out *output, commands, logs []string) *screen {
	_, _, err := term.TerminalSize(out.File)
	terminal := err == nil && os.Getenv("TERM") != "dumb"
	return &screen{out: out, terminal: terminal, colour: terminal && os.Getenv("NO_COLOR") == "", commands: commands, logs: logs}
}

// show updates the output.
func (s *screen) show(m *model, now time.Time) {
	if s.terminal {
		s.draw(m, now)
		return
	}
	if !s.begun {
		s.begun = true
		fmt.Fprintf(s.out, "In a second terminal:\n\n%s\n\n", strings.Join(s.commands, "\n"))
	}
	for ; s.told < len(m.lines); s.told++ {
		fmt.Fprintln(s.out, m.lines[s.told])
	}
	if len(m.missing()) == 0 && !s.summed {
		s.summed = true
		fmt.Fprintln(s.out)
		for _, l := range policyTable(m) {
			fmt.Fprintln(s.out, l.text)
		}
	}
}

// draw writes the whole frame over the last one. It uses one write, so that the frame does not flicker.
func (s *screen) draw(m *model, now time.Time) {
	width, height, err := term.TerminalSize(s.out.File)
	if err != nil {
		return
	}
	var b strings.Builder
	if !s.begun {
		s.begun = true
		b.WriteString(hideCursor + strings.Repeat("\n", height)) // The earlier contents can be found by scrolling back.
	}
	b.WriteString(home)
	for i, l := range frame(m, s.commands, s.logs, height, now) {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(s.paint(l, width) + clearLine)
	}
	b.WriteString(clearBelow)
	fmt.Fprint(s.out, b.String())
}

// paint cuts a line to the width and colours it.
func (s *screen) paint(l styled, width int) string {
	text := []rune(l.text)
	if len(text) > width {
		text = append(text[:max(0, width-3)], []rune("...")[:min(3, width)]...)
	}
	if !s.colour || l.style == plain {
		return string(text)
	}
	return "\x1b[" + string(l.style) + "m" + string(text) + resetStyle
}

// end resets the terminal.
func (s *screen) end() {
	if s.terminal && s.begun {
		fmt.Fprint(s.out, "\r\n"+showCursor)
	}
}
