// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/winnow-dev/winnow/pkg/humantime"
)

// Heading prints a line that stands out on a terminal.
func Heading(w io.Writer, format string, args ...any) {
	text := OneLine(fmt.Sprintf(format, args...))
	if e, ok := w.(escaper); ok && printers.AllowsColorOutput(e.to) {
		fmt.Fprintf(e.to, "\x1b[1m%s\x1b[0m\n", text)
		return
	}
	fmt.Fprintln(w, text)
}

// PrintLine prints a line, or nothing if there is no text.
func PrintLine(w io.Writer, indent, text string) {
	if text != "" {
		fmt.Fprintf(w, "%s%s\n", indent, OneLine(text))
	}
}

// Sentence returns a sentence of somebody else with a full stop and a capital letter. A command at its end stays as it is, to be copied.
func Sentence(text string) string {
	if text == "" {
		return ""
	}
	if !strings.HasSuffix(text, ".") && !endsWithCommand(text) {
		text += "."
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

func endsWithCommand(text string) bool {
	begin := strings.LastIndex(text, ": kubectl ")
	return begin >= 0 && !strings.Contains(text[begin:], ". ")
}

// When formats a time by its distance from now: "in 5m", or "5m ago".
func When(at, now time.Time) string { return humantime.When(at, now) }

// Ago formats a time at which something has happened: "5m ago", and never "in 1s".
func Ago(at, now time.Time) string { return humantime.Ago(at, now) }

// Size formats a number of bytes.
func Size(bytes int64) string {
	const unit = 1024
	if bytes < unit {
		return fmt.Sprintf("%d B", bytes)
	}
	value, units := float64(bytes)/unit, "KMGT"
	for value >= unit && len(units) > 1 {
		value, units = value/unit, units[1:]
	}
	return fmt.Sprintf("%.1f %ciB", value, units[0])
}
