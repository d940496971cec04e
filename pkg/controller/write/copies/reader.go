// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// Reader reads copies from the API server whenever somebody asks. It remembers nothing, so every replica answers the same.
type Reader struct {
	Config
}

// Copies returns a page of copies without their contents, by namespace and then by UID. A page may be short, or empty, and say that there
// are more.
func (r *Reader) Copies(ctx context.Context, q gc.CopyQuery) (gc.CopyPage, error) {
	now := r.Clock.Now()
	found, err := r.Metadata.Resource(Resource).Namespace(q.Namespace).List(ctx, metav1.ListOptions{Limit: q.Limit, Continue: q.Continue})
	if apierrors.IsNotFound(err) {
		err = errUnserved
	}
	if err != nil {
		return gc.CopyPage{}, err
	}
	namespaceUID, err := r.namespaceUID(ctx, q.Namespace)
	if err != nil {
		return gc.CopyPage{}, err
	}
	page := gc.CopyPage{ListMeta: metav1.ListMeta{ResourceVersion: found.ResourceVersion, Continue: found.Continue}}
	for i := range found.Items {
		e := describe(&found.Items[i])
		if e.expired(now) || q.Namespace != "" && e.namespaceUID != namespaceUID {
			continue
		}
		may, err := q.MayList(ctx, e.object.Resource)
		if err != nil {
			return gc.CopyPage{}, err
		}
		if may && selects(&q, &e) {
			page.Items = append(page.Items, e.serve())
		}
	}
	return page, nil
}

// Copy returns a copy, without its content.
func (r *Reader) Copy(ctx context.Context, namespace, name string) (*gc.CleanupCopy, error) {
	m, err := r.Metadata.Resource(Resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, notFound(err, name)
	}
	return r.serve(ctx, m, name)
}

// Content returns a copy with its content.
func (r *Reader) Content(ctx context.Context, namespace, name string) (*gc.CleanupCopy, error) {
	object, err := r.Client.Resource(Resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, notFound(err, name)
	}
	out, err := r.serve(ctx, object, name)
	if err != nil {
		return nil, err
	}
	out.Status.Content, err = decode(object)
	return out, err
}

func (r *Reader) serve(ctx context.Context, m metav1.Object, name string) (*gc.CleanupCopy, error) {
	e := describe(m)
	namespaceUID, err := r.namespaceUID(ctx, e.namespace)
	switch {
	case err != nil:
		return nil, err
	case e.expired(r.Clock.Now()), e.namespaceUID != namespaceUID:
		return nil, notFound(nil, name)
	}
	out := e.serve()
	return &out, nil
}

// namespaceUID returns the UID of a namespace; empty for all namespaces, or if there is none of this name. The copy was read before, so it
// is in this namespace or in an earlier one of the same name, whose objects are not for everybody who may read this one.
func (r *Reader) namespaceUID(ctx context.Context, name string) (types.UID, error) {
	if name == "" {
		return "", nil
	}
	m, err := r.Metadata.Resource(namespaces).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the namespace: %w", err)
	}
	return m.UID, nil
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// notFound is about the copy that users know, and not about what is stored. It leaves other errors as they are.
func notFound(err error, name string) error {
	if err == nil || apierrors.IsNotFound(err) {
		return apierrors.NewNotFound(gc.Resource("cleanupcopies"), name)
	}
	return err
}

// serve returns a copy as the API has it, without its content.
func (e *entry) serve() gc.CleanupCopy {
	return gc.CleanupCopy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: e.namespace, Name: e.name, UID: e.object.UID, ResourceVersion: e.resourceVersion, CreationTimestamp: metav1.NewTime(e.at),
		},
		Status: gc.CleanupCopyStatus{
			Object: e.object, CopyTime: metav1.NewMicroTime(e.at), ExpirationTime: metav1.NewMicroTime(e.until), Bytes: e.bytes,
			RunsAgain: e.runsAgain,
		},
	}
}

// selects reports whether a copy belongs to the query.
func selects(q *gc.CopyQuery, e *entry) bool {
	return gc.SelectsGone(q.Fields, e.object.Resource, e.object.Name, func(field string) string {
		switch field {
		case "metadata.name":
			return e.name
		case "metadata.namespace":
			return e.namespace
		}
		return ""
	})
}
