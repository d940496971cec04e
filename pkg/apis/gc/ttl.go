// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// TTL is how long something is kept: a duration as ParseDuration reads it, or "never" (or "Never") for always. It is kept as written.
type TTL string

// TTLNever keeps for ever; so does ttlNeverToo, as Kubernetes writes its own words.
const (
	TTLNever    TTL = "never"
	ttlNeverToo TTL = "Never"
)

// MaxDuration is the longest duration of the API: ten years of 365 days.
const MaxDuration = 10 * 365 * 24 * time.Hour

// TTLExample ends the messages about durations that cannot be read.
const TTLExample = `use for example "30m", "1h30m", "7d", or "0s" to delete immediately`

var durationUnits = []struct {
	suffix byte
	unit   time.Duration
}{
	{'w', 7 * 24 * time.Hour},
	{'d', 24 * time.Hour},
	{'h', time.Hour},
	{'m', time.Minute},
	{'s', time.Second},
}

// Parse returns the duration, or never. It fails as ParseDuration does.
func (t TTL) Parse() (d time.Duration, never bool, err error) {
	if t == TTLNever || t == ttlNeverToo {
		return 0, true, nil
	}
	d, err = ParseDuration(string(t))
	return d, false, err
}

// ParseDuration reads whole numbers with the units w d h m s, each at most once and in that order: "7d", "1h30m", "0s". It
// fails for anything else and for more than MaxDuration; the error says what is wrong with the text, not which
// field it stands in.
func ParseDuration(s string) (time.Duration, error) {
	switch {
	case s == "":
		return 0, errors.New("must not be empty")
	case strings.HasPrefix(s, "-"):
		return 0, errors.New("must not be negative")
	}
	var total time.Duration
	next := 0
	for rest := s; rest != ""; {
		n, tail, err := leadingNumber(rest)
		if err != nil {
			return 0, err
		}
		if tail == "" {
			return 0, fmt.Errorf("needs a unit after %q: w, d, h, m or s", rest)
		}
		if word := leadingLetters(tail); len(word) > 1 {
			return 0, unknownUnit(word)
		}
		i, err := unitIndex(tail[0], next)
		if err != nil {
			return 0, err
		}
		unit := durationUnits[i].unit
		if n > int64(MaxDuration/unit) || total+time.Duration(n)*unit > MaxDuration {
			return 0, errors.New("must not be more than ten years (3650d)")
		}
		total += time.Duration(n) * unit
		next, rest = i+1, tail[1:]
	}
	return total, nil
}

// FormatDuration writes a duration as ParseDuration reads it: "7d", "1h30m". What is less than a second is left out.
func FormatDuration(d time.Duration) string {
	var out strings.Builder
	for _, u := range durationUnits[1:] { // "7d" says more to most people than "1w".
		if n := d / u.unit; n > 0 {
			fmt.Fprintf(&out, "%d%c", n, u.suffix)
			d -= n * u.unit
		}
	}
	return cmp.Or(out.String(), "0s")
}

// leadingNumber splits off the digits that s begins with. Numbers beyond any duration are cut to one that is still beyond.
func leadingNumber(s string) (n int64, rest string, err error) {
	i := 0
	for ; i < len(s) && '0' <= s[i] && s[i] <= '9'; i++ {
		n = min(n*10+int64(s[i]-'0'), int64(MaxDuration))
	}
	if i == 0 {
		return 0, "", fmt.Errorf("needs a number before %q", s)
	}
	return n, s[i:], nil
}

// leadingLetters are those that s begins with.
func leadingLetters(s string) string {
	return s[:len(s)-len(strings.TrimLeftFunc(s, unicode.IsLetter))]
}

// unitIndex finds a unit among durationUnits, which must not come before index from.
func unitIndex(suffix byte, from int) (int, error) {
	for i, u := range durationUnits {
		if u.suffix != suffix {
			continue
		}
		if i < from {
			return 0, errors.New("must have its units in the order w, d, h, m, s, each of them once")
		}
		return i, nil
	}
	return 0, unknownUnit(string(suffix))
}

func unknownUnit(unit string) error {
	switch unit {
	case " ":
		return errors.New("contains a space")
	case ".":
		return errors.New("must be made of whole numbers")
	}
	return fmt.Errorf("has the unknown unit %q; units are w, d, h, m and s", unit)
}
