// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"
)

var keyLine = regexp.MustCompile(`^( *)([A-Za-z]\w*):(\s.*)?$`)

// setScalar sets the value of a key, or of "section.key", in YAML that people wrote, and leaves the rest, comments included, as it is.
func setScalar(content []byte, key, value string) ([]byte, error) {
	section, name, nested := strings.Cut(key, ".")
	if !nested {
		section, name = "", key
	}
	lines := strings.Split(string(content), "\n")
	current, found := "", 0
	for i, line := range lines {
		m := keyLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if m[1] == "" {
			current = m[2]
		}
		if m[2] == name && (nested && m[1] == "  " && current == section || !nested && m[1] == "") {
			lines[i] = fmt.Sprintf("%s%s: %q", m[1], name, value)
			found++
		}
	}
	if found != 1 {
		return nil, fmt.Errorf("%q stands %d times in it, but must stand once", key, found)
	}
	return []byte(strings.Join(lines, "\n")), nil
}
