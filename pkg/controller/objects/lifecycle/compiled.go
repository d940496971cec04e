// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/expressions"
)

// Compiled is a compiled ResourceLifecycle. It is immutable.
type Compiled struct {
	resource            string
	kind                schema.GroupKind
	when, succeeded, at *expressions.Expression // nil if the objects do not finish
	nativeTTL           *expressions.Expression // nil if no object has a native TTL
	needs               *expressions.Expression // nil if no object needs anything that is independent of it
	fields              [][]string
}

// Compile compiles the lifecycle of a resource whose objects are of this kind.
func Compile(resource string, kind schema.GroupKind, spec *gc.ResourceLifecycleSpec) (*Compiled, error) {
	c := &Compiled{resource: resource, kind: kind}
	type field struct {
		name, text string
		result     expressions.Result
		into       **expressions.Expression
	}
	var fields []field
	if f := spec.Finished; f != nil {
		fields = append(fields, field{fieldWhen, f.When, expressions.Bool, &c.when},
			field{fieldSucceeded, f.Succeeded, expressions.Bool, &c.succeeded}, field{fieldAt, f.At, expressions.Time, &c.at})
	}
	if spec.NativeTTL != "" {
		fields = append(fields, field{fieldNativeTTL, spec.NativeTTL, expressions.Duration, &c.nativeTTL})
	}
	if spec.Needs != "" {
		fields = append(fields, field{fieldNeeds, spec.Needs, expressions.Names, &c.needs})
	}
	for _, e := range fields {
		compiled, err := expressions.Stored(e.text, e.result)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		*e.into = compiled
		c.fields = expressions.Union(c.fields, compiled.Fields())
	}
	return c, nil
}

// Paths of the expressions, for errors.
const (
	fieldWhen      = "spec.finished.when"
	fieldSucceeded = "spec.finished.succeeded"
	fieldAt        = "spec.finished.at"
	fieldNativeTTL = "spec.nativeTTL"
	fieldNeeds     = "spec.needs"
)

// Fields returns the paths of the object that the expressions read, as expressions.Union returns them.
func (c *Compiled) Fields() [][]string { return c.fields }

// Finishes reports whether objects of the resource finish.
func (c *Compiled) Finishes() bool { return c.when != nil }

// Needs reports whether an object of the resource may need something that is independent of it otherwise.
func (c *Compiled) Needs() bool { return c.needs != nil }

// Fact reduces an object that has at least Fields and MetadataFields.
func (c *Compiled) Fact(object *unstructured.Unstructured) (*Fact, error) {
	f, err := FromUnstructured(c.resource, c.kind, object)
	if err != nil {
		return nil, err
	}
	evaluated := expressions.NewObject(object.Object, expressions.LifecycleBudget)
	err = c.evaluateNeeds(f, evaluated)
	if err == nil && c.when != nil {
		err = c.evaluate(f, evaluated)
	}
	if err != nil {
		f.Failed = truncate(err.Error(), maxFailedLength)
	}
	return f, nil
}

// FromUnstructured reduces an object of which only the metadata is read. Such an object does not finish.
func FromUnstructured(resource string, kind schema.GroupKind, object *unstructured.Unstructured) (*Fact, error) {
	m := struct {
		metav1.ObjectMeta `json:"metadata"`
	}{}
	metadata := map[string]any{"metadata": object.Object["metadata"]}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(metadata, &m); err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	return newFact(resource, kind, &m.ObjectMeta)
}

// maxFailedLength bounds the length of Failed, which may repeat values of the object.
const maxFailedLength = 512

// evaluateNeeds sets the names of what the object needs.
func (c *Compiled) evaluateNeeds(f *Fact, object *expressions.Object) error {
	if c.needs == nil {
		return nil
	}
	names, err := c.needs.Names(object)
	if err == nil {
		f.Needs, err = appendNames(nil, names)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", fieldNeeds, err)
	}
	return nil
}

// appendNames appends a string, or all strings of a list, except empty ones.
func appendNames(out []string, names any) ([]string, error) {
	switch names := names.(type) {
	case nil:
		return out, nil
	case string:
		if names != "" {
			out = append(out, names)
		}
		return out, nil
	case []any:
		for _, name := range names {
			var err error
			if out, err = appendNames(out, name); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return nil, fmt.Errorf("%T is neither a name nor a list of names", names)
}

// evaluate sets the finish and the native TTL of a fact if no expression fails. Otherwise it sets nothing.
func (c *Compiled) evaluate(f *Fact, object *expressions.Object) error {
	finished, err := c.when.Bool(object)
	if err != nil {
		return fmt.Errorf("%s: %w", fieldWhen, err)
	}
	if !finished {
		return nil
	}
	succeeded, err := c.succeeded.Bool(object)
	if err != nil {
		return fmt.Errorf("%s: %w", fieldSucceeded, err)
	}
	at, err := c.at.Time(object)
	if err != nil {
		return fmt.Errorf("%s: %w", fieldAt, err)
	}
	var ttl *time.Duration
	if c.nativeTTL != nil {
		if ttl, err = c.nativeTTL.Duration(object); err != nil {
			return fmt.Errorf("%s: %w", fieldNativeTTL, err)
		}
	}
	outcome, doubt := gc.OutcomeFailed, ""
	if succeeded {
		outcome = gc.OutcomeSucceeded
	}
	if at.IsZero() {
		doubt = "its status does not say when it finished"
	}
	f.NativeTTL = ttl
	f.finish(outcome, at, doubt)
	return nil
}
