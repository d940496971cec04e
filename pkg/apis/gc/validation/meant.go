// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/agnivade/levenshtein"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var quoted = regexp.MustCompile(`"([^"]+)"`)

// DidYouMean adds "did you mean ...?" to the errors about values that are similar to a supported one: "enforce", "Previw", "Fail".
func DidYouMean(errs field.ErrorList) field.ErrorList {
	for _, err := range errs {
		if err.Type != field.ErrorTypeNotSupported {
			continue
		}
		supported, _, _ := strings.Cut(err.Detail, ";") // The rest is advice.
		var words []string
		for _, value := range quoted.FindAllStringSubmatch(supported, -1) {
			words = append(words, value[1])
		}
		if word := Nearest(fmt.Sprint(err.BadValue), words); word != "" {
			err.Detail += fmt.Sprintf("; did you mean %q?", word)
		}
	}
	return errs
}

// Nearest returns the word that a text was probably meant to be; empty if none is similar.
func Nearest(text string, words []string) string {
	nearest, least := "", 0
	for _, word := range words {
		distance := levenshtein.ComputeDistance(strings.ToLower(text), strings.ToLower(word))
		if near(text, word) && (nearest == "" || distance < least) {
			nearest, least = word, distance
		}
	}
	return nearest
}

// near reports whether a text differs from a word only in case, in a letter or two, or in its end.
func near(text, word string) bool {
	const start, stem, typos = 3, 5, 2
	text, word = strings.ToLower(text), strings.ToLower(word)
	beginning := len(text) >= start && (strings.HasPrefix(word, text) || strings.HasPrefix(text, word))
	ending := len(text) >= stem && len(word) >= stem && text[:stem] == word[:stem]
	return beginning || ending || levenshtein.ComputeDistance(text, word) <= min(typos, len(word)/start)
}
