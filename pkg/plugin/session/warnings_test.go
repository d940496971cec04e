// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// TestWarningsAtOnce: requests that run at the same time lose no warning.
func TestWarningsAtOnce(t *testing.T) {
	const requests, each = 8, 1000
	var c Collected
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

// TestWarningsOfPages: what each page of a list says is said once, and the candidates that the pages hide are added up.
func TestWarningsOfPages(t *testing.T) {
	pods, secrets := "kubectl auth can-i list pods", "kubectl auth can-i list secrets"
	c := Collected{texts: []string{
		gc.HiddenCandidates(3, pods), "b", "a", "b", gc.HiddenCandidates(3, pods), gc.HiddenCandidates(1, secrets), gc.HiddenCandidates(40, pods),
		"hidden candidates: all", "hidden candidates: x. You may not list their resources: y",
	}}
	want := []string{
		"a", "b", gc.HiddenCandidates(1, secrets), "hidden candidates: 46. You may not list their resources: " + pods, "hidden candidates: all",
		"hidden candidates: x. You may not list their resources: y",
	}
	if got := c.Few(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	c.texts = nil
	for i := range warningsMost + 5 {
		c.texts = append(c.texts, fmt.Sprintf("warning %02d", i))
	}
	if got := c.Few(); len(got) != warningsMost+1 || got[warningsMost] != "5 more warnings" {
		t.Errorf("got %q", got)
	}
}
