// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"
)

// Progress shows on a terminal how many objects were listed.
type Progress struct {
	terminal  io.Writer // nil if there is none
	listed    int
	remaining map[string]int64 // by resource
}

// NewProgress returns the progress that a command shows; it shows nothing if w is no terminal.
func NewProgress(w io.Writer) *Progress {
	p := &Progress{remaining: map[string]int64{}}
	if e, ok := w.(escaper); ok && printers.IsTerminal(e.to) {
		p.terminal = e.to
	}
	return p
}

// barWidth is the length of the bar.
const barWidth = 30

// Add notes that objects were listed, and how many of the resource remain.
func (p *Progress) Add(resource string, listed int, remaining int64) {
	p.listed += listed
	p.remaining[resource] = remaining
	if p.terminal == nil {
		return
	}
	total := int64(p.listed)
	for _, n := range p.remaining {
		total += n
	}
	fmt.Fprintf(p.terminal, "\r\x1b[KReading %s %d of %d objects", Bar(int64(p.listed), total), p.listed, total)
}

// Bar draws how much is done.
func Bar(done, total int64) string {
	filled := 0
	if total > 0 {
		filled = int(done * barWidth / total)
	}
	return "[" + strings.Repeat("#", filled) + strings.Repeat("-", barWidth-filled) + "]"
}

// Done removes the bar.
func (p *Progress) Done() {
	if p.terminal != nil {
		fmt.Fprint(p.terminal, "\r\x1b[K")
	}
}
