// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// conditions are all expressions that occur in match conditions and in waitFor, with what they mean.
var conditions = map[string]func(name string, labels labels.Set) (matches, failed bool){
	"object.metadata.name.endsWith('1')": func(name string, _ labels.Set) (bool, bool) { return strings.HasSuffix(name, "1"), false },
	"object.metadata.name < 'o20'":       func(name string, _ labels.Set) (bool, bool) { return name < "o20", false },
	"object.metadata.labels.app == 'x'": func(_ string, labels labels.Set) (bool, bool) {
		app, ok := labels["app"]
		return app == "x", !ok
	},
	"!has(object.metadata.labels.run)": func(_ string, labels labels.Set) (bool, bool) {
		return !labels.Has("run"), len(labels) == 0
	},
	"object.metadata.?labels[?'archived'].orValue('') == 'true'": func(_ string, labels labels.Set) (bool, bool) {
		return labels["archived"] == "true", false
	},
	"object.metadata.labels.archived == 'true'": func(_ string, labels labels.Set) (bool, bool) {
		return labels["archived"] == "true", !labels.Has("archived")
	},
}

// drawnConditions are the expressions of conditions.
var drawnConditions = []string{
	"object.metadata.name.endsWith('1')", "object.metadata.name < 'o20'", "object.metadata.labels.app == 'x'",
	"!has(object.metadata.labels.run)",
}

// Content returns an object as expressions see it.
func Content(f *lifecycle.Fact) map[string]any {
	metadata := map[string]any{"name": f.Name}
	if set := f.Labels.(labels.Set); len(set) > 0 {
		all := map[string]any{}
		for key, value := range set {
			all[key] = value
		}
		metadata["labels"] = all
	}
	return map[string]any{"metadata": metadata}
}

// meetsConditions reports whether an object meets all match conditions of a rule. One that is false decides, and otherwise one that failed.
func meetsConditions(r gc.CleanupRule, f *lifecycle.Fact) (meets, failed bool) {
	for _, c := range r.MatchConditions {
		matches, fails := conditions[c.Expression](f.Name, f.Labels.(labels.Set))
		if !matches && !fails {
			return false, false
		}
		failed = failed || fails
	}
	return !failed, failed
}
