// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escape replaces characters that control a terminal or change the direction of text. The plugin prints what others wrote, such as an
// annotation or the message of a webhook, and that must not look like something else. Line breaks and tabs remain.
func escape(text string) string {
	if !strings.ContainsFunc(text, hostile) && utf8.ValidString(text) {
		return text
	}
	var out strings.Builder
	for i, c := range text {
		switch {
		case c == utf8.RuneError:
			fmt.Fprintf(&out, `\x%02x`, text[i])
		case !hostile(c):
			out.WriteRune(c)
		case c < utf8.RuneSelf:
			fmt.Fprintf(&out, `\x%02x`, c)
		default:
			fmt.Fprintf(&out, `\u%04x`, c)
		}
	}
	return out.String()
}

// hostile reports whether a character is escaped: control characters, and invisible ones of the category Cf, such as a change of direction.
func hostile(c rune) bool {
	return c != '\n' && c != '\t' && (unicode.IsControl(c) || unicode.Is(unicode.Cf, c))
}

// oneLine is like escape, and also escapes line breaks and tabs, for a cell of a table.
func oneLine(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(escape(text))
}
