// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/files"
)

const recipes = "../../../artifacts/recipes"

// TestRecipes: each recipe passes its test, and its test notices each change of the recipe.
func TestRecipes(t *testing.T) {
	tests, err := Find([]string{recipes})
	if err != nil {
		t.Fatal(err)
	}
	if len(tests) < 25 {
		t.Fatalf("found %d recipes", len(tests))
	}
	for _, test := range tests {
		t.Run(strings.TrimSuffix(filepath.Base(test), Suffix), func(t *testing.T) {
			r := Run(t.Context(), test)
			var s Summary
			if s.Add(r); s.Passed != 1 {
				var out bytes.Buffer
				s.Print(&out)
				t.Fatalf("%s", &out)
			}
			testMutants(t, test)
		})
	}
}

// testMutants runs a test with each mutant of its recipe. A mutant that the server would refuse does not count.
func testMutants(t *testing.T, test string) {
	recipe := strings.TrimSuffix(test, Suffix) + ".yaml"
	content, err := os.ReadFile(recipe)
	if err != nil {
		t.Fatal(err)
	}
	noticed := 0
	for _, m := range mutants(t, content) {
		r := run(t.Context(), test, func(path string) ([]byte, error) {
			if filepath.Clean(path) == filepath.Clean(recipe) {
				return m.content, nil
			}
			return os.ReadFile(path)
		})
		switch {
		case r.Error != "":
		case isIndifferent(filepath.Base(recipe), m.change):
		case r.Failed():
			noticed++
		default:
			t.Errorf("the test does not notice: %s", m.change)
		}
	}
	if noticed == 0 {
		t.Error("the test has noticed no change")
	}
}

// indifferent are values that no test of the recipe can notice.
var indifferent = map[string]string{
	"stop-everything.yaml": "spec.mode ",         // suspendAll applies in either mode.
	"ttl-annotation.yaml":  "spec.rules[0].ttl ", // The rule matches only objects whose annotation decides instead.
}

func isIndifferent(recipe, change string) bool {
	path := indifferent[recipe]
	return path != "" && strings.HasPrefix(change, path)
}

// TestRecipesAreListed: the list of recipes has each of them, and each has a test.
func TestRecipesAreListed(t *testing.T) {
	list, err := os.ReadFile(filepath.Join(recipes, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := filepath.Glob(filepath.Join(recipes, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		name := filepath.Base(path)
		if strings.HasSuffix(name, Suffix) {
			continue
		}
		if _, err := os.Stat(strings.TrimSuffix(path, ".yaml") + Suffix); err != nil {
			t.Errorf("%s has no test: %v", name, err)
		}
		if !bytes.Contains(list, []byte("]("+name+")")) {
			t.Errorf("the list does not have %s", name)
		}
	}
	if links := bytes.Count(list, []byte(".yaml)")); links*2 != len(all) {
		t.Errorf("the list has %d recipes, and there are %d files", links, len(all))
	}
}

// mutant is a file with one change.
type mutant struct {
	change  string
	content []byte
}

// howNotWhat are the fields that say how objects are deleted, and not which and when. Tests of policies do not see them.
var howNotWhat = []string{
	"propagationPolicy", "maxDeletionsPerMinute", "holdAbove", "keepCopy", "serviceAccountName", "activeDeadline",
}

// mutants returns a mutant for each value in the policies and lifecycles of a file, and one without each rule.
func mutants(t *testing.T, content []byte) []mutant {
	t.Helper()
	encoded, err := files.Documents(content)
	if err != nil {
		t.Fatal(err)
	}
	var documents []map[string]any
	for _, e := range encoded {
		var document map[string]any
		if err := json.Unmarshal(e, &document); err != nil {
			t.Fatal(err)
		}
		documents = append(documents, document)
	}
	var out []mutant
	keep := func(change string) {
		var all [][]byte
		for _, d := range documents {
			e, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, e)
		}
		out = append(out, mutant{change, bytes.Join(all, []byte("\n---\n"))})
	}
	for _, d := range documents {
		if strings.HasPrefix(fmt.Sprint(d["apiVersion"]), v1alpha1.GroupName+"/") {
			mutate("spec", d["spec"], func(v any) { d["spec"] = v }, keep)
		}
	}
	return out
}

// mutate changes each value below a path in turn, and calls keep with what has changed.
func mutate(path string, value any, set func(any), keep func(change string)) {
	key := path[strings.LastIndex(path, ".")+1:]
	try := func(other any) {
		set(other)
		keep(fmt.Sprintf("%s is %v instead of %v", path, other, value))
		set(value)
	}
	switch v := value.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if !slices.Contains(howNotWhat, k) && (k != "name" || !strings.Contains(path, "matchConditions")) {
				mutate(path+"."+k, v[k], func(other any) { v[k] = other }, keep)
			}
		}
	case []any:
		for i := range v {
			if key == "rules" || len(v) > 1 {
				set(slices.Delete(slices.Clone(v), i, i+1))
				keep(fmt.Sprintf("%s[%d] is missing", path, i))
				set(value)
			}
			mutate(fmt.Sprintf("%s[%d]", path, i), v[i], func(other any) { v[i] = other }, keep)
		}
	case bool:
		try(!v)
	case float64:
		try(2 * v)
	case string:
		try(other(key, v))
	}
}

// opposites are the other values of fields with few values.
var opposites = map[string]map[string]string{
	"mode":             {"Enforce": "Preview", "Preview": "Enforce"},
	"outcome":          {"Failed": "Succeeded", "Succeeded": "Failed"},
	"after":            {"Created": "Finished", "Unused": "Created"},
	"noticeDelivery":   {"Required": "BestEffort"},
	"dependents":       {"AfterOwnerFinished": "WithOwner", "Independent": "LeaveToOwner"},
	"annotationTTL":    {"ExtendOnly": "Any", "Any": "ExtendOnly", "Ignore": "ExtendOnly"},
	"per":              {"Owner": "Namespace"},
	"onTimeout":        {"Keep": "Delete", "Delete": "Keep"},
	"managedElsewhere": {"Delete": "Hold"},
	"operator":         {"Exists": "DoesNotExist", "DoesNotExist": "Exists"},
}

// other returns another value of a field.
func other(key, value string) string {
	switch {
	case opposites[key][value] != "":
		return opposites[key][value]
	case key == "expression", key == "when", key == "succeeded":
		return "!(" + value + ")"
	case key == "at":
		return "timestamp('2026-01-01T00:00:00Z')"
	case strings.HasPrefix(key, "resources"):
		return "things.example.com"
	case value == "never":
		return "7d"
	}
	if d, err := gc.ParseDuration(value); err == nil {
		return fmt.Sprintf("%ds", int64((d+time.Hour)/time.Second))
	}
	return value + "x"
}
