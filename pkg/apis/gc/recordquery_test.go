// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFormatLateness: it is rounded, and not cut off.
func TestFormatLateness(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1499 * time.Microsecond: "1ms", 1600 * time.Microsecond: "2ms", 1600 * time.Millisecond: "2s", 48*time.Hour - time.Second: "2d",
	} {
		if got := FormatLateness(&metav1.Duration{Duration: d}); got != want {
			t.Errorf("%s: got %q, want %q", d, got, want)
		}
	}
	if got := FormatLateness(nil); got != "-" {
		t.Errorf("not known: got %q", got)
	}
}
