// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/objects/references"
)

// Fact returns the compact fact of an object of a kind.
func Fact(k *kinds.Kind, object any) (*facts.Compact, error) {
	switch o := object.(type) {
	case *reduced:
		return o.fact, nil
	case *evaluated:
		return factOf(k, o.object, o.results)
	}
	return factOf(k, object, lifecycle.Results{})
}

// factOf returns the compact fact of an object with the results of its match conditions.
func factOf(k *kinds.Kind, object any, results lifecycle.Results) (*facts.Compact, error) {
	f, err := k.Fact(object)
	if err != nil {
		return nil, err
	}
	f.Conditions = results
	return facts.Compress(f), nil
}

// ReferrerReading returns what is read of referrers.
func ReferrerReading(k *kinds.Referrer) Reading {
	r := NewReading(k.Kind(), func(string) map[string]*lifecycle.Conditions { return nil })
	if r.unread = nil; r.typed() {
		r.fields = messageOf(reflect.TypeOf(r.Kind.New()).Elem(), append(metadataOfReferrers(), r.Kind.Fields...))
	}
	return r
}

// ReferringOf returns what an object refers to. The error says what could not be read; see kinds.Referrer.
func ReferringOf(k *kinds.Referrer, object *unstructured.Unstructured) ([]knowledge.Referring, error) {
	refs, exempt, err := k.References(object)
	of := ReferrerOf(object)
	var out []knowledge.Referring
	if source := k.Source(); source != "" {
		out = append(out, knowledge.Referring{Source: source, Referrer: of, Keys: references.Keys(refs)})
	}
	if source := k.Exemptions(); source != "" {
		own := knowledge.Referring{Source: source, Referrer: of}
		if exempt != "" {
			own.Name, own.Keys = exempt, references.Keys([]references.Reference{k.Itself(of.Namespace, of.Name)})
		}
		out = append(out, own)
	}
	return out, err
}

// ReferrerOf identifies an object.
func ReferrerOf(object metav1.Object) references.Referrer {
	of := references.Referrer{UID: object.GetUID(), Namespace: object.GetNamespace(), Name: object.GetName()}
	if of.UID == "" { // Not all API servers of others set it.
		of.UID = types.UID(of.Namespace + "/" + of.Name)
	}
	return of
}

// metadataOfReferrers are the fields of the metadata that are read of each referrer.
func metadataOfReferrers() (out [][]string) {
	for _, field := range []string{
		"annotations", "deletionTimestamp", "finalizers", "labels", "name", "namespace", "ownerReferences", "resourceVersion", "uid",
	} {
		out = append(out, []string{"metadata", field})
	}
	return out
}

// UnstructuredFrom returns a function that returns an object as ReferringOf takes it. It fails if the API server has answered in another
// form than it was asked for. The object must not be used otherwise.
func UnstructuredFrom(k *kinds.Referrer) func(object any) (*unstructured.Unstructured, error) {
	_, bare := k.Kind().New().(*metav1.PartialObjectMetadata)
	return func(object any) (*unstructured.Unstructured, error) {
		switch o := object.(type) {
		case *Encoded:
			if !bare {
				return o.Unstructured()
			}
		case *unstructured.Unstructured:
			if !bare {
				return o, nil
			}
		case *metav1.PartialObjectMetadata:
			if bare {
				o.SetManagedFields(nil) // To convert them takes long.
				content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
				return &unstructured.Unstructured{Object: content}, err
			}
		}
		return nil, fmt.Errorf("%T is no object of %s", object, k.Resource())
	}
}

// Unreadable is what an object refers to that cannot be decoded: everything in every namespace.
func Unreadable(k *kinds.Referrer, object any) []knowledge.Referring {
	everything := references.Keys([]references.Reference{{
		To: references.Secrets | references.ConfigMaps, Namespace: references.All, Name: references.All,
	}})
	of := references.Referrer{UID: "unreadable", Name: "unreadable"}
	if m, err := meta.Accessor(object); err == nil && k.Source() != "" { // The name of an exemption is its reason.
		of = ReferrerOf(m)
	}
	return []knowledge.Referring{{Source: k.Sources()[0], Referrer: of, Keys: everything}}
}
