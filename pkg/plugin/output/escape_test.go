// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"plain, été, 日本\n\tx":       "plain, été, 日本\n\tx",
		"\x1b[31mred\x1b[0m":        `\x1b[31mred\x1b[0m`,
		"over\rwritten\b\x07":       `over\x0dwritten\x08\x07`,
		"c1 \u009b31m":              `c1 \u009b31m`,
		"evil\u202etxt.exe\u2066":   `evil\u202etxt.exe\u2066`,
		"cut \xff off":              `cut \xff off`,
		"a real \ufffd replacement": "a real \ufffd replacement",
		"both: \ufffd, \xff, \a":    "both: \ufffd, \\xff, \\x07",
	} {
		if got := escape(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := OneLine("a\nb\tc"); got != `a\nb\tc` {
		t.Errorf("a cell has %q", got)
	}
}

// TestJSONIsEscaped: programs read what others wrote, and a terminal shows it as harmless text.
func TestJSONIsEscaped(t *testing.T) {
	text := "a\x1b[2J\x7f\u009b31m \u202e \U0001f469\u200d\U0001f4bb \U000e0041 \ufffd\n"
	var printed strings.Builder
	f := Format{Name: "json"}
	if _, err := f.Document(Escaping(&printed), map[string]string{text: text}); err != nil {
		t.Fatal(err)
	}
	out := printed.String()
	if strings.ContainsFunc(out, hostile) {
		t.Errorf("printed %q", out)
	}
	got := map[string]string{}
	if err := json.Unmarshal([]byte(out), &got); err != nil || got[text] != text {
		t.Errorf("read %q from %s: %v", got, out, err)
	}
}
