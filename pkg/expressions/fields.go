// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package expressions

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// fieldsOf returns the paths of the object that an expression reads. A path ends where the expression does more with a value than to select
// a field of it, for example where it takes an element of a list or a key that is not constant. All below the path counts as read.
func fieldsOf(e ast.Expr) [][]string {
	var read [][]string
	collect(e, &read)
	return Union(read)
}

func collect(e ast.Expr, read *[][]string) {
	if path, ok := pathOf(e); ok {
		*read = append(*read, path)
		return
	}
	for _, child := range children(e) {
		collect(child, read)
	}
}

// pathOf returns the path of an expression that only selects fields of the object, one after the other. The variable of a macro may hide
// the object, which is still read as .object there. A path that is read of such a variable is returned too, which does no harm.
func pathOf(e ast.Expr) ([]string, bool) {
	operand, key, ok := selected(e)
	if !ok {
		return []string{}, e.Kind() == ast.IdentKind && strings.TrimPrefix(e.AsIdent(), ".") == variable
	}
	path, ok := pathOf(operand)
	return append(path, key), ok
}

// selected returns the operand and the key of an expression that selects a field by a constant key: a.b, has(a.b), a["b"], a.?b, a[?"b"].
func selected(e ast.Expr) (operand ast.Expr, key string, ok bool) {
	switch e.Kind() { //nolint:exhaustive // No other kind selects a field.
	case ast.SelectKind:
		s := e.AsSelect()
		return s.Operand(), s.FieldName(), true
	case ast.CallKind:
		c := e.AsCall()
		switch c.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
		default:
			return nil, "", false
		}
		if args := c.Args(); len(args) == 2 && args[1].Kind() == ast.LiteralKind {
			key, ok := args[1].AsLiteral().(types.String)
			return args[0], string(key), ok
		}
	}
	return nil, "", false
}

// readsOf returns the paths of the object that an expression reads, those within the elements of lists too: a path leads through a list
// into its elements, by index or by the variable of a macro. What else an expression does with a value is not followed.
func readsOf(e ast.Expr) [][]string {
	var read [][]string
	follow(e, map[string][]string{variable: {}, "." + variable: {}}, &read)
	return read
}

// follow adds the paths that an expression reads. variables has the paths of the variables that stand for a part of the object.
func follow(e ast.Expr, variables map[string][]string, read *[][]string) {
	if path, ok := pathIn(e, variables); ok {
		*read = append(*read, path)
		return
	}
	for _, child := range children(e) {
		if e.Kind() != ast.ComprehensionKind {
			follow(child, variables, read)
		}
	}
	if e.Kind() != ast.ComprehensionKind {
		return
	}
	c, inner := e.AsComprehension(), maps.Clone(variables)
	delete(inner, c.IterVar())
	delete(inner, c.IterVar2())
	element := c.IterVar()
	if c.HasIterVar2() {
		element = c.IterVar2()
	}
	if path, ok := pathIn(c.IterRange(), variables); ok {
		inner[element] = path
	}
	follow(c.IterRange(), variables, read)
	for _, part := range []ast.Expr{c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()} {
		follow(part, inner, read)
	}
}

// pathIn is pathOf, with variables and through the elements of lists.
func pathIn(e ast.Expr, variables map[string][]string) ([]string, bool) {
	if e.Kind() == ast.IdentKind {
		path, ok := variables[e.AsIdent()]
		return path, ok
	}
	if operand, key, ok := selected(e); ok {
		path, ok := pathIn(operand, variables)
		return append(slices.Clone(path), key), ok
	}
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Index && e.AsCall().Args()[1].Kind() == ast.LiteralKind {
		return pathIn(e.AsCall().Args()[0], variables)
	}
	return nil, false
}

func children(e ast.Expr) []ast.Expr {
	switch e.Kind() { //nolint:exhaustive // The other kinds have no children.
	case ast.SelectKind:
		return []ast.Expr{e.AsSelect().Operand()}
	case ast.CallKind:
		c := e.AsCall()
		if c.IsMemberFunction() {
			return append([]ast.Expr{c.Target()}, c.Args()...)
		}
		return c.Args()
	case ast.ListKind:
		return e.AsList().Elements()
	case ast.MapKind:
		var out []ast.Expr
		for _, entry := range e.AsMap().Entries() {
			out = append(out, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
		return out
	case ast.StructKind:
		var out []ast.Expr
		for _, field := range e.AsStruct().Fields() {
			out = append(out, field.AsStructField().Value())
		}
		return out
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		return []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()}
	}
	return nil
}

// Union returns the sorted paths that cover all of sets: each path once, and none below another. The path of the whole object is empty.
func Union(sets ...[][]string) [][]string {
	all := slices.Concat(sets...)
	slices.SortFunc(all, slices.Compare)
	var out [][]string
	for _, path := range all {
		if len(out) == 0 || !covers(out[len(out)-1], path) {
			out = append(out, slices.Clone(path))
		}
	}
	return out
}

// InMetadata reports whether a path is in what the API server serves as the metadata of an object.
func InMetadata(path []string) bool {
	return len(path) > 0 && slices.Contains([]string{"apiVersion", "kind", "metadata"}, path[0])
}

// covers reports whether path is a, or below it.
func covers(a, path []string) bool {
	return len(a) <= len(path) && slices.Equal(a, path[:len(a)])
}

// Overlap reports whether a field is in one of these paths, or has one of them in it.
func Overlap(paths [][]string, field ...string) bool {
	return slices.ContainsFunc(paths, func(path []string) bool { return covers(path, field) || covers(field, path) })
}
