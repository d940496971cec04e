// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/facts"
)

// collected is a List for a tracker that takes in whole lists only.
type collected struct {
	objects
	resource string
	all      []*facts.Compact
}

// Add implements List.
func (c *collected) Add(page []*facts.Compact, _ time.Time) { c.all = append(c.all, page...) }

// End implements List.
func (c *collected) End(resourceVersion uint64, now time.Time) {
	c.Replace(c.resource, c.all, resourceVersion, now)
}

// Abandon implements List.
func (c *collected) Abandon(time.Time) { c.all = nil }
