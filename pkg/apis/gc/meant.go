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
		n, _ := strconv.Atoi(number) // It consists of at most four digits.
		return fmt.Sprintf("%dd", n*daysOf[part[len(number):]])
	})
	if _, _, err := TTL(text).Parse(); err != nil {
		return ""
	}
	return TTL(text)
}
