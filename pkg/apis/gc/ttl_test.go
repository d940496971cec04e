// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"0s": 0, "0w": 0, "1s": time.Second, "30m": 30 * time.Minute, "1h30m": 90 * time.Minute,
		"7d": 168 * time.Hour, "1w": 168 * time.Hour, "1w1d1h1m1s": 193*time.Hour + 61*time.Second,
		"90m": 90 * time.Minute, "007s": 7 * time.Second, "3650d": MaxDuration, "315360000s": MaxDuration,
	} {
		if got, err := ParseDuration(in); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"": "empty", "-1h": "negative", "1": "a unit after", "1h30": "a unit after", "h": "a number before", "1.5h": "whole numbers",
		"1y": "unknown unit", "500ms": `unknown unit "ms"`, "2days": `unknown unit "days"`, "1hm": `unknown unit "hm"`, "1m1h": "order w, d, h, m, s", "1h1h": "each of them once", " 1h": "a number before",
		"1 h": "a space", "+1h": "a number before", "1H": "unknown unit", "3650d1s": "ten years", "522w": "ten years",
		"99999999999999999999999s": "ten years", "never": "a number before", "1h ": "a number before", "٣h": "a number before",
	} {
		if got, err := ParseDuration(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseDuration(%q) = %v, %v; want an error with %q", in, got, err, want)
		}
	}
}

func TestFormatDuration(t *testing.T) {
	for in, want := range map[string]string{"0s": "0s", "60m": "1h", "1h30m": "1h30m", "1w1d": "8d", "36h1s": "1d12h1s", "90s": "1m30s"} {
		d, err := ParseDuration(in)
		if got := FormatDuration(d); err != nil || got != want {
			t.Errorf("%s is written as %q, %v; want %q", in, got, err, want)
		}
	}
}

func TestTTLParse(t *testing.T) {
	if _, never, err := TTL("Never").Parse(); !never || err != nil {
		t.Errorf("Never: %t, %v", never, err)
	}
	if _, never, err := TTLNever.Parse(); !never || err != nil {
		t.Errorf("never: %v, %v", never, err)
	}
	if d, never, err := TTL("2h").Parse(); never || err != nil || d != 2*time.Hour {
		t.Errorf("2h: %v, %v, %v", d, never, err)
	}
	if _, _, err := TTL("NEVER").Parse(); err == nil {
		t.Error("NEVER was read")
	}
}

// FuzzParseDuration holds the parser against the pattern that the OpenAPI schema publishes and the sum of its parts.
func FuzzParseDuration(f *testing.F) {
	for _, seed := range []string{"", "0s", "1w2d3h4m5s", "1h30m", "3650d", "9999999999w", "-1s", "1s1m", "never", "1.5h", "\x00"} {
		f.Add(seed)
	}
	pattern := regexp.MustCompile(`^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$`)
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseDuration(s)
		if err != nil {
			if pattern.MatchString(s) && s != "" && !strings.Contains(err.Error(), "ten years") {
				t.Fatalf("%q fits the pattern, but: %v", s, err)
			}
			return
		}
		if !pattern.MatchString(s) || s == "" {
			t.Fatalf("%q was read as %v but does not fit the pattern", s, got)
		}
		if got < 0 || got > MaxDuration {
			t.Fatalf("%q was read as %v, outside of 0 to ten years", s, got)
		}
		var sum time.Duration
		for _, part := range regexp.MustCompile(`[0-9]+[wdhms]`).FindAllString(s, -1) {
			d, err := ParseDuration(part)
			if err != nil {
				t.Fatalf("%q was read, its part %q not: %v", s, part, err)
			}
			sum += d
		}
		if sum != got {
			t.Fatalf("%q was read as %v, its parts sum to %v", s, got, sum)
		}
	})
}
