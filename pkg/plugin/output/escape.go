// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// escape replaces characters that control a terminal or change the direction of text. The plugin prints what others wrote, such as an
// annotation or the message of a webhook, and that must not look like something else. Line breaks and tabs remain.
func escape(text string) string {
	if !strings.ContainsFunc(text, hostile) && utf8.ValidString(text) {
		return text
	}
	var out strings.Builder
	for len(text) > 0 {
		c, size := utf8.DecodeRuneInString(text)
		switch {
		case c == utf8.RuneError && size == 1: // It is no character.
			fmt.Fprintf(&out, `\x%02x`, text[0])
		case !hostile(c):
			out.WriteRune(c)
		case c < utf8.RuneSelf:
			fmt.Fprintf(&out, `\x%02x`, c)
		default:
			fmt.Fprintf(&out, `\u%04x`, c)
		}
		text = text[size:]
	}
	return out.String()
}

// escapeJSON escapes the same characters in JSON, in the way of JSON, so that programs read what others wrote.
func escapeJSON(encoded []byte) []byte {
	out := make([]byte, 0, len(encoded))
	for _, c := range string(encoded) {
		if !hostile(c) {
			out = utf8.AppendRune(out, c)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, c) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
	}
	return out
}

// hostile reports whether a character is escaped: control characters, and invisible ones of the category Cf, such as a change of direction.
func hostile(c rune) bool {
	return c != '\n' && c != '\t' && (unicode.IsControl(c) || unicode.Is(unicode.Cf, c))
}

// OneLine is like escape, and also escapes line breaks and tabs, for a cell of a table.
func OneLine(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(escape(text))
}

// escaper escapes what is written to it.
type escaper struct{ to io.Writer }

// Escaping returns a writer that escapes what is written to it. Each write must have whole characters.
func Escaping(w io.Writer) io.Writer { return escaper{w} }

// Write implements io.Writer.
func (e escaper) Write(p []byte) (int, error) {
	if _, err := io.WriteString(e.to, escape(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
