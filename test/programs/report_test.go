// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestReport(t *testing.T) {
	for name, test := range map[string]struct {
		terminal bool
		interval time.Duration
		want     string
	}{
		"on a terminal": {true, onTerminal, "Fetching.\n" + clearLine + "1s: 1 of 4" + clearLine + "Building.\n" +
			clearLine + "2s: 2 of 4" + clearLine + "2s: 3 of 4\n"},
		"elsewhere": {false, elsewhere, "Fetching.\n30s: 1 of 4\nBuilding.\n1m0s: 2 of 4\n1m0s: 3 of 4\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				steps := 0
				r := start(&out, test.terminal, func() string {
					steps++
					return fmt.Sprintf("%d of 4", steps)
				})
				r.note("Fetching.")
				time.Sleep(test.interval)
				synctest.Wait()
				r.note("Building.")
				time.Sleep(test.interval)
				synctest.Wait()
				r.stop()
				if out.String() != test.want {
					t.Errorf("got %q, want %q", &out, test.want)
				}
			})
		})
	}
}
