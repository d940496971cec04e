// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// mostUnreadable is how many objects the warnings of a list name.
const mostUnreadable = 3

// warnUnreadable adds warnings about objects that this version does not fully understand; objects is one or a list. There are none for this
// server itself, which uses the annotation.
func (r *REST) warnUnreadable(ctx context.Context, objects runtime.Object) {
	if caller, ok := genericapirequest.UserFrom(ctx); ok && caller.GetName() == user.APIServerUser {
		return
	}
	found := 0
	warn := func(object runtime.Object) error {
		o, ok := object.(Object)
		if !ok || gc.Unreadable(o) == "" {
			return nil
		}
		if found++; found <= mostUnreadable {
			name := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
			warning.AddWarning(
				ctx,
				"",
				fmt.Sprintf("%s %q cannot be changed, because this version of Winnow does not understand all of it: %s",
					r.SingularQualifiedResource.Resource, strings.TrimPrefix(name.String(), "/"), gc.Unreadable(o)),
			)
		}
		return nil
	}
	if meta.IsListType(objects) {
		_ = meta.EachListItem(objects, warn) // It fails only if warn does, which it never does.
	} else {
		_ = warn(objects)
	}
	if more := found - mostUnreadable; more > 0 {
		warning.AddWarning(
			ctx,
			"",
			fmt.Sprintf("%d more cannot be changed either; see their annotation %s", more, gc.AnnotationUnreadable),
		)
	}
}
