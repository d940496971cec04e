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

// TTL is how long to keep something: a duration for ParseDuration, or "never" (or "Never"). It is stored as written.
type TTL string

// TTLNever keeps forever. So does ttlNeverToo, because Kubernetes writes such values with a capital letter.
const (
	TTLNever    TTL = "never"
	ttlNeverToo TTL = "Never"
)

// MaxDuration is the longest duration of the API: ten years of 365 days.
const MaxDuration = 10 * 365 * 24 * time.Hour

// MaxNotice is the longest notice: it must not keep objects for long that somebody wants deleted, for example by a shorter TTL.
const MaxNotice = 30 * 24 * time.Hour

// MaxKeepCopy is for how long a copy of a deleted object may be kept: while there is no room for more copies, objects are kept that a
// ceiling or maxTTL wants deleted.
const MaxKeepCopy = 90 * 24 * time.Hour

// TTLExample is the end of messages about invalid durations.
const TTLExample = `use for example "30m", "1h30m", "7d", or "0s" to delete immediately`

type durationUnit struct {
	suffix byte
	unit   time.Duration
}

var durationUnits = []durationUnit{
	{'w', 7 * 24 * time.Hour},
	{'d', 24 * time.Hour},
	{'h', time.Hour},
	{'m', time.Minute},
	{'s', time.Second},
}

// Parse returns the duration, or never. It returns the errors of ParseDuration.
func (t TTL) Parse() (d time.Duration, never bool, err error) {
	if t == TTLNever || t == ttlNeverToo {
		return 0, true, nil
	}
	d, err = ParseDuration(string(t))
	return d, false, err
}

// ParseDuration parses whole numbers with the units w d h m s, each at most once and in this order: "7d", "1h30m", "0s". More than
// MaxDuration is an error. The error describes the text, and does not name the field.
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

// WholeSecond rounds a time up to a second, the precision of times in the API. A time that is shown is never before the real one.
func WholeSecond(t time.Time) time.Time {
	if down := t.Truncate(time.Second); down.Before(t) {
		return down.Add(time.Second)
	}
	return t
}

// FormatDuration formats a duration for ParseDuration, in whole seconds: "7d", "1h30m".
func FormatDuration(d time.Duration) string {
	var out strings.Builder
	for _, u := range durationUnits[1:] { // "7d" is easier to read than "1w".
		if n := d / u.unit; n > 0 {
			fmt.Fprintf(&out, "%d%c", n, u.suffix)
			d -= n * u.unit
		}
	}
	return cmp.Or(out.String(), "0s")
}

// leadingNumber splits off the digits at the beginning of s. Numbers that would overflow are cut to one that is still too large.
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

// leadingLetters returns the letters at the beginning of s.
func leadingLetters(s string) string {
	return s[:len(s)-len(strings.TrimLeftFunc(s, unicode.IsLetter))]
}

// unitIndex returns the index of a unit in durationUnits, which must be at least from.
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
