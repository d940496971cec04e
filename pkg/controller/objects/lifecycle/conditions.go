// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/expressions"
)

// MaxConditions is how many match conditions are evaluated for the objects of one resource in one namespace: so many of cluster policies,
// and so many of the policies of the namespace. All others count as failed.
const MaxConditions = 256

// Conditions are the match conditions that are evaluated for the objects of one resource in one namespace. It is immutable.
type Conditions struct {
	// cluster are the conditions of cluster policies, and own the conditions of the policies of the namespace. Each group has a separate
	// budget, so that a namespace cannot use up what cluster policies need.
	cluster, own []*expressions.Expression
	index        map[string]int           // of the result, by expression
	decodes      func(path []string) bool // see NewConditions
	// unknown are the expressions that read a field which is not decoded, with the field.
	unknown map[string]string
	fields  [][]string
	// Digest is the same for two Conditions only if they have the same results for every object.
	Digest string
}

// NewConditions returns the Conditions with these expressions, each once; nil if there are none. decodes reports whether a field of the
// objects is decoded; if it is nil, every field is.
func NewConditions(cluster, own map[string]*expressions.Expression, decodes func(path []string) bool) *Conditions {
	if len(cluster)+len(own) == 0 {
		return nil
	}
	c := &Conditions{
		index: make(map[string]int, len(cluster)+len(own)), decodes: decodes, unknown: map[string]string{},
	}
	var fields [][][]string
	digest := sha256.New()
	add := func(group map[string]*expressions.Expression) (added []*expressions.Expression) {
		for _, text := range slices.Sorted(maps.Keys(group)) {
			if _, ok := c.index[text]; ok {
				continue
			}
			e := group[text]
			c.index[text] = len(c.index)
			if len(added) < MaxConditions { // The others are not evaluated.
				fields = append(fields, e.Fields())
				c.noteUnknown(e)
			}
			added = append(added, e)
			fmt.Fprintf(digest, "%d %s ", len(text), text)
		}
		fmt.Fprint(digest, "; ")
		return added
	}
	c.cluster, c.own = add(cluster), add(own)
	c.fields, c.Digest = expressions.Union(fields...), string(digest.Sum(nil))
	return c
}

// noteUnknown notes whether an expression reads a field that is not decoded.
func (c *Conditions) noteUnknown(e *expressions.Expression) {
	if c.decodes == nil {
		return
	}
	for _, path := range slices.Concat(e.Fields(), e.Reads()) {
		if !c.decodes(path) {
			c.unknown[e.String()] = "object." + strings.Join(path, ".")
			return
		}
	}
}

// Covers reports whether c has all expressions of other, and has other's cluster expressions in its cluster group.
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
	var decodes func(path []string) bool
	for _, c := range []*Conditions{c, other} {
		if c != nil {
			decodes = c.decodes
			for _, e := range c.cluster {
				cluster[e.String()] = e
			}
			for _, e := range c.own {
				own[e.String()] = e
			}
		}
	}
	return NewConditions(cluster, own, decodes)
}

// Fields returns the paths of the object that the expressions read, as expressions.Union returns them.
func (c *Conditions) Fields() [][]string { return c.fields }

// ReadMetadata reports whether the expressions read nothing but the metadata of the object.
func (c *Conditions) ReadMetadata() bool {
	return !slices.ContainsFunc(c.fields, func(path []string) bool { return !expressions.InMetadata(path) })
}

// Results of Conditions for one state of an object. The zero value has none.
type Results struct {
	// Conditions are those that were evaluated; nil if none were.
	*Conditions
	// Values has one byte for each: isTrue, isFalse, or why it failed.
	Values string
	// Failures has the errors of the first that hasFailed, in the same order.
	Failures []string
}

const (
	isTrue       = 't'
	isFalse      = 'f'
	hasFailed    = 'e'
	outOfBudget  = 'b'
	tooMany      = 'm'
	unknownField = 'u'
	isWaiting    = 'w'
)

// Failures are stored with each object, and repeat values of the object. So only the first few are stored, and the beginning of each.
const (
	maxFailureLength = 256
	maxFailures      = 4
)

// failures are the errors that are the same for every object.
var failures = map[byte]string{
	hasFailed:    "it failed, and so did others for the same object, whose errors are shown",
	outOfBudget:  "the match conditions for this object cost too much together (" + expressions.ErrOutOfBudget.Error() + ")",
	tooMany:      fmt.Sprintf("the policies of this namespace have more than %d match conditions for this resource", MaxConditions),
	isWaiting:    "it is not evaluated yet, because the match conditions of this namespace have taken too much time",
	unknownField: "the resource has no such field; if the cluster is newer than this version of Winnow, and has it, upgrade Winnow",
}

// Waiting returns the Results of conditions that are evaluated later.
func (c *Conditions) Waiting() Results {
	return Results{Conditions: c, Values: strings.Repeat(string(rune(isWaiting)), len(c.index))}
}

// Wait reports whether the conditions are evaluated later.
func (r *Results) Wait() bool { return strings.IndexByte(r.Values, isWaiting) >= 0 }

// Evaluate evaluates all expressions for an object that has at least Fields.
func (c *Conditions) Evaluate(content map[string]any) Results {
	out, _ := c.EvaluateCost(content)
	return out
}

// EvaluateCost is like Evaluate, and returns what it has cost too, in units of CEL's cost.
func (c *Conditions) EvaluateCost(content map[string]any) (out Results, cost uint64) {
	if c == nil {
		return Results{}, 0
	}
	content = withoutOurDeadline(content)
	out.Conditions = c
	values := make([]byte, 0, len(c.index))
	for _, group := range [][]*expressions.Expression{c.cluster, c.own} {
		object := expressions.NewObject(content, expressions.ConditionBudget)
		for i, e := range group {
			switch {
			case i >= MaxConditions:
				values = append(values, tooMany)
			case c.unknown[e.String()] != "":
				values = append(values, unknownField)
			default:
				values = append(values, out.evaluate(e, object))
			}
			cost += perExpression
		}
		cost += expressions.ConditionBudget - object.Left()
	}
	out.Values = string(values)
	return out, cost
}

// perExpression is what each expression costs besides.
const perExpression = 5

// evaluate returns the value of one expression, and stores its error.
func (r *Results) evaluate(e *expressions.Expression, object *expressions.Object) byte {
	matches, err := e.Bool(object)
	switch {
	case errors.Is(err, expressions.ErrOutOfBudget):
		return outOfBudget
	case err != nil:
		if len(r.Failures) < maxFailures {
			r.Failures = append(r.Failures, truncate(err.Error(), maxFailureLength))
		}
		return hasFailed
	case matches:
		return isTrue
	}
	return isFalse
}

// withoutOurDeadline returns an object as it would be if Winnow had not set its deadline. Otherwise a rule for objects without a deadline
// would no longer match those whose deadline it has set.
func withoutOurDeadline(content map[string]any) map[string]any {
	metadata, _ := content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	spec, _ := content["spec"].(map[string]any)
	seconds, has := spec["activeDeadlineSeconds"].(int64)
	kind := fmt.Sprint(content["apiVersion"], " ", content["kind"])
	if kind != "batch/v1 Job" && kind != "v1 Pod" || !has || annotations[gc.AnnotationActiveDeadline] != strconv.FormatInt(seconds, 10) {
		return content
	}
	content, metadata, annotations, spec = maps.Clone(content), maps.Clone(metadata), maps.Clone(annotations), maps.Clone(spec)
	delete(annotations, gc.AnnotationActiveDeadline)
	delete(spec, "activeDeadlineSeconds")
	if metadata["annotations"] = annotations; len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	content["metadata"], content["spec"] = metadata, spec
	return content
}

// OverLimit reports whether conditions failed because there are too many, or because all of them together cost too much. Then fewer
// conditions have other results.
func (r *Results) OverLimit() bool {
	return strings.ContainsAny(r.Values, string([]byte{outOfBudget, tooMany}))
}

// Result returns the result of an expression: whether it is true, or why it failed. It is not known if it was not evaluated.
func (r *Results) Result(expression string) (matches bool, failure string, known bool) {
	if r.Conditions == nil {
		return false, "", false
	}
	i, ok := r.index[expression]
	switch {
	case !ok:
		return false, "", false
	case r.Values[i] == hasFailed:
		if before := strings.Count(r.Values[:i], string(hasFailed)); before < len(r.Failures) {
			return false, r.Failures[before], true
		}
	}
	failure = failures[r.Values[i]]
	if r.Values[i] == unknownField {
		failure = fmt.Sprintf("it reads %s: %s", r.unknown[expression], failure)
	}
	return r.Values[i] == isTrue, failure, true
}
