// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/pkg/plugin/session"
	"github.com/winnow-dev/winnow/pkg/plugin/ui"
)

// forever is what the page sends instead of a duration.
const forever = "forever"

// Keep implements ui.Source.
func (s *uiSource) Keep(ctx context.Context, o local.Object, duration string) error {
	options := keepOptions{duration: duration}
	if duration == forever {
		options = keepOptions{forever: true}
	}
	annotations, err := options.annotations(time.Now())
	if err != nil {
		return err
	}
	return s.annotate(ctx, o, annotations)
}

// Release implements ui.Source.
func (s *uiSource) Release(ctx context.Context, o local.Object) error {
	return s.annotate(ctx, o, releasing())
}

// annotate changes the annotations of an object, and waits until Winnow has decided anew, so that the next explanation has the effect.
func (s *uiSource) annotate(ctx context.Context, o local.Object, annotations map[string]*string) error {
	if err := checkNamespace(o.Namespace); err != nil {
		return err
	}
	cluster, server, said, err := s.decides(ctx)
	switch {
	case err != nil:
		return err
	case !server:
		return errors.New("this page does not show what the Winnow of a cluster decides, so it does not keep objects: use kubectl winnow keep")
	}
	t, err := s.ObjectIn(o.Namespace, o.Resource, o.Name)
	if err != nil {
		return err
	}
	if err := lengthens(annotations, t.Content.GetAnnotations()); err != nil {
		return err
	}
	if _, err := session.ExpectKept(t, annotations); err != nil {
		return err
	}
	object, err := patchAnnotations(t, annotations)
	if err != nil {
		return err
	}
	changed, ok := object.(metav1.Object)
	if !ok {
		return fmt.Errorf("the answer is no object but %T", object)
	}
	if _, err = decided(ctx, cluster, said, t.Object, changed.GetResourceVersion()); wait.Interrupted(err) && ctx.Err() == nil {
		return nil // It is annotated. The page reads again anyway.
	}
	return err
}

// keptOf says how an object is kept, and whether the caller may change that.
func (s *uiSource) keptOf(ctx context.Context, t *session.Target, out *ui.Explanation) error {
	cluster, server, _, err := s.decides(ctx)
	if err != nil || !server {
		return err
	}
	if out.MayKeep, err = cluster.May(ctx, "patch", schema.ParseGroupResource(t.Object.Resource), t.Object.Namespace); err != nil {
		return err
	}
	present := t.Content.GetAnnotations()
	for name := range releasing() {
		if value, ok := present[name]; ok {
			if out.Kept == nil {
				out.Kept = map[string]string{}
			}
			out.Kept[name] = value
		}
	}
	return nil
}
