// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"github.com/winnow-dev/winnow/pkg/expressions"
)

// Conditions are the match conditions that are evaluated for the objects of one resource in one namespace. It is immutable.
type Conditions struct {
	// cluster are those of cluster policies, and own those of the policies of the namespace. Each group has a budget of its own, so that a
	// namespace cannot use up what cluster policies need.
	cluster, own []*expressions.Expression
	index        map[string]int // of the result, by expression
	fields       [][]string
	// Digest is the same for two Conditions only if they have the same results for every object.
	Digest string
}

// NewConditions returns the Conditions with these expressions, each once; nil if there are none.
func NewConditions(cluster, own map[string]*expressions.Expression) *Conditions {
	if len(cluster)+len(own) == 0 {
		return nil
	}
	c := &Conditions{index: make(map[string]int, len(cluster)+len(own))}
	digest := sha256.New()
	add := func(group map[string]*expressions.Expression) (added []*expressions.Expression) {
		for _, text := range slices.Sorted(maps.Keys(group)) {
			if _, ok := c.index[text]; !ok {
				c.index[text] = len(c.index)
				c.fields = expressions.Union(c.fields, group[text].Fields())
				added = append(added, group[text])
				fmt.Fprintf(digest, "%d %s ", len(text), text)
			}
		}
		fmt.Fprint(digest, "; ")
		return added
	}
	c.cluster, c.own = add(cluster), add(own)
	c.Digest = string(digest.Sum(nil))
	return c
}

// Covers reports whether c has all expressions of other, and those of cluster policies among those of cluster policies.
func (c *Conditions) Covers(other *Conditions) bool {
	switch {
	case other == nil || c == other:
		return true
	case c == nil:
		return false
	}
	for i, e := range slices.Concat(other.cluster, other.own) {
		if at, ok := c.index[e.String()]; !ok || i < len(other.cluster) && at >= len(c.cluster) {
			return false
		}
	}
	return true
}

// With returns the Conditions with the expressions of both.
func (c *Conditions) With(other *Conditions) *Conditions {
	cluster, own := map[string]*expressions.Expression{}, map[string]*expressions.Expression{}
	for _, c := range []*Conditions{c, other} {
		if c != nil {
			for _, e := range c.cluster {
				cluster[e.String()] = e
			}
			for _, e := range c.own {
				own[e.String()] = e
			}
		}
	}
	return NewConditions(cluster, own)
}

// Fields returns the paths of the object that the expressions read, as expressions.Union returns them.
func (c *Conditions) Fields() [][]string { return c.fields }

// Results of Conditions for one state of an object. The zero value has none.
type Results struct {
	// Conditions are those that were evaluated; nil if none were.
	*Conditions
	// Values has one byte for each: isTrue, isFalse or hasFailed.
	Values string
	// Failures has the errors of those that failed, in the same order.
	Failures []string
}

const (
	isTrue    = 't'
	isFalse   = 'f'
	hasFailed = 'e'
)

// maxFailureLength bounds the length of a failure, which may repeat values of the object.
const maxFailureLength = 256

// Evaluate evaluates all expressions for an object that has at least Fields.
func (c *Conditions) Evaluate(content map[string]any) Results {
	if c == nil {
		return Results{}
	}
	values, failures := make([]byte, 0, len(c.index)), []string(nil)
	for _, group := range [][]*expressions.Expression{c.cluster, c.own} {
		object := expressions.NewObject(content, expressions.ConditionBudget)
		for _, e := range group {
			switch matches, err := e.Bool(object); {
			case err != nil:
				values, failures = append(values, hasFailed), append(failures, truncate(err.Error(), maxFailureLength))
			case matches:
				values = append(values, isTrue)
			default:
				values = append(values, isFalse)
			}
		}
	}
	return Results{Conditions: c, Values: string(values), Failures: failures}
}

// Result returns the result of an expression: whether it is true, or why it failed. It is not known if it was not evaluated.
func (r *Results) Result(expression string) (matches bool, failure string, known bool) {
	if r.Conditions == nil {
		return false, "", false
	}
	i, ok := r.index[expression]
	if !ok {
		return false, "", false
	}
	if r.Values[i] != hasFailed {
		return r.Values[i] == isTrue, "", true
	}
	failed := 0
	for _, value := range []byte(r.Values[:i]) {
		if value == hasFailed {
			failed++
		}
	}
	return false, r.Failures[failed], true
}
