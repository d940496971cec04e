// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/observe"
	"github.com/winnow-dev/winnow/pkg/controller/observe/decode"
)

// manifestObjects are the objects of Manifests, as a cluster has them. It implements source.
type manifestObjects struct {
	served []kinds.Listed
	byName map[string][]*unstructured.Unstructured // by resource
}

func newManifestObjects(m *Manifests) *manifestObjects {
	out := &manifestObjects{byName: map[string][]*unstructured.Unstructured{}}
	for _, u := range m.Objects {
		served := m.served(u.GroupVersionKind())
		if out.byName[served.Resource()] == nil {
			out.served = append(out.served, served)
		}
		out.byName[served.Resource()] = append(out.byName[served.Resource()], u)
	}
	return out
}

var newCatalog = sync.OnceValues(kinds.NewCatalog)

// table returns the table of kinds. A resource without objects is not in it.
func (o *manifestObjects) table(lifecycles []*gc.ResourceLifecycle) (*kinds.Table, error) {
	catalog, err := newCatalog()
	if err != nil {
		return nil, fmt.Errorf("the built-in lifecycles: %w", err)
	}
	users := map[string]*gc.ResourceLifecycle{}
	for _, l := range lifecycles {
		l.ObjectMeta = stored(&l.ObjectMeta)
		users[l.Name] = l
	}
	var deletable []kinds.Served
	for _, l := range o.served {
		if l.Namespaced {
			deletable = append(deletable, l.Served)
		}
	}
	return catalog.Table(deletable, users, kinds.Builtin()).WithReferrers(catalog.Referrers(o.served, users, nil), ""), nil
}

// May implements source.
func (o *manifestObjects) May(context.Context, string, schema.GroupResource, string) (bool, error) {
	return true, nil
}

// Pages implements source.
func (o *manifestObjects) Pages(_ context.Context, r decode.Reading, namespace string, add func(observe.Page)) error {
	var page observe.Page
	err := o.each(r, namespace, "", func(object runtime.Object) error {
		k, err := decode.Fact(r.Kind, object)
		page.Facts = append(page.Facts, k)
		return err
	})
	if err == nil {
		add(page)
	}
	return err
}

// EachPage implements source.
func (o *manifestObjects) EachPage(
	_ context.Context, r decode.Reading, namespace, fieldSelector string, do func(runtime.Object, metav1.ListInterface) error,
) error {
	list := &internalversion.List{}
	err := o.each(r, namespace, fieldSelector, func(object runtime.Object) error {
		list.Items = append(list.Items, object)
		return nil
	})
	if err != nil {
		return err
	}
	return do(list, list)
}

// EachReferring implements source.
func (o *manifestObjects) EachReferring(
	_ context.Context, k *kinds.Referrer, namespace string, do func([]knowledge.Referring),
) error {
	unstructuredOf := decode.UnstructuredFrom(k)
	return o.each(decode.ReferrerReading(k), namespace, k.FieldSelector, func(object runtime.Object) error {
		u, err := unstructuredOf(object)
		if err == nil {
			all, _ := decode.ReferringOf(k, u) // An object that cannot be read refers to everything.
			do(all)
		}
		return err
	})
}

// each decodes the objects of a resource. The only field selector is the type of a Secret.
func (o *manifestObjects) each(r decode.Reading, namespace, fieldSelector string, do func(runtime.Object) error) error {
	selector, err := fields.ParseSelector(fieldSelector)
	if err != nil {
		return err
	}
	for _, u := range o.byName[r.Kind.Resource] {
		kind, _, _ := unstructured.NestedString(u.Object, "type")
		if namespace != "" && u.GetNamespace() != namespace || !selector.Matches(fields.Set{"type": kind}) {
			continue
		}
		encoded, err := json.Marshal(u.Object)
		if err != nil {
			return err
		}
		object, err := r.Manifest(encoded)
		if err == nil {
			err = do(object)
		}
		if err != nil {
			return fmt.Errorf("%s/%s: %w", r.Kind.Resource, u.GetName(), err)
		}
	}
	return nil
}
