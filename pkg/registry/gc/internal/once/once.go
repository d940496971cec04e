// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package once has what a write asks before it stores an object.
package once

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Answer is the answer to a question about one write, such as a forecast. After a conflict, a request starts again, usually from the same
// stored state, and the question is not asked again.
type Answer[A any] struct {
	Value A
	from  state
}

// state identifies the stored state that a request started from.
type state struct {
	any        bool
	uid        types.UID
	generation int64
}

// Ask sets Value, unless it was set for the same state already. before is nil for a new object, and after for one that is deleted.
func (a *Answer[A]) Ask(before, after metav1.Object, ask func() A) {
	from := state{any: true}
	if before != nil {
		from.uid, from.generation = before.GetUID(), before.GetGeneration()
	}
	if after != nil {
		from.uid = after.GetUID()
	}
	if from != a.from {
		a.from, a.Value = from, ask()
	}
}
