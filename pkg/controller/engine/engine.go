// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine is the controller without its lock: it contains all facts, policies and namespaces, decides what follows for each object,
// and knows which deletes are in flight. Events are method calls, and TakeEffects returns what they ask of the caller. The package has no
// lock, clock or goroutine: pkg/controller/tracker adds the lock, and the time is an argument.
//
// The engine has stages, each a package with its own state: memory, knowledge, scope, limits, decide, gate, dispatch, and view. Each embeds
// the stage before it, so it can read the state of that stage and call its methods, and no stage can call a later one.
package engine

import (
	"github.com/winnow-dev/winnow/pkg/controller/engine/decide"
	"github.com/winnow-dev/winnow/pkg/controller/engine/dispatch"
	"github.com/winnow-dev/winnow/pkg/controller/engine/gate"
	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/engine/limits"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/engine/scope"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
)

// Engine is not safe for concurrent use. An event changes memory, and touches the objects that it may affect. Only Turn and Step settle
// objects, as many as the budget allows. Until they are settled, nothing that depends on them is deleted.
type Engine struct {
	*view.View
}

// New returns an empty engine.
func New(c memory.Config) *Engine {
	return &Engine{view.New(dispatch.New(gate.New(decide.New(limits.New(scope.New(knowledge.New(memory.New(c))))))))}
}
