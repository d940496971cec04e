// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decode turns what the API server sends into facts. It decodes only what facts, lifecycles and match conditions read, because
// decoding costs more than everything else that is done with most objects. Nothing is requested here.
package decode

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/expressions"
)

// Reading says what is read of the objects of a kind.
type Reading struct {
	Kind *kinds.Kind
	// conditions returns the match conditions that are evaluated for each object when it is decoded, by namespace.
	conditions func(resource string) map[string]*lifecycle.Conditions
	content    content
	// unread has what is not decoded of objects and lists in protobuf, by their kind, unless match conditions may read it.
	unread map[string]*stripping
	// fields are decoded of objects in protobuf, and nothing else. If it is nil, everything is decoded that is not unread.
	fields message
	// empty are empty objects of the kind, into which others are decoded before they are reduced.
	empty *sync.Pool
	// pace is nil if match conditions are always evaluated.
	pace *Pace
}

// Pace says when match conditions are evaluated, and takes in what that has cost.
type Pace struct {
	// May reports whether those for the objects of a resource in a namespace are evaluated now.
	May func(resource, namespace string) bool
	// Charge takes in a cost, in units of CEL, of evaluating them for an object of so many bytes.
	Charge func(namespace string, cost uint64, bytes int)
}

// content is how much of its objects is requested for a kind of which decisions need only the metadata.
type content int

const (
	// bare is the metadata. No match conditions are evaluated.
	bare content = iota
	// metadataAlone is the metadata too, with the match conditions that read nothing else.
	metadataAlone
	// wholeObject is everything. It is also for all other kinds.
	wholeObject
)

// NewReading returns what is to be read now. conditions returns the match conditions for a resource, by namespace.
func NewReading(k *kinds.Kind, conditions func(resource string) map[string]*lifecycle.Conditions) Reading {
	r := Reading{Kind: k, conditions: conditions, unread: unreadOf, empty: &sync.Pool{New: func() any { return k.New() }}}
	if _, ok := k.New().(*metav1.PartialObjectMetadata); !ok {
		r.content = wholeObject
		return r
	}
	for _, c := range r.present() {
		r.content = max(r.content, neededFor(c))
	}
	return r
}

// Paced returns a reading with another pace.
func (r Reading) Paced(p Pace) Reading {
	r.pace = &p
	return r
}

// Bare reports whether only the metadata is read, and no match conditions are evaluated.
func (r *Reading) Bare() bool { return r.content == bare }

// Whole reports whether the objects are requested whole.
func (r *Reading) Whole() bool { return r.content == wholeObject }

// Codecs returns what decodes the answers, and what to accept: an empty string if the client may choose. metadata is the kind that is
// requested if match conditions read only the metadata.
func (r *Reading) Codecs(metadata string) (codecs runtime.NegotiatedSerializer, accept string) {
	switch {
	case r.fields != nil:
		return fieldCodecs{newPartialCodecs(*r)}, ""
	case r.typed():
		return strippedCodecs{typedCodecs, *r}, ""
	case r.content == metadataAlone:
		return newPartialCodecs(*r), runtime.ContentTypeJSON + ";g=meta.k8s.io;v=v1;as=" + metadata
	}
	return newPartialCodecs(*r), runtime.ContentTypeJSON
}

var typedCodecs = rest.CodecFactoryForGeneratedClient(scheme.Scheme, scheme.Codecs).WithoutConversion()

// present returns the match conditions to evaluate now, by namespace.
func (r *Reading) present() map[string]*lifecycle.Conditions { return r.conditions(r.Kind.Resource) }

// Suffices reports whether everything is read that must be read now.
func (r *Reading) Suffices() bool { return NewReading(r.Kind, r.conditions).content <= r.content }

// neededFor returns what must be requested for match conditions.
func neededFor(c *lifecycle.Conditions) content {
	if c.ReadMetadata() {
		return metadataAlone
	}
	return wholeObject
}

// typed reports whether there is a Go type for the objects, into which they are decoded.
func (r *Reading) typed() bool {
	switch r.Kind.New().(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		return false
	}
	return true
}

// reads reports whether the objects that are requested have this kind.
func (r *Reading) reads(kind schema.GroupKind) bool {
	if r.content == metadataAlone {
		return kind == metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata").GroupKind()
	}
	return kind == r.Kind.GroupVersionKind.GroupKind()
}

// evaluated is an object with the results of its match conditions.
type evaluated struct {
	metav1.Object
	object  runtime.Object
	results lifecycle.Results
}

// GetObjectKind implements runtime.Object.
func (e *evaluated) GetObjectKind() schema.ObjectKind { return e.object.GetObjectKind() }

// DeepCopyObject implements runtime.Object.
func (e *evaluated) DeepCopyObject() runtime.Object {
	return wrap(e.object.DeepCopyObject(), e.results)
}

func wrap(object runtime.Object, results lifecycle.Results) runtime.Object {
	m, ok := object.(metav1.Object)
	if !ok || results.Conditions == nil {
		return object
	}
	return &evaluated{m, object, results}
}

// conditionsOf returns the match conditions to evaluate for an object of a namespace; nil if there are none, or if not all that they read
// was requested.
func (r *Reading) conditionsOf(namespace string, all map[string]*lifecycle.Conditions) *lifecycle.Conditions {
	if c := all[namespace]; c != nil && neededFor(c) <= r.content {
		return c
	}
	return nil
}

// evaluate returns an object, or the objects of a list, decoded from so many bytes, with the results of match conditions.
func (r *Reading) evaluate(object runtime.Object, all map[string]*lifecycle.Conditions, bytes int) (runtime.Object, error) {
	if !meta.IsListType(object) {
		return r.evaluateOne(object, all, bytes)
	}
	bytes /= max(meta.LenList(object), 1)
	l, err := meta.ListAccessor(object)
	if err != nil || len(all) == 0 {
		return object, err
	}
	out := &internalversion.List{ListMeta: metav1.ListMeta{
		ResourceVersion: l.GetResourceVersion(), Continue: l.GetContinue(), RemainingItemCount: l.GetRemainingItemCount(),
	}}
	return out, meta.EachListItem(object, func(object runtime.Object) error {
		one, err := r.evaluateOne(object, all, bytes)
		out.Items = append(out.Items, one)
		return err
	})
}

func (r *Reading) evaluateOne(object runtime.Object, all map[string]*lifecycle.Conditions, bytes int) (runtime.Object, error) {
	m, ok := object.(metav1.Object)
	if !ok {
		return object, nil
	}
	c := r.conditionsOf(m.GetNamespace(), all)
	switch {
	case c == nil:
		return object, nil
	case r.pace != nil && !r.pace.May(r.Kind.Resource, m.GetNamespace()):
		return wrap(object, c.Waiting()), nil
	}
	managedFields, link := m.GetManagedFields(), m.GetSelfLink()
	m.SetSelfLink("") // See lifecycle.SetContent.
	if !expressions.Overlap(c.Fields(), "metadata", "managedFields") {
		m.SetManagedFields(nil) // Converting them takes almost as long as the rest.
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	content["apiVersion"], content["kind"] = r.Kind.GroupVersionKind.ToAPIVersionAndKind()
	results := r.evaluateAt(m.GetNamespace(), c, content, bytes)
	m.SetManagedFields(managedFields)
	m.SetSelfLink(link)
	return wrap(object, results), nil
}

// evaluateAt evaluates match conditions for an object of so many bytes.
func (r *Reading) evaluateAt(namespace string, c *lifecycle.Conditions, content map[string]any, bytes int) lifecycle.Results {
	if r.pace == nil {
		return c.Evaluate(content)
	}
	results, cost := c.EvaluateCost(content)
	r.pace.Charge(namespace, cost, bytes)
	return results
}
