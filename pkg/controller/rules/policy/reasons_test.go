// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// declared returns the constants of type Reason by name.
func declared(t *testing.T) map[string]policy.Reason {
	t.Helper()
	out := map[string]policy.Reason{"ReasonPolicyUnreadable": gc.ReasonUnreadable} // This is the only one that is not a literal.
	file, err := parser.ParseFile(token.NewFileSet(), "reasons.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Reason") || len(spec.Values) != 1 {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			out[spec.Names[0].Name] = policy.Reason(value)
		}
		return true
	})
	return out
}

// TestReasonsAreAll: a reason that is missing from Reasons has no code, so a record could not store it.
func TestReasonsAreAll(t *testing.T) {
	want := sets.New(policy.Reasons...).Insert(policy.ReasonThrottled, policy.ReasonAnnotationIgnored)
	got := sets.New[policy.Reason]()
	for name, reason := range declared(t) {
		got.Insert(reason)
		if name != "Reason"+string(reason) {
			t.Errorf("%s is %q", name, reason)
		}
	}
	if !got.Equal(want) {
		t.Errorf("declared, but not in Reasons: %q; the other way round: %q", sets.List(got.Difference(want)), sets.List(want.Difference(got)))
	}
	if len(policy.Reasons) != len(sets.New(policy.Reasons...)) {
		t.Error("Reasons names one twice")
	}
}

// TestReasonsAreDocumented: kubectl explain cand.status.reason has each reason.
func TestReasonsAreDocumented(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../../apis/gc/v1alpha1/cleanupcandidate.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var documented sets.Set[string]
	ast.Inspect(file, func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok && len(f.Names) == 1 && f.Names[0].Name == "Reason" {
			documented = sets.New(strings.FieldsFunc(f.Doc.Text(), func(r rune) bool { return !unicode.IsLetter(r) })...)
		}
		return true
	})
	for _, reason := range policy.Reasons {
		if !documented.Has(string(reason)) {
			t.Errorf("the doc of CleanupCandidateStatus.Reason lacks %s", reason)
		}
	}
}

// TestReasonsHaveExamples: each reason is in a case of docs/semantics.md. Reasons that depend on earlier events, not on the state of the
// cluster, are in a test of the engine: as an argument of decided, or in a row of a table.
func TestReasonsHaveExamples(t *testing.T) {
	found := sets.New[policy.Reason]()
	cases, err := model.Cases()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		for _, a := range c.Answers {
			found.Insert(policy.Reason(a.Reason))
		}
	}
	reasons := declared(t)
	for _, name := range engineTests(t) {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, reason := range expectedReasons(file) {
			found.Insert(reasons[reason])
		}
	}
	for _, reason := range policy.Reasons {
		if !found.Has(reason) {
			t.Errorf("%s: no case of pkg/controller/internal/model/testdata/cases and no test of the engine expects it", reason)
		}
	}
}

func engineTests(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, pkg := range []string{"../deletion", "../../engine", "../../tracker"} {
		names, err := filepath.Glob(pkg + "/*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, names...)
	}
	return out
}

// expectedReasons returns the names of constants like policy.ReasonHeld that are arguments of decided or stand in a table.
func expectedReasons(file *ast.File) []string {
	var out []string
	add := func(expressions []ast.Expr) {
		for _, e := range expressions {
			if pair, ok := e.(*ast.KeyValueExpr); ok {
				e = pair.Value
			}
			if constant, ok := e.(*ast.SelectorExpr); ok && strings.HasPrefix(constant.Sel.Name, "Reason") {
				out = append(out, constant.Sel.Name)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			add(n.Elts)
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "decided" {
				add(n.Args)
			}
		}
		return true
	})
	return out
}
