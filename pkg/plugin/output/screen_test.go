// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"testing"
)

func TestDraw(t *testing.T) {
	for colour, want := range map[bool]string{
		false: "\x1b[H\x1b[2Ka\r\n\x1b[2Kb\x1b[J",
		true:  "\x1b[H\x1b[2Ka\r\n\x1b[2K\x1b[31mb\x1b[0m\x1b[J",
	} {
		var out bytes.Buffer
		(&Screen{to: &out, colour: colour}).Draw([]Line{{"a", Plain}, {"b", Red}})
		if out.String() != want {
			t.Errorf("colour %t: %q, want %q", colour, out.String(), want)
		}
	}
	if NewScreen(Escaping(&bytes.Buffer{})) != nil {
		t.Error("a buffer is no terminal")
	}
}
