// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package expressions

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Object is one state of an object that expressions read, and the cost that they may still cause together. Only one goroutine may use it.
type Object struct {
	activation map[string]any
	budget     uint64
}

// Budgets for all expressions of one object together, in units of CEL's cost: some 10 ms for a lifecycle, which administrators write, and
// some 1 ms for match conditions, which any author of a policy can write. The match conditions of a ValidatingAdmissionPolicy may cost 25
// times and 250 times as much for one request. But expressions are evaluated here for every object of a resource, when it is listed and
// whenever it changes. Usual expressions cost ten to a thousand units.
const (
	LifecycleBudget = celconfig.RuntimeCELCostBudgetMatchConditions / 25
	ConditionBudget = celconfig.RuntimeCELCostBudgetMatchConditions / 250
)

// NewObject wraps the content of an object, for example of an Unstructured. Its expressions may cost budget together.
func NewObject(content map[string]any, budget uint64) *Object {
	return &Object{
		activation: map[string]any{variable: types.DefaultTypeAdapter.NativeToValue(content)},
		budget:     budget,
	}
}

// Left returns what the expressions of the object may still cost.
func (o *Object) Left() uint64 { return o.budget }

// budgetOf returns what one evaluation may cost.
func budgetOf(result Result) uint64 {
	if result == Condition {
		return ConditionBudget
	}
	return LifecycleBudget
}

// Bool evaluates an expression that was compiled for Bool or Condition.
func (e *Expression) Bool(o *Object) (bool, error) {
	want := Bool
	if e.result == Condition {
		want = Condition
	}
	value, err := e.evaluate(want, o)
	if err != nil {
		return false, err
	}
	result, ok := value.Value().(bool)
	if !ok {
		return false, e.wrongType(value)
	}
	return result, nil
}

// Time evaluates an expression that was compiled for Time. The time is zero if the expression evaluates to null.
func (e *Expression) Time(o *Object) (time.Time, error) {
	value, err := e.evaluate(Time, o)
	if err != nil {
		return time.Time{}, err
	}
	switch value := value.(type) {
	case types.Null:
		return time.Time{}, nil
	case types.Timestamp:
		return value.Time.UTC(), nil
	case types.String:
		at, err := time.Parse(time.RFC3339, string(value))
		if err != nil {
			return time.Time{}, e.failed(err)
		}
		return at.UTC(), nil
	}
	return time.Time{}, e.wrongType(value)
}

// Duration evaluates an expression that was compiled for Duration. It returns nil if the expression evaluates to null. A negative duration
// is an error.
func (e *Expression) Duration(o *Object) (*time.Duration, error) {
	value, err := e.evaluate(Duration, o)
	if err != nil {
		return nil, err
	}
	var d time.Duration
	switch value := value.(type) {
	case types.Null:
		return nil, nil
	case types.Duration:
		d = value.Duration
	case types.Int:
		d, err = seconds(float64(value))
	case types.Uint:
		d, err = seconds(float64(value))
	case types.Double:
		d, err = seconds(float64(value))
	case types.String:
		d, err = time.ParseDuration(string(value))
	default:
		return nil, e.wrongType(value)
	}
	if err == nil && d < 0 {
		err = fmt.Errorf("the duration %s is negative", d)
	}
	if err != nil {
		return nil, e.failed(err)
	}
	return &d, nil
}

// Names evaluates an expression that was compiled for Names. The value is a string, nil, a []any or a map[string]any. In the last two there
// may be other values too.
func (e *Expression) Names(o *Object) (any, error) {
	value, err := e.evaluate(Names, o)
	if err != nil {
		return nil, err
	}
	if size(value, o.budget) > o.budget { // Macros can make lists that are larger than any memory.
		return nil, e.failed(ErrOutOfBudget)
	}
	switch out := native(value).(type) {
	case nil, string, []any, map[string]any:
		return out, nil
	}
	return nil, e.wrongType(value)
}

// native converts a value to what JSON is decoded into. What JSON does not have stays a value.
func native(value ref.Val) any {
	switch v := value.(type) {
	case types.Null:
		return nil
	case types.String:
		return string(v)
	case traits.Mapper:
		out := map[string]any{}
		for keys := v.Iterator(); keys.HasNext() == types.True; {
			key := keys.Next()
			out[fmt.Sprint(key.Value())] = native(v.Get(key))
		}
		return out
	case traits.Lister:
		var out []any
		for elements := v.Iterator(); elements.HasNext() == types.True; {
			out = append(out, native(elements.Next()))
		}
		return out
	}
	return value
}

// maxSeconds is how many seconds a time.Duration can have.
const maxSeconds = math.MaxInt64 / int64(time.Second)

func seconds(n float64) (time.Duration, error) {
	if math.IsNaN(n) || math.Abs(n) > float64(maxSeconds) {
		return 0, fmt.Errorf("%v seconds are out of range", n)
	}
	whole, fraction := math.Modf(n)
	return time.Duration(whole)*time.Second + time.Duration(fraction*float64(time.Second)), nil
}

var errOtherResult = errors.New("it was compiled for another result")

// evaluate subtracts the cost from the budget of the object. Once the budget is used up, every evaluation fails.
func (e *Expression) evaluate(want Result, o *Object) (ref.Val, error) {
	if e.result != want {
		return nil, e.failed(errOtherResult)
	}
	if o.budget == 0 {
		return nil, e.failed(ErrOutOfBudget)
	}
	m := &meter{slots: e.slots, values: make([]ref.Val, len(e.slots)), left: o.budget}
	o.activation[meterVariable] = m
	value, details, err := e.program.Eval(o.activation)
	var cost *uint64
	if details != nil {
		cost = details.ActualCost()
	}
	switch {
	case cost == nil:
		o.budget = 0
		if err == nil {
			err = fmt.Errorf("%w: its cost is not known", ErrOutOfBudget)
		}
	case m.over, *cost > m.left:
		o.budget, err = 0, ErrOutOfBudget
	default:
		o.budget = m.left - *cost
	}
	if err != nil {
		return nil, e.failed(err)
	}
	return value, nil
}

func (e *Expression) failed(err error) error {
	return fmt.Errorf("expression '%s' resulted in error: %w", e.text, err)
}

func (e *Expression) wrongType(value ref.Val) error {
	return e.failed(checkType(value.Type().(*types.Type), e.result))
}
