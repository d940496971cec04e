// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schemas tells authors which of their expressions do not fit the schema of a resource.
package schemas

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/winnow-dev/winnow/pkg/expressions"
)

const (
	// timeout bounds how long one write waits for all schemas that its expressions are checked against, and fetchTimeout how long the cluster
	// may take for one of them.
	timeout, fetchTimeout = 3 * time.Second, 2 * time.Second
	// resourcesMost is how many resources one write is checked against, linesMost how many misfits its warnings name.
	resourcesMost, linesMost = 16, 20
	// keepFor is how long a schema is used again, and keepNoneFor how long it is remembered that there is none, which is shorter, because the
	// cluster publishes a schema some time after it serves the resource, or that there was an error. Each answer takes the cluster two
	// requests, of which the second may return some megabytes.
	keepFor, keepNoneFor = time.Minute, 3 * time.Second
	// keepMost is how many schemas are kept.
	keepMost = 32
)

// Source returns the schema of a resource, without references; nil if none is known.
type Source func(ctx context.Context, resource string) (*spec.Schema, error)

// Checker checks expressions against schemas. It is safe for concurrent use. A nil Checker knows no schema.
type Checker struct {
	source   Source
	known    *cache.LRUExpireCache // of known, by resource
	fetching singleflight.Group
}

// known is what was found out about a resource.
type known struct {
	types *expressions.Types // nil if there is no schema
	err   error
}

// NewChecker returns a Checker.
func NewChecker(source Source, clock cache.Clock) *Checker {
	return &Checker{source: source, known: cache.NewLRUExpireCacheWithClock(keepMost, clock)}
}

// Expression is one that an author has written, and where.
type Expression struct {
	Field *field.Path
	Text  string
}

// Use says over the objects of which resources expressions are evaluated.
type Use struct {
	Resources   []string
	Expressions []Expression
}

// Misfits returns a warning for each expression of one write that does not fit the schema of a resource, up to a limit. Schemas change, so
// a misfit is no error.
func (c *Checker) Misfits(ctx context.Context, all ...Use) []string {
	if c == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	k := &check{Checker: c, types: map[string]*expressions.Types{}, unchecked: sets.New[string]()}
	for _, use := range all {
		for _, resource := range use.Resources {
			if len(use.Expressions) > 0 {
				k.against(ctx, resource, use.Expressions)
			}
		}
	}
	return k.warnings()
}

// check checks the expressions of one write.
type check struct {
	*Checker
	// types are the schemas that were asked for; nil where there is none.
	types map[string]*expressions.Types
	// lines are the first misfits, and more is how many others there are. failures are errors of the cluster.
	lines, failures []string
	more            int
	// unchecked are the resources that not all expressions were checked against.
	unchecked sets.Set[string]
}

func (k *check) against(ctx context.Context, resource string, all []Expression) {
	types, asked := k.types[resource]
	if !asked {
		if len(k.types) == resourcesMost || ctx.Err() != nil {
			k.unchecked.Insert(resource)
			return
		}
		var err error
		types, err = k.typesOf(ctx, resource)
		k.types[resource] = types
		if err != nil && ctx.Err() == nil {
			k.failures = append(k.failures, fmt.Sprintf("the expressions could not be checked against the schema of %s: %v", resource, err))
		}
	}
	for _, e := range all {
		switch {
		case ctx.Err() != nil:
			k.unchecked.Insert(resource)
			return
		case types != nil:
			k.add(e, resource, types.Check(e.Text))
		}
	}
}

// add adds a warning, if an expression does not fit a schema.
func (k *check) add(e Expression, resource string, misfit error) {
	switch {
	case misfit == nil:
	case len(k.lines) == linesMost:
		k.more++
	default:
		first, _, _ := strings.Cut(misfit.Error(), "\n") // The next lines draw where it is.
		k.lines = append(k.lines, fmt.Sprintf("%s does not fit the schema of %s: %s. Objects for which it fails are kept", e.Field, resource,
			strings.TrimPrefix(first, "ERROR: <input>:")))
	}
}

func (k *check) warnings() []string {
	out := k.lines
	if k.more > 0 {
		out = append(out, fmt.Sprintf("%d more expressions do not fit the schema of a resource", k.more))
	}
	if n := len(k.unchecked); n > 0 {
		out = append(out, fmt.Sprintf("not all expressions were checked against the schemas of %d of the resources: "+
			"a write is checked against up to %d resources, for up to %s", n, resourcesMost, timeout))
	}
	return append(out, k.failures...)
}

// typesOf returns the types of a resource; nil if there is no schema. It fails when ctx ends.
func (c *Checker) typesOf(ctx context.Context, resource string) (*expressions.Types, error) {
	if found, ok := c.known.Get(resource); ok {
		return found.(known).types, found.(known).err
	}
	found := c.fetching.DoChan(resource, func() (any, error) {
		// Others may wait for the answer, so it does not end with this request.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
		defer cancel()
		return c.fetch(ctx, resource), nil
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-found:
		return r.Val.(known).types, r.Val.(known).err
	}
}

// fetch asks for the schema of a resource and keeps the answer for a while.
func (c *Checker) fetch(ctx context.Context, resource string) (out known) {
	defer func() {
		keep := keepFor
		if r := recover(); r != nil { // In this goroutine it would end the process.
			out = known{err: fmt.Errorf("panic: %v", r)}
		}
		if out.types == nil {
			keep = keepNoneFor
		}
		c.known.Add(resource, out, keep)
	}()
	schema, err := c.source(ctx, resource)
	if err != nil || schema == nil {
		return known{err: err}
	}
	types, err := expressions.NewTypes(schema)
	return known{types, err}
}
