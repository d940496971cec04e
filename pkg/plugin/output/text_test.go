// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import "testing"

func TestSentence(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "it is kept": "It is kept.", "CronJob/x deletes it.": "CronJob/x deletes it.", "état inconnu": "État inconnu.", "削除できません": "削除できません.",
		"you may not list them: kubectl auth can-i list pods -n a": "You may not list them: kubectl auth can-i list pods -n a",
		"you may not: kubectl auth can-i x. Ask":                   "You may not: kubectl auth can-i x. Ask.",
	} {
		if got := Sentence(text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestSize(t *testing.T) {
	for bytes, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 3 << 30: "3.0 GiB", 5 << 50: "5120.0 TiB"} {
		if got := Size(bytes); got != want {
			t.Errorf("%d: got %s, want %s", bytes, got, want)
		}
	}
}
