// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"io"
	"strings"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/printers"
)

// style is how a line stands out, as a code of the terminal.
type style string

const (
	plain  style = ""
	bold   style = "\x1b[1m"
	red    style = "\x1b[31m"
	green  style = "\x1b[32m"
	yellow style = "\x1b[33m"
	reset  style = "\x1b[0m"
)

// line is one line of a screen. Its text is escaped already.
type line struct {
	text  string
	style style
}

// screen shows lines in the window of a terminal, in the place of those before.
type screen struct {
	to     io.Writer
	fd     int
	colour bool
}

// newScreen returns the screen that a command writes to; nil if that is no terminal.
func newScreen(w io.Writer) *screen {
	e, ok := w.(escaper)
	if !ok || !printers.IsTerminal(e.to) {
		return nil
	}
	file, ok := e.to.(interface{ Fd() uintptr })
	if !ok {
		return nil
	}
	return &screen{e.to, int(file.Fd()), printers.AllowsColorOutput(e.to)}
}

// open switches to the second screen of the terminal, so that the first one is there again afterwards, and hides the cursor.
func (s *screen) open() { s.write("\x1b[?1049h\x1b[?25l\x1b[2J") }

func (s *screen) close() { s.write("\x1b[?25h\x1b[?1049l") }

// size returns the size of the window in characters. It asks each time, because the window may have changed.
func (s *screen) size() (width, height int) {
	width, height, err := term.GetSize(s.fd)
	if err != nil || width == 0 || height == 0 {
		return 80, 24
	}
	return width, height
}

// draw shows lines. The caller sees to it that they fit.
func (s *screen) draw(lines []line) {
	var out strings.Builder
	out.WriteString("\x1b[H")
	for i, l := range lines {
		if i > 0 {
			out.WriteString("\r\n")
		}
		out.WriteString("\x1b[2K")
		out.WriteString(s.styled(l))
	}
	out.WriteString("\x1b[J")
	s.write(out.String())
}

func (s *screen) styled(l line) string {
	if !s.colour || l.style == plain {
		return l.text
	}
	return string(l.style) + l.text + string(reset)
}

// write writes as a whole. If the terminal is gone, the signal that says so ends the command.
func (s *screen) write(text string) { _, _ = io.WriteString(s.to, text) }
