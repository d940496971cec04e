// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/keymutex"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// limit limits the number of policies in a namespace, because each of them is evaluated for every object. Replicas that create policies at
// the same moment may exceed the limit by one each.
type limit struct {
	most int // negative for no limit
	kind string
	list func(context.Context, *metainternalversion.ListOptions) (runtime.Object, error)
	// creating is locked by namespace while a policy is created.
	creating keymutex.KeyMutex
}

// lockedAtOnce is the number of locks that the namespaces share.
const lockedAtOnce = 64

// onCreate refuses one policy too many, after all other checks. Until done is called, no other policy is created in the namespace.
func (l *limit) onCreate(then rest.ValidateObjectFunc) (validate rest.ValidateObjectFunc, done func()) {
	if l == nil || l.most < 0 {
		return then, func() {}
	}
	var once sync.Once // The store calls validate again after a conflict.
	locked := ""
	validate = func(ctx context.Context, obj runtime.Object) error {
		if err := then(ctx, obj); err != nil {
			return err
		}
		p := obj.(Policy)
		once.Do(func() {
			locked = p.GetNamespace()
			l.creating.LockKey(locked)
		})
		return l.check(ctx, p)
	}
	return validate, func() {
		if locked != "" {
			_ = l.creating.UnlockKey(locked) // According to its documentation it never fails.
		}
	}
}

func (l *limit) check(ctx context.Context, p Policy) error {
	list, err := l.list(ctx, &metainternalversion.ListOptions{Limit: int64(max(l.most, 1))})
	if err != nil {
		return fmt.Errorf("cannot count the policies of the namespace: %w", err)
	}
	if meta.LenList(list) < l.most {
		return nil
	}
	why := fmt.Sprintf(
		"namespace %q already has the maximum of %d policies; combine rules into one policy, delete a policy, or ask an operator "+
			"to raise --max-policies-per-namespace of winnow-apiserver",
		p.GetNamespace(),
		l.most,
	)
	return apierrors.NewInvalid(gc.Kind(l.kind), p.GetName(), field.ErrorList{field.Forbidden(field.NewPath("metadata", "namespace"), why)})
}
