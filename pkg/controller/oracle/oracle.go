// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oracle lets the programs below test ask the model which answer holds for each object of a world. It is never shipped.
package oracle

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
)

type (
	// World is all that a decision depends on.
	World = model.World
	// Namespace is what matters of a namespace.
	Namespace = model.Namespace
	// Notice is a notice that an object will be deleted.
	Notice = model.Notice
	// Answer is what happens to an object, and why.
	Answer = model.Answer
	// PolicyInNamespace is what a hold stops.
	PolicyInNamespace = model.PolicyInNamespace
)

// NewlyDue returns the objects that a change makes due.
func NewlyDue(before, after *World) map[PolicyInNamespace][]types.UID {
	return model.NewlyDue(before, after)
}

const (
	// Delete is the Action of an Answer for an object that is due and may go.
	Delete = model.Delete
	// Ignore is the Action of an Answer for an object that is no candidate.
	Ignore = model.Ignore
	// Keep is the Action of an Answer for an object that is never due.
	Keep = model.Keep
	// Wait is the Action of an Answer for an object that is due later.
	Wait = model.Wait
	// SetDeadline is the Action of an Answer for an object whose deadline is to be set, changed or removed.
	SetDeadline = model.SetDeadline
)
