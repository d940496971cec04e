// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package copies reads the copies of deleted objects from the server, and makes from them what can be created again.
package copies

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	gcclient "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/typed/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/pkg/plugin/records"
)

// perPage is how many copies are listed at once.
const perPage = 500

// Newest returns the newest copy of an object, without its content; nil if there is none. With a UID, only the object of that UID counts.
func Newest(
	ctx context.Context, client gcclient.CleanupCopiesGetter, object local.Object, uid types.UID,
) (*v1alpha1.CleanupCopy, error) {
	var newest *v1alpha1.CleanupCopy
	selector := fields.OneTermEqualSelector(gc.FieldObject, object.Resource+"/"+object.Name).String()
	for options := (metav1.ListOptions{FieldSelector: selector, Limit: perPage}); ; {
		page, err := client.CleanupCopies(object.Namespace).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("listing cleanupcopies %s: %w", gc.InNamespace(object.Namespace), err)
		}
		for i := range page.Items {
			c := &page.Items[i]
			if uid != "" && c.Status.Object.UID != uid {
				continue
			}
			if newest == nil || newest.Status.CopyTime.Time.Before(c.Status.CopyTime.Time) {
				newest = c
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return newest, nil
		}
	}
}

// Doubt returns why it is not known that Winnow deleted an object in the state of its copy; empty if a record of the deletion says so.
// Winnow stores a copy before it sends the DELETE, so somebody else may have changed and deleted the object since.
func Doubt(ctx context.Context, client gcclient.CleanupRecordsGetter, c *v1alpha1.CleanupCopy) string {
	selector := fields.OneTermEqualSelector("metadata.name", string(c.Status.Object.UID))
	known, _, err := records.Read(ctx, client, records.Query{Namespace: c.Namespace, Fields: selector})
	if err != nil {
		return "Winnow does not say if it deleted the object in this state: " + err.Error()
	}
	for i := range known {
		if known[i].Status.Object == c.Status.Object {
			return ""
		}
	}
	if len(known) > 0 {
		return fmt.Sprintf("Winnow deleted the object in another state than the one that was copied (resourceVersion %s, and not %s)",
			known[0].Status.Object.ResourceVersion, c.Status.Object.ResourceVersion)
	}
	return "no record says that Winnow deleted the object in this state. Records appear a few seconds after deletions; otherwise, somebody " +
		"else may have changed and deleted it after it was copied"
}

// Restorable returns what can be created from the content of a copy. It keeps the name, the labels and the annotations, and no other
// metadata:
//
//   - The API server sets the UID, resourceVersion, generation and times itself.
//   - The owner is likely to be gone, and then the garbage collector would delete the object at once.
//   - What needs a finalizer adds it again. Without it, nobody would ever remove the finalizer.
//   - Managed fields would give fields to managers that do not know the object.
func Restorable(c *v1alpha1.CleanupCopy) (*unstructured.Unstructured, error) {
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON([]byte(c.Status.Content)); err != nil {
		return nil, fmt.Errorf("the content of the copy cannot be read: %w", err)
	}
	old, ok := out.Object["metadata"].(map[string]any)
	if !ok {
		return nil, errors.New("the content of the copy has no metadata")
	}
	if out.GetName() == "" || out.GetName() != c.Status.Object.Name || out.GetNamespace() != c.Namespace {
		return nil, fmt.Errorf("the content of the copy is another object: %s/%s", out.GetNamespace(), out.GetName())
	}
	kept := map[string]any{"name": old["name"], "namespace": old["namespace"]}
	for _, key := range []string{"labels", "annotations"} {
		if value, ok := old[key].(map[string]any); ok && len(value) > 0 {
			kept[key] = value
		}
	}
	out.Object["metadata"] = kept
	return out, nil
}
