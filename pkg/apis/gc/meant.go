// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	letters   = regexp.MustCompile(`[a-z]+`)
	longUnits = regexp.MustCompile(`([0-9]{1,4})(y|mo)`)
	iso8601   = regexp.MustCompile(`^p((?:[0-9]+[ymwd])*)(?:t((?:[0-9]+[hms])+))?$`)

	durationPart  = regexp.MustCompile(`[0-9]+[wdhms]`)
	durationParts = regexp.MustCompile(`^([0-9]+[wdhms])+$`)
)

// unitWords are the names of units, without the s of the plural. The API has no months and years; see daysOf.
var unitWords = map[string]string{
	"week": "w", "wk": "w", "day": "d", "hour": "h", "hr": "h", "minute": "m", "min": "m", "second": "s", "sec": "s",
	"month": "mo", "year": "y", "yr": "y",
}

// daysOf is the number of days of the units that the API does not have.
var daysOf = map[string]int{"mo": 30, "y": 365}

// Meant returns the TTL that an invalid text was probably meant to be: 1h for "1 Hour", 30d for "1 month". It is empty if that is not
// clear.
func (t TTL) Meant() TTL {
	text := strings.ToLower(strings.Join(strings.Fields(string(t)), ""))
	switch text {
	case "forever", "none", "infinite", "infinity", "unlimited":
		return TTLNever
	case "0":
		return "0s"
	}
	text = fromISO8601(text)
	text = letters.ReplaceAllStringFunc(text, func(word string) string {
		if unit, ok := unitWords[strings.TrimSuffix(word, "s")]; ok {
			return unit
		}
		return word
	})
	text = longUnits.ReplaceAllStringFunc(text, func(part string) string {
		number := strings.TrimRight(part, "moy")
		n, _ := strconv.Atoi(number) // It consists of at most four digits.
		return fmt.Sprintf("%dd", n*daysOf[part[len(number):]])
	})
	text = inOrder(text)
	if _, _, err := TTL(text).Parse(); err != nil {
		return ""
	}
	return TTL(text)
}

// MeantTime returns the time, as RFC 3339 has it, that a text was probably meant to be: 2030-01-31T00:00:00Z for "2030-01-31". It is empty
// if that is not clear.
func MeantTime(text string) string {
	text = strings.ToUpper(strings.TrimSpace(text))
	for _, layout := range []string{
		time.RFC3339, time.DateOnly, time.DateTime, "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02 15:04",
	} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.Format(time.RFC3339)
		}
	}
	return ""
}

// fromISO8601 returns "1d2h" for "p1dt2h", and any other text as it is. Before the t, m is for months.
func fromISO8601(text string) string {
	parts := iso8601.FindStringSubmatch(text)
	if parts == nil {
		return text
	}
	return strings.ReplaceAll(parts[1], "m", "mo") + parts[2]
}

// inOrder sorts the parts of a duration by their units: "30d12h" for "12h30d". It returns any other text as it is.
func inOrder(text string) string {
	if !durationParts.MatchString(text) {
		return text
	}
	parts := durationPart.FindAllString(text, -1)
	slices.SortStableFunc(parts, func(a, b string) int {
		return cmp.Compare(unitOrder(a), unitOrder(b))
	})
	return strings.Join(parts, "")
}

func unitOrder(part string) int {
	return slices.IndexFunc(durationUnits, func(u durationUnit) bool { return u.suffix == part[len(part)-1] })
}
