// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package facts_test

import (
	"fmt"
	"testing"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
)

// labelled returns an object with n labels besides others, whose keys are even numbers in the order of the labels.
func labelled(n int, others ...string) *facts.Compact {
	job := testbuilders.Job("a").Complete(testbuilders.Now)
	for i := range n {
		job.Label(evenKey(i), fmt.Sprint("value-", i))
	}
	for _, key := range others {
		job.Label(key, "a") // Its name is stored as a placeholder.
	}
	return facts.Compress(job.Fact())
}

func evenKey(i int) string { return fmt.Sprintf("label-%06d", 2*i) }

// TestLookup: every label is found among many, and none that is absent, by looking at few others.
func TestLookup(t *testing.T) {
	for _, n := range []int{0, 1, 2, 15, 16, 17, 31, 32, 33, 64, 1000, 10_000} {
		for name, k := range map[string]*facts.Compact{"plain": labelled(n), "placeholders": labelled(n, "a", "label-", "z")} {
			all := k.Fact().Labels
			check := func(key, want string, present bool) {
				t.Helper()
				if got, ok := all.Lookup(key); got != want || ok != present || all.Has(key) != present || all.Get(key) != want {
					t.Fatalf("%d labels, %s, %s: got %q, %t, %t, want %q, %t", n, name, key, got, ok, all.Has(key), want, present)
				}
				if looked := k.LooksAt(key); looked > 16 {
					t.Fatalf("%d labels, %s, %s: looks at %d of them", n, name, key, looked)
				}
			}
			for i := range n {
				check(evenKey(i), fmt.Sprint("value-", i), true)
				check(fmt.Sprintf("label-%06d", 2*i+1), "", false)
			}
			for _, key := range []string{"", "0", "label", "label-00000", "label-z", "zz"} {
				check(key, "", false)
			}
			for _, key := range []string{"a", "label-", "z"} {
				if name == "plain" {
					check(key, "", false)
				} else {
					check(key, "a", true)
				}
			}
		}
	}
}

// BenchmarkLookup asks for an absent label, as rules that do not match do.
func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{4, 16, 64, 40_000} {
		all := labelled(n).Fact().Labels
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if all.Has("label-absent") {
					b.Fatal("found")
				}
			}
		})
	}
}
