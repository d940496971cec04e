// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package expressions

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// mapper is any map.
type mapper = traits.Mapper

// textUnit is how many bytes of a text count as one.
const textUnit = 10

// size returns how many values there are in a value, itself included, where texts count by their lengths. It stops above limit: macros can
// make values from a few others that are larger than any memory.
func size(value any, limit uint64) uint64 {
	left := int64(min(limit, 1<<40)) + 1
	count(value, &left)
	return min(limit, 1<<40) + 1 - uint64(max(left, 0))
}

// count subtracts the size of a value from left, and stops when nothing is left.
func count(value any, left *int64) {
	*left--
	if *left <= 0 {
		return
	}
	switch v := value.(type) {
	case string:
		*left -= int64(len(v) / textUnit)
	case map[string]any:
		for key, element := range v {
			*left -= 1 + int64(len(key)/textUnit)
			if count(element, left); *left <= 0 {
				return
			}
		}
	case []any:
		for _, element := range v {
			if count(element, left); *left <= 0 {
				return
			}
		}
	case ref.Val:
		countValue(v, left)
	}
}

func countValue(value ref.Val, left *int64) {
	switch v := value.(type) {
	case types.String:
		*left -= int64(len(v) / textUnit)
	case types.Bytes:
		*left -= int64(len(v) / textUnit)
	case *types.Optional:
		if v.HasValue() {
			count(v.GetValue(), left)
		}
	case traits.Mapper:
		countMap(v, left)
	case traits.Lister:
		for i, n := types.Int(0), v.Size().(types.Int); i < n && *left > 0; i++ { //nolint:forcetypeassert // The size is an Int.
			count(v.Get(i), left)
		}
	}
}

func countMap(m traits.Mapper, left *int64) {
	if native, ok := m.Value().(map[string]any); ok {
		*left++
		count(native, left)
		return
	}
	if *left -= int64(lengthOf(m)); *left <= 0 {
		return // To copy the keys takes as long.
	}
	for keys := m.Iterator(); keys.HasNext() == types.True && *left > 0; {
		key := keys.Next()
		count(key, left)
		count(m.Get(key), left)
	}
}

// textSize is the size of a text; 1 for everything else.
func textSize(value ref.Val) uint64 {
	switch v := value.(type) {
	case types.String:
		return 1 + uint64(len(v)/textUnit)
	case types.Bytes:
		return 1 + uint64(len(v)/textUnit)
	}
	return 1
}

func lengthOf(v traits.Sizer) uint64 {
	n, _ := v.Size().(types.Int)
	return uint64(max(n, 0))
}

// lengthOfList returns how many elements a list has.
func lengthOfList(value ref.Val) (uint64, bool) {
	l, ok := value.(traits.Lister)
	if !ok {
		return 0, false
	}
	return lengthOf(l), true
}
