// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package expressions

import (
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apiserver/pkg/cel/library"
)

// costs says what CEL counts for calls. Those that the meter has priced cost one unit more, and so does a comparison with a constant: to
// count the characters of a long text, as CEL does, takes longer than to compare it.
type costs struct{}

var kubernetesCosts library.CostEstimator

// CallCost implements interpreter.ActualCostEstimator.
func (costs) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	switch {
	case constant.Has(function):
		return kubernetesCosts.CallCost(function, overload, args, result)
	case function == metered:
		return new(uint64(0))
	}
	return new(uint64(1))
}
