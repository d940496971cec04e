// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expressions compiles and evaluates CEL over one variable, object. The environment and the errors are the same as for the match
// conditions of a ValidatingAdmissionPolicy, so that an expression means the same in both. It may cost less, see NewObject.
package expressions

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/utils/lru"
)

// variable is the name of the object in expressions.
const variable = "object"

// Result is what an expression must evaluate to.
type Result int

const (
	// Bool is true or false.
	Bool Result = iota
	// Condition is true or false too. It is for match conditions, and may cost less.
	Condition
	// Time is a timestamp, an RFC 3339 string, or null if the time is not known.
	Time
	// Duration is a duration, a number of seconds, a string such as "1h", or null if there is none.
	Duration
	// Names is a string, null, or a list or an object with such values in it, however deep.
	Names
)

// returnTypes are the types that an expression may have when it is compiled. A field of the object has the type dyn, because the schema is
// not known. It is allowed where several types are, and its value is checked when the expression is evaluated.
var returnTypes = map[Result][]*cel.Type{
	Bool:      {cel.BoolType},
	Condition: {cel.BoolType},
	Time:      {cel.TimestampType, cel.StringType, cel.DynType, cel.NullType},
	Duration:  {cel.DurationType, cel.IntType, cel.UintType, cel.DoubleType, cel.StringType, cel.DynType, cel.NullType},
	Names:     {cel.StringType, cel.ListType(cel.StringType), cel.DynType, cel.NullType}, // See nameKinds.
}

// nameKinds are the kinds of types that Names may have.
var nameKinds = []types.Kind{types.StringKind, types.NullTypeKind, types.DynKind, types.ListKind, types.MapKind}

// environments returns the environments for new and for stored expressions. They are built when they are first needed, because that takes
// some milliseconds.
var environments = sync.OnceValues(func() (*environment.EnvSet, error) {
	return environmentsOver(cel.DynType)
})

// environmentsOver returns the environments in which the object has a type, which consists of the declared types.
func environmentsOver(object *cel.Type, declared ...*apiservercel.DeclType) (*environment.EnvSet, error) {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0), // The variable is always there.
		EnvOptions:        append(meterOptions(), cel.Variable(variable, object)),
		DeclTypes:         declared,
	}, environment.StrictCostOpt)
}

// Expression is a compiled expression. Several goroutines may evaluate it at the same time.
type Expression struct {
	text    string
	result  Result
	program cel.Program
	fields  [][]string
	reads   [][]string
	slots   []slot // of metered arguments
}

// New compiles an expression that a user writes. It accepts only what the previous minor version of Kubernetes knows as well, so that a
// rollback can still read the expression.
func New(text string, result Result) (*Expression, error) {
	return compile(text, result, environment.NewExpressions)
}

// Stored compiles an expression that was accepted before. The same expression is mostly compiled again and again, with each new state of
// the status of its policy, so the last ones are remembered.
func Stored(text string, result Result) (*Expression, error) {
	key := storedKey{text, result}
	if known, ok := stored.Get(key); ok {
		return known.(*Expression), nil
	}
	e, err := compile(text, result, environment.StoredExpressions)
	if err == nil {
		stored.Add(key, e)
	}
	return e, err
}

// stored are the expressions that Stored has compiled last. Each has some 10 kB.
var stored = lru.New(1000)

type storedKey struct {
	text   string
	result Result
}

func compile(text string, result Result, from environment.Type) (*Expression, error) {
	set, err := environments()
	if err != nil {
		return nil, fmt.Errorf("environment misconfigured: %w", err)
	}
	env, err := set.Env(from)
	if err != nil {
		return nil, err
	}
	parsed, issues := env.Parse(text)
	if issues != nil {
		return nil, errors.New("compilation failed: " + issues.String())
	}
	if err := checkPatterns(parsed.NativeRep()); err != nil {
		return nil, fmt.Errorf("compilation failed: %w", err)
	}
	ast, issues := env.Check(parsed)
	if issues != nil {
		return nil, errors.New("compilation failed: " + withHint(issues.String()))
	}
	if err := checkType(ast.OutputType(), result); err != nil {
		return nil, err
	}
	e := &Expression{text: text, result: result, fields: fieldsOf(ast.NativeRep().Expr()), reads: readsOf(ast.NativeRep().Expr())}
	e.slots = meterCalls(ast.NativeRep())
	e.program, err = env.Program(ast, cel.CostLimit(budgetOf(result)), cel.CostTracking(costs{}))
	if err != nil {
		return nil, fmt.Errorf("program instantiation failed: %w", err)
	}
	return e, nil
}

// withHint adds to the error about an unknown name what there is instead: there is no clock, and the fields of the object belong to a
// variable.
func withHint(issues string) string {
	if strings.Contains(issues, "undeclared reference to 'now'") {
		return "expressions cannot read the time; the TTL of a rule says how long an object is kept: " + issues
	}
	for _, field := range []string{"apiVersion", "kind", "metadata", "spec", "status"} {
		if strings.Contains(issues, "undeclared reference to '"+field+"'") {
			return fmt.Sprintf("did you mean %s.%s? %s", variable, field, issues)
		}
	}
	return issues
}

// checkType returns an error if no value of the type can be a result. The message is the same as for a ValidatingAdmissionPolicy.
func checkType(got *cel.Type, result Result) error {
	allowed := returnTypes[result]
	switch {
	case result == Names && slices.Contains(nameKinds, got.Kind()):
		return nil
	case slices.ContainsFunc(allowed, got.IsExactType):
		return nil
	case len(allowed) == 1:
		return fmt.Errorf("must evaluate to %v but got %v", allowed[0], got)
	}
	return fmt.Errorf("must evaluate to one of %v but got %v", allowed, got)
}

// String returns the expression as written.
func (e *Expression) String() string { return e.text }

// Fields returns the paths of the object that the expression reads, as Union returns them.
func (e *Expression) Fields() [][]string { return e.fields }

// Reads returns paths that the expression reads, those within the elements of lists too, in which it leaves out the list. Not all of them
// can be told.
func (e *Expression) Reads() [][]string { return e.reads }

// ReadsMetadata reports whether the expression reads nothing but the metadata of the object.
func (e *Expression) ReadsMetadata() bool {
	return !slices.ContainsFunc(e.fields, func(path []string) bool { return !InMetadata(path) })
}

// ErrOutOfBudget is what an evaluation returns if the object has no budget left.
var ErrOutOfBudget = apiservercel.ErrOutOfBudget
