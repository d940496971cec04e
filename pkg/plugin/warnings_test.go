// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"sync"
	"testing"
)

// TestWarningsAtOnce: requests that run at the same time lose no warning.
func TestWarningsAtOnce(t *testing.T) {
	const requests, each = 8, 1000
	var c collected
	var group sync.WaitGroup
	for range requests {
		group.Go(func() {
			for range each {
				c.HandleWarningHeader(299, "", "deprecated")
				c.HandleWarningHeader(199, "", "not a warning of an API server")
			}
		})
	}
	group.Wait()
	if len(c.texts) != requests*each {
		t.Errorf("%d warnings, want %d", len(c.texts), requests*each)
	}
}
