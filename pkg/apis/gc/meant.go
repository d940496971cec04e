// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	letters   = regexp.MustCompile(`[a-z]+`)
	longUnits = regexp.MustCompile(`([0-9]{1,4})(y|mo)`)
)

// unitWords are the units of durations as people write them out, without the s of the plural. Months and years are none of ours.
var unitWords = map[string]string{
	"week": "w", "wk": "w", "day": "d", "hour": "h", "hr": "h", "minute": "m", "min": "m", "second": "s", "sec": "s",
	"month": "mo", "year": "y", "yr": "y",
}

// daysOf are the days of the units that we do not have.
var daysOf = map[string]int{"mo": 30, "y": 365}

// Meant is what a text that cannot be read was probably meant to be, as "1 Hour" is 1h and "1 month" is 30d; empty where that is not
// clear.
func (t TTL) Meant() TTL {
	text := strings.ToLower(strings.Join(strings.Fields(string(t)), ""))
	switch text {
	case "forever":
		return TTLNever
	case "0":
		return "0s"
	}
	text = letters.ReplaceAllStringFunc(text, func(word string) string {
		if unit, ok := unitWords[strings.TrimSuffix(word, "s")]; ok {
			return unit
		}
		return word
	})
	text = longUnits.ReplaceAllStringFunc(text, func(part string) string {
		number := strings.TrimRight(part, "moy")
		n, _ := strconv.Atoi(number) // It has but digits, and few.
		return fmt.Sprintf("%dd", n*daysOf[part[len(number):]])
	})
	if _, _, err := TTL(text).Parse(); err != nil {
		return ""
	}
	return TTL(text)
}
