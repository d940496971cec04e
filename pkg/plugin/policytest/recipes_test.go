// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
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
	if len(tests) < 50 {
		t.Fatalf("found %d tests", len(tests))
	}
	noticed, refused := 0, 0
	for _, test := range tests {
		t.Run(strings.TrimSuffix(filepath.Base(test), Suffix), func(t *testing.T) {
			r := Run(t.Context(), test)
			var s Summary
			if s.Add(r); s.Passed != 1 {
				var out bytes.Buffer
				s.Print(&out)
				t.Fatalf("%s", &out)
			}
			n, no := testMutants(t, test)
			noticed, refused = noticed+n, refused+no
		})
	}
	t.Logf("%d changes are noticed, and %d are refused", noticed, refused)
	if refused > noticed/10 {
		t.Errorf("%d changes are refused, so only %d test anything", refused, noticed)
	}
}

// testMutants runs a test with each mutant of its recipe, and returns how many the test has noticed, and how many the server would refuse.
// A test of several recipes together has none of its name.
func testMutants(t *testing.T, test string) (noticed, refused int) {
	recipe := recipeOf(test)
	content, err := os.ReadFile(recipe)
	if errors.Is(err, os.ErrNotExist) {
		return 0, 0
	} else if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants(t, content) {
		r := run(t.Context(), test, func(path string) ([]byte, error) {
			if filepath.Clean(path) == filepath.Clean(recipe) {
				return m.content, nil
			}
			return os.ReadFile(path)
		})
		switch {
		case strings.Contains(r.Error, " is invalid: "):
			refused++
			t.Logf("refused: %s: %s", m.change, r.Error)
		case r.Error != "":
			t.Errorf("with %s: %s", m.change, r.Error)
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
	return noticed, refused
}

// recipeOf returns the recipe of a test.
func recipeOf(test string) string {
	return filepath.Join(recipes, strings.TrimSuffix(filepath.Base(test), Suffix)+".yaml")
}

// indifferent are values that no test of the recipe can notice.
var indifferent = map[string][]string{
	"stop-everything.yaml": {"spec.mode "}, // suspendAll applies in either mode.
	// The rules match only objects whose annotation decides instead.
	"ttl-annotation.yaml": {"spec.rules[0].ttl ", "spec.rules[1].ttl "},
	// A test with 12,500 Pods would be long. It has a smaller ceiling of its own.
	"fair-ceiling.yaml": {"spec.guardrails.ceilings[0].maxObjects "},
}

func isIndifferent(recipe, change string) bool {
	return slices.ContainsFunc(indifferent[recipe], func(path string) bool { return strings.HasPrefix(change, path) })
}

// TestRecipesAreListed: the list has each recipe, in the words of the recipe itself, and each has a test.
func TestRecipesAreListed(t *testing.T) {
	list, err := os.ReadFile(filepath.Join(recipes, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := filepath.Glob(filepath.Join(recipes, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| \[[a-z0-9-]+\]\(([a-z0-9-]+\.yaml)\) \| (.*) \|$`).FindAllSubmatch(list, -1) {
		rows[string(row[1])] = withoutLinks(string(row[2]))
	}
	for _, path := range all {
		name := filepath.Base(path)
		if _, err := os.Stat(filepath.Join(recipes, "tests", strings.TrimSuffix(name, ".yaml")+Suffix)); err != nil {
			t.Errorf("%s has no test: %v", name, err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if row, comment := rows[name], commentOf(string(content)); row != comment {
			t.Errorf("the list says about %s\n%q, and the recipe itself\n%q", name, row, comment)
		}
	}
	if len(rows) != len(all) {
		t.Errorf("the list has %d recipes, and there are %d", len(rows), len(all))
	}
}

// withoutLinks returns text with the words of its links.
func withoutLinks(text string) string {
	return regexp.MustCompile(`\[([^]]+)\]\([^)]+\)`).ReplaceAllString(text, "$1")
}

// commentOf returns the first comment of a recipe after its licence, as one line.
func commentOf(recipe string) string {
	_, rest, _ := strings.Cut(recipe, "\n\n")
	var out []string
	for line := range strings.Lines(rest) {
		text, ok := strings.CutPrefix(strings.TrimSpace(line), "#")
		if !ok {
			break
		}
		out = append(out, strings.TrimSpace(text))
	}
	return strings.Join(out, " ")
}

// TestRecipesTogether: recipes have names of their own, so that none takes the place of another one in the same namespace or cluster.
func TestRecipesTogether(t *testing.T) {
	all, err := filepath.Glob(filepath.Join(recipes, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	l := &loaded{Test: &Test{Namespace: "team-a"}}
	for _, path := range all {
		if err := l.addFile(t.Context(), path, os.ReadFile); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := l.Complete("team-a"); err != nil {
		t.Error(err)
	}
}

// mutant is a file with one change.
type mutant struct {
	change  string
	content []byte
}

// howNotWhat are the fields that say how objects are deleted, and not which and when. Tests of policies do not see them.
var howNotWhat = []string{
	"propagationPolicy", "maxDeletionsPerMinute", "holdAbove", "keepCopy", "serviceAccountName",
}

// scopes are the fields that say what a rule or policy is about, and their values for everything; nil is none. With these, more would be
// deleted.
var scopes = map[string]any{"selector": nil, "matchConditions": nil, "namespaceSelector": map[string]any{}}

// mutants returns a mutant for each value in the policies and lifecycles of a file, and for each label of its Namespaces, and one without
// each rule and without each scope.
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
		if m, ok := d["metadata"].(map[string]any); ok && d["kind"] == "Namespace" {
			without("metadata.labels", m, "labels", nil, keep)
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
			if all, ok := scopes[k]; ok && !reflect.DeepEqual(v[k], all) {
				without(path+"."+k, v, k, all, keep)
			}
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
		step := 1.0
		if strings.HasPrefix(key, "percent") {
			step = v / 2
		}
		if try(v + step); v > step {
			try(v - step)
		}
	case string:
		try(other(key, v))
	}
}

// without calls keep with what has no scope, or the scope that has everything.
func without(path string, in map[string]any, key string, everything any, keep func(change string)) {
	before := in[key]
	if in[key] = everything; everything == nil {
		delete(in, key)
	}
	keep(path + " is missing")
	in[key] = before
}

// opposites are the other values of fields with few values.
var opposites = map[string]map[string]string{
	"mode":             {"Enforce": "Preview", "Preview": "Enforce"},
	"outcome":          {"Failed": "Succeeded", "Succeeded": "Failed"},
	"after":            {"Created": "Finished", "Matched": "Created", "Unused": "Created"},
	"noticeDelivery":   {"Required": "BestEffort"},
	"dependents":       {"AfterOwnerFinished": "WithOwner", "OnceCounted": "AfterOwnerFinished", "Independent": "LeaveToOwner"},
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
