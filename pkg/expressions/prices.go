// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package expressions

import (
	"fmt"
	"math"
	"math/bits"
	"regexp/syntax"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/util/sets"
)

// price says what a call with these arguments costs, in units of CEL's cost, each some 100 ns. Above most it need not be exact, because the
// call is not made. To find a price takes no longer than it says.
type price = func(args []ref.Val, most uint64) uint64

// constant are the functions that take about as long whatever their arguments are, or that the planner knows as part of the language.
var constant = sets.New(
	"!_", "-_", "@not_strictly_false", "__not_strictly_false__", "_%_", "_&&_", "_*_", "_-_", "_/_", "_?_:_", "_||_",
	"add", "allowed", "asApproximateFloat", "asInteger", "check", "compareTo", "dyn", "error", "errored", "family", "first", "getEscapedPath",
	"getHost", "getHostname", "getPort", "getQuery", "getScheme", "hasValue", "isGlobalUnicast", "isGreaterThan", "isInteger", "isLessThan",
	"isLinkLocalMulticast", "isLinkLocalUnicast", "isLoopback", "isUnspecified", "last", "major", "masked", "minor", "optional.none",
	"optional.of", "optional.ofNonZeroValue", "or", "orValue", "patch", "prefixLength", "reason", "sign", "sub", "type", "value",
)

// prices has the functions whose cost depends on the arguments in another way than productPrice says.
var prices = map[string]price{
	operators.Equals: equalityPrice, operators.NotEquals: equalityPrice,
	operators.Less: textPrice, operators.LessEquals: textPrice, operators.Greater: textPrice, operators.GreaterEquals: textPrice,
	operators.Add: textPrice, operators.In: inPrice,
	"size": textPrice, "startsWith": textPrice, "endsWith": textPrice,
	"matches": matchPrice, "find": matchPrice, "findAll": matchPrice,
	"distinct": distinctPrice, "sort": sortPrice, "@sortByAssociatedKeys": sortPrice, "lists.range": rangeOfPrice, "format": formatPrice,
	"cel.@mapInsert": insertPrice, "quantity": quantityPrice, "isQuantity": quantityPrice,
	"getDate": zonePrice, "getDayOfMonth": zonePrice, "getDayOfWeek": zonePrice, "getDayOfYear": zonePrice, "getFullYear": zonePrice,
	"getHours": zonePrice, "getMilliseconds": zonePrice, "getMinutes": zonePrice, "getMonth": zonePrice, "getSeconds": zonePrice,
}

// priceOf returns the price of a call, and the arguments that it depends on; none if it is the same whatever the arguments are. So it is if
// a value is compared with a constant. A function that is not listed costs the product of the sizes of its arguments, which none exceeds.
func priceOf(function string, args []ast.Expr) (price, []ast.Expr) {
	switch function {
	case operators.Index, operators.OptIndex, operators.OptSelect:
		return textPrice, args[1:] // An error repeats the key.
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		if isConstant(args[0]) || isConstant(args[1]) {
			return nil, nil
		}
	case operators.In:
		if isConstant(args[1]) {
			return textPrice, args[:1]
		}
	case operators.Add:
		if args[0].Kind() == ast.ListKind || args[1].Kind() == ast.ListKind {
			return nil, nil // One list is put behind the other without a copy, as map and filter do.
		}
	}
	if constant.Has(function) {
		return nil, nil
	}
	if p, ok := prices[function]; ok {
		return p, args
	}
	return productPrice, args
}

// isConstant reports whether an expression is a constant, or a list of constants.
func isConstant(e ast.Expr) bool {
	if e.Kind() != ast.ListKind {
		return e.Kind() == ast.LiteralKind
	}
	for _, element := range e.AsList().Elements() {
		if !isConstant(element) {
			return false
		}
	}
	return true
}

// productPrice is the product of the sizes of all arguments.
func productPrice(args []ref.Val, most uint64) uint64 {
	product := uint64(1)
	for _, arg := range args {
		product = times(product, size(arg, most))
	}
	return product
}

// equalityPrice is the smaller one of two sizes, because to compare ends when one of the values does.
func equalityPrice(args []ref.Val, most uint64) uint64 {
	for limit := uint64(16); ; limit *= 4 {
		if smaller := min(size(args[0], limit), size(args[1], limit)); smaller <= limit || limit > most {
			return smaller
		}
	}
}

// inPrice is for a value in a list, each element of which is compared with it, or for a key in a map.
func inPrice(args []ref.Val, most uint64) uint64 {
	if length, ok := lengthOfList(args[1]); ok {
		return max(length, min(size(args[1], most), times(length, size(args[0], most))))
	}
	return textPrice(args[:1], most)
}

// textPrice is for texts that are read or copied once. Everything else takes no time.
func textPrice(args []ref.Val, _ uint64) uint64 {
	sum := uint64(0)
	for _, arg := range args {
		sum += textSize(arg) / 16
	}
	return sum
}

// rangePrice is for what a macro goes through. The keys of a map are copied before.
func rangePrice(args []ref.Val, _ uint64) uint64 {
	if m, ok := args[0].(mapper); ok {
		return lengthOf(m) / 4
	}
	return 0
}

// matchPrice is for a text and a regular expression: each part of it may be tried for each character.
func matchPrice(args []ref.Val, most uint64) uint64 {
	pattern, ok := args[1].(types.String)
	if !ok {
		return 1
	}
	if uint64(len(pattern)) > most {
		return uint64(len(pattern))
	}
	return times(1+textSize(args[0]), regexSize(string(pattern))) + uint64(len(pattern))
}

// distinctPrice is for a list in which each element is compared with all others.
func distinctPrice(args []ref.Val, most uint64) uint64 {
	length, _ := lengthOfList(args[0])
	return times(size(args[0], most), 1+length/4)
}

func sortPrice(args []ref.Val, most uint64) uint64 {
	sum := uint64(0)
	for _, arg := range args {
		n := size(arg, most)
		sum += times(n, uint64(bits.Len64(n)))
	}
	return sum
}

func rangeOfPrice(args []ref.Val, _ uint64) uint64 {
	n, _ := args[0].(types.Int)
	return uint64(max(n, 0))
}

// formatPrice is for a format, which may ask for so many decimal places.
func formatPrice(args []ref.Val, most uint64) uint64 {
	format, _ := args[0].(types.String)
	number, largest := uint64(0), uint64(0)
	for _, c := range []byte(format) {
		if c < '0' || c > '9' {
			number = 0
			continue
		}
		if number < math.MaxUint32 {
			number = 10*number + uint64(c-'0')
		}
		largest = max(largest, number)
	}
	return times(productPrice(args, most), 1+largest)
}

// insertPrice is for a key and its value, or for all keys and values of another map.
func insertPrice(args []ref.Val, _ uint64) uint64 {
	if m, ok := args[len(args)-1].(mapper); ok && len(args) == 2 {
		return lengthOf(m)
	}
	return 1
}

// quantityPrice is for a text, whose exponent says how many digits the number has.
func quantityPrice(args []ref.Val, most uint64) uint64 {
	return formatPrice(args, most) / 10
}

// zonePrice is for a part of a time. A time zone is read from its file each time.
func zonePrice(args []ref.Val, _ uint64) uint64 {
	if len(args) > 1 {
		return 500 + textSize(args[1])
	}
	return 0
}

// regexSize is about how many instructions a regular expression becomes, without compiling it.
func regexSize(pattern string) uint64 {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 1 // It is not compiled either.
	}
	return instructions(parsed)
}

func instructions(r *syntax.Regexp) uint64 {
	n := 1 + uint64(len(r.Rune))
	if r.Op == syntax.OpCharClass {
		n = 1
	}
	for _, sub := range r.Sub {
		n += instructions(sub)
	}
	if r.Op == syntax.OpRepeat {
		n = times(n, uint64(max(r.Min, r.Max, 1)))
	}
	return n
}

func times(a, b uint64) uint64 {
	if high, low := bits.Mul64(a, b); high == 0 {
		return low
	}
	return math.MaxUint64
}

// maxPattern is the largest regexSize of a constant, which is compiled together with its expression, and kept.
const maxPattern = 5000

// checkPatterns returns an error if a regular expression among the constants is too large.
func checkPatterns(a *ast.AST) error {
	var err error
	ast.PostOrderVisit(a.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind {
			return
		}
		for _, arg := range e.AsCall().Args() {
			if arg.Kind() != ast.LiteralKind || !patterns.Has(e.AsCall().FunctionName()) {
				continue
			}
			if pattern, ok := arg.AsLiteral().(types.String); ok && regexSize(string(pattern)) > maxPattern {
				err = fmt.Errorf("a regular expression is too large: with its repetitions it has more than %d parts", maxPattern)
			}
		}
	}))
	return err
}

// patterns are the functions with regular expressions.
var patterns = sets.New("matches", "find", "findAll")
