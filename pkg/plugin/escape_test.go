// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
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
	if got := oneLine("a\nb\tc"); got != `a\nb\tc` {
		t.Errorf("a cell has %q", got)
	}
}

// TestJSONIsEscaped: programs read what others wrote, and a terminal shows it as harmless text.
func TestJSONIsEscaped(t *testing.T) {
	text := "a\x1b[2J\x7f\u009b31m \u202e \U0001f469\u200d\U0001f4bb \U000e0041 \ufffd\n"
	out := printed(t, func(p *plugin) error {
		o := output{format: "json"}
		_, err := o.document(p.Out, map[string]string{text: text})
		return err
	})
	if strings.ContainsFunc(out, hostile) {
		t.Errorf("printed %q", out)
	}
	got := map[string]string{}
	if err := json.Unmarshal([]byte(out), &got); err != nil || got[text] != text {
		t.Errorf("read %q from %s: %v", got, out, err)
	}
}

// TestEverythingIsEscaped: whatever a command writes, errors of others included.
func TestEverythingIsEscaped(t *testing.T) {
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	code := Run(t.Context(), []string{"\x1b]0;title\x07"}, streams)
	if all := out.String() + errOut.String(); code != exitFailed || strings.ContainsAny(all, "\x1b\x07") || !strings.Contains(all, "Error: ") {
		t.Errorf("ended with %d: %q", code, all)
	}
}
