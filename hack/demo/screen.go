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
	hints    []string
	begun    bool
	told     int // how many lines of the model were printed
}

func newScreen(out *output, hints []string) *screen {
	_, _, err := term.TerminalSize(out.File)
	terminal := err == nil && os.Getenv("TERM") != "dumb"
	return &screen{out: out, terminal: terminal, colour: terminal && os.Getenv("NO_COLOR") == "", hints: hints}
}

// show updates the output.
func (s *screen) show(m *model, now time.Time) {
	if s.terminal {
		s.draw(m, now)
		return
	}
	if !s.begun {
		s.begun = true
		fmt.Fprintf(s.out, "\n%s\n\n%s\n\n", title, strings.Join(s.hints, "\n"))
		for _, l := range policyLines(m) {
			fmt.Fprintln(s.out, l.text)
		}
		fmt.Fprintln(s.out)
	}
	for ; s.told < len(m.lines); s.told++ {
		fmt.Fprintln(s.out, m.lines[s.told])
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
	for i, l := range frame(m, s.hints, height, now) {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(clearLine + s.paint(l, width)) // Cleared before, because after a full line this would clear its last character.
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
