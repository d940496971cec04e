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

// DidYouMean asks so about each value that is nearly a supported one: "enforce", "Previw", "Fail".
func DidYouMean(errs field.ErrorList) field.ErrorList {
	for _, err := range errs {
		if err.Type != field.ErrorTypeNotSupported {
			continue
		}
		supported, _, _ := strings.Cut(err.Detail, ";") // Behind it is advice.
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

// Nearest is the word that a text was probably meant to be; empty where none is near.
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

// near reports whether a text is a word but for its case, a letter or two, or its end.
func near(text, word string) bool {
	const start, stem, typos = 3, 5, 2
	text, word = strings.ToLower(text), strings.ToLower(word)
	beginning := len(text) >= start && (strings.HasPrefix(word, text) || strings.HasPrefix(text, word))
	ending := len(text) >= stem && len(word) >= stem && text[:stem] == word[:stem]
	return beginning || ending || levenshtein.ComputeDistance(text, word) <= min(typos, len(word)/start)
}
