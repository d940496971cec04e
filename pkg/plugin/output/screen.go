// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"io"
	"strings"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/printers"
)

// Style is how a line stands out, as a code of the terminal.
type Style string

// Styles.
const (
	Plain  Style = ""
	Bold   Style = "\x1b[1m"
	Red    Style = "\x1b[31m"
	Green  Style = "\x1b[32m"
	Yellow Style = "\x1b[33m"
	reset  Style = "\x1b[0m"
)

// Line is one line of a screen. Its text is escaped already.
type Line struct {
	Text  string
	Style Style
}

// Screen redraws the terminal with new lines.
type Screen struct {
	to     io.Writer
	fd     int
	colour bool
}

// NewScreen returns the screen that a command writes to; nil if that is no terminal.
func NewScreen(w io.Writer) *Screen {
	e, ok := w.(escaper)
	if !ok || !printers.IsTerminal(e.to) {
		return nil
	}
	file, ok := e.to.(interface{ Fd() uintptr })
	if !ok {
		return nil
	}
	return &Screen{e.to, int(file.Fd()), printers.AllowsColorOutput(e.to)}
}

// Open switches to the second screen of the terminal, so that the first one is there again afterwards, and hides the cursor.
func (s *Screen) Open() { s.write("\x1b[?1049h\x1b[?25l\x1b[2J") }

// Close shows what was on the terminal before.
func (s *Screen) Close() { s.write("\x1b[?25h\x1b[?1049l") }

// Size returns the size of the window in characters. It asks each time, because the window may have changed.
func (s *Screen) Size() (width, height int) {
	width, height, err := term.GetSize(s.fd)
	if err != nil || width == 0 || height == 0 {
		return 80, 24
	}
	return width, height
}

// Draw shows lines. The caller sees to it that they fit.
func (s *Screen) Draw(lines []Line) {
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

func (s *Screen) styled(l Line) string {
	if !s.colour || l.Style == Plain {
		return l.Text
	}
	return string(l.Style) + l.Text + string(reset)
}

// write writes as a whole. If the terminal is gone, the signal that says so ends the command.
func (s *Screen) write(text string) { _, _ = io.WriteString(s.to, text) }
