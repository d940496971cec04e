// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package expressions

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// The cost that CEL itself counts is not time. It counts a call only after the call, by the number of elements and not by what is in them:
// object == object costs a few units however large the object is, and nothing ends such a call. So before every call that may take longer
// the larger its arguments are, the meter subtracts its price from the budget of the object, and a call that costs too much is not made.
// To that end compile puts each such argument into a call of metered, which users cannot write:
//
//	a == b	@metered(a, @meter, 0) == @metered(b, @meter, 1)
//
// Nothing depends on how fast the machine is, so every replica has the same result.
const (
	metered       = "@metered"
	meterVariable = "@meter"
)

// meterOptions declare what compile adds to expressions.
func meterOptions() []cel.EnvOption {
	value := cel.TypeParamType("V")
	return []cel.EnvOption{
		cel.Variable(meterVariable, cel.DynType),
		cel.Function(metered, cel.Overload("@metered_value", []*cel.Type{value, cel.DynType, cel.IntType}, value,
			cel.FunctionBinding(func(args ...ref.Val) ref.Val {
				return args[1].(*meter).take(int(args[2].(types.Int)), args[0]) //nolint:forcetypeassert // Only compile writes these.
			}))),
	}
}

// meteredCall is a call, or the range of a comprehension, that is priced before it is made.
type meteredCall struct {
	price price
	// args are the constant arguments; nil where the argument is metered.
	args []ref.Val
	// first is the slot of the first argument.
	first int
}

// slot is the place for the value of a metered argument. The last argument of its call sets off the price.
type slot struct {
	call *meteredCall
	last bool
}

// meter has the budget of one evaluation, and the arguments that were evaluated so far, by their slots. It is a value only in order to get
// to the calls.
type meter struct {
	slots  []slot
	values []ref.Val
	left   uint64
	over   bool
}

var errOverBudget = types.WrapErr(ErrOutOfBudget)

// take returns the value of an argument. With the last one of a call it pays the price, or returns an error instead of the value.
func (m *meter) take(at int, value ref.Val) ref.Val {
	if m.over {
		return errOverBudget
	}
	m.values[at] = value
	if s := m.slots[at]; s.last {
		c := s.call
		args := m.values[c.first : c.first+len(c.args)]
		for i, constant := range c.args {
			if constant != nil {
				args[i] = constant
			}
		}
		if !m.pay(c.price(args, m.left)) {
			return errOverBudget
		}
	}
	return value
}

// pay reports whether the budget suffices. Once it has not, it never does, so that || and && cannot go on after the error.
func (m *meter) pay(price uint64) bool {
	if price > m.left {
		m.left, m.over = 0, true
	}
	m.left -= min(price, m.left)
	return !m.over
}

// ConvertToNative implements ref.Val.
func (m *meter) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("a meter is no %v", t)
}

// ConvertToType implements ref.Val.
func (m *meter) ConvertToType(ref.Type) ref.Val { return types.NoSuchOverloadErr() }

// Equal implements ref.Val.
func (m *meter) Equal(ref.Val) ref.Val { return types.False }

// Type implements ref.Val.
func (m *meter) Type() ref.Type { return types.DynType }

// Value implements ref.Val.
func (m *meter) Value() any { return nil }

// meterCalls puts the arguments of a checked expression into calls of metered, and returns the slots for them.
func meterCalls(a *ast.AST) []slot {
	i := installer{make: ast.NewExprFactory()}
	ast.PostOrderVisit(a.Expr(), ast.NewExprVisitor(func(e ast.Expr) { i.lastID = max(i.lastID, e.ID()) }))
	i.visit(a.Expr())
	return i.slots
}

type installer struct {
	make   ast.ExprFactory
	lastID int64
	slots  []slot
}

func (i *installer) visit(e ast.Expr) {
	for _, child := range children(e) {
		i.visit(child)
	}
	switch e.Kind() { //nolint:exhaustive // Nothing else depends on the size of values.
	case ast.CallKind:
		c := e.AsCall()
		args := c.Args()
		if c.IsMemberFunction() {
			args = append([]ast.Expr{c.Target()}, args...)
		}
		i.meter(priceOf(c.FunctionName(), args))
	case ast.ComprehensionKind:
		if over := e.AsComprehension().IterRange(); over.Kind() != ast.ListKind {
			i.meter(rangePrice, []ast.Expr{over})
		}
	}
}

// meter meters the arguments of one call. Where all are constants, the last one is metered.
func (i *installer) meter(price price, args []ast.Expr) {
	if len(args) == 0 {
		return
	}
	c := &meteredCall{price: price, args: make([]ref.Val, len(args)), first: len(i.slots)}
	last := -1
	for at, arg := range args {
		if arg.Kind() == ast.LiteralKind {
			c.args[at] = arg.AsLiteral()
		} else {
			last = at
		}
	}
	if last < 0 {
		last = len(args) - 1
		c.args[last] = nil
	}
	for at, arg := range args {
		i.slots = append(i.slots, slot{c, at == last})
		if c.args[at] == nil {
			i.wrap(arg, c.first+at)
		}
	}
}

// wrap replaces an expression by a call of metered with it. The expression keeps its ID, and so its type and its function.
func (i *installer) wrap(e ast.Expr, at int) {
	inner := i.make.NewUnspecifiedExpr(e.ID())
	inner.SetKindCase(e)
	i.lastID += 3
	outer := i.make.NewCall(i.lastID, metered, inner,
		i.make.NewIdent(i.lastID-1, meterVariable), i.make.NewLiteral(i.lastID-2, types.Int(at)))
	e.SetKindCase(nil) // So that only this ID changes.
	e.RenumberIDs(func(int64) int64 { return i.lastID })
	e.SetKindCase(outer)
}
