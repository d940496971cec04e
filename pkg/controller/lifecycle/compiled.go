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
	when, succeeded, at *expressions.Expression
	nativeTTL           *expressions.Expression // nil if no object has a native TTL
	dependents          gc.LifecycleDependents
	fields              [][]string
}

// Compile compiles the lifecycle of a resource whose objects are of this kind. spec.Finished must be set.
func Compile(resource string, kind schema.GroupKind, spec *gc.ResourceLifecycleSpec) (*Compiled, error) {
	c := &Compiled{resource: resource, kind: kind, dependents: spec.Dependents}
	for _, e := range []struct {
		field, text string
		result      expressions.Result
		into        **expressions.Expression
	}{
		{fieldWhen, spec.Finished.When, expressions.Bool, &c.when},
		{fieldSucceeded, spec.Finished.Succeeded, expressions.Bool, &c.succeeded},
		{fieldAt, spec.Finished.At, expressions.Time, &c.at},
		{fieldNativeTTL, spec.NativeTTL, expressions.Duration, &c.nativeTTL},
	} {
		if e.text == "" && e.field == fieldNativeTTL {
			continue
		}
		compiled, err := expressions.Stored(e.text, e.result)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.field, err)
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
)

// Fields returns the paths of the object that the expressions read, as expressions.Union returns them.
func (c *Compiled) Fields() [][]string { return c.fields }

// Independent reports whether finished objects that an object of this resource controls count as objects without an owner.
func (c *Compiled) Independent() bool { return c.dependents == gc.LifecycleIndependent }

// Fact reduces an object that has at least Fields and MetadataFields.
func (c *Compiled) Fact(object *unstructured.Unstructured) (*Fact, error) {
	f, err := FromUnstructured(c.resource, c.kind, object)
	if err != nil {
		return nil, err
	}
	if err := c.evaluate(f, expressions.NewObject(object.Object, expressions.LifecycleBudget)); err != nil {
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
