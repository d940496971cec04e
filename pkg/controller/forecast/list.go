// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"
	"errors"
	"fmt"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/engine/trial"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/observe/decode"
)

const (
	// namespacesMost is how many namespaces are listed one by one. For more, one list of all namespaces is cheaper.
	namespacesMost = 20
)

// listing has the listed objects. Each was reduced as it arrived.
type listing struct {
	kept     []*facts.Compact
	cronJobs []*lifecycle.CronJob
	quotas   []*memory.Quota
	// looked is how many objects were looked at, and counted how many of them were evaluated. incomplete says that there are more, for which
	// there was no time or no permission.
	looked, counted int
	incomplete      bool
	errs            []error
}

// lister collects one listing. The lock protects it.
type lister struct {
	*Forecaster
	kinds *kinds.Table
	// conditions are the match conditions to evaluate.
	conditions memory.Conditions
	// running says of which resources objects that have not finished are needed too.
	running func(resource string) bool
	// oneByOne says that the caller may not see all namespaces, so that none of the others is listed.
	oneByOne bool
	lock     sync.Mutex
	listing
}

var errEnough = errors.New("enough objects were looked at")

// list lists all resources concurrently until ctx ends.
func (f *Forecaster) list(ctx context.Context, a *account, snapshot *trial.Snapshot) *listing {
	l := &lister{Forecaster: f, kinds: a.kinds, conditions: snapshot.Conditions, running: snapshot.NeedsRunning}
	l.oneByOne = a.review != nil && len(a.review.hidden) > 0
	var group sync.WaitGroup
	for resource, namespaces := range snapshot.Missing {
		group.Go(func() { l.read(ctx, resource, namespaces) })
	}
	group.Wait()
	return &l.listing
}

// read lists the objects of a resource in namespaces, until the first failure.
func (l *lister) read(ctx context.Context, resource string, namespaces []string) {
	wanted := sets.New(namespaces...)
	if len(namespaces) > namespacesMost && !l.oneByOne {
		namespaces = []string{metav1.NamespaceAll}
	}
	var err error
	for i := 0; i < len(namespaces) && err == nil; i++ {
		err = l.readNamespace(ctx, resource, namespaces[i], wanted)
	}
	if err == nil {
		return
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	l.incomplete = true
	if ctx.Err() == nil && !errors.Is(err, errEnough) {
		if apierrors.IsForbidden(err) {
			err = fmt.Errorf("%w. To grant it to Winnow, an administrator can use: %s", err, gc.GrantAdvice(resource))
		}
		l.errs = append(l.errs, fmt.Errorf("%s cannot be listed: %w", resource, err))
	}
}

// readNamespace lists the objects of one namespace, or of all namespaces, page by page.
func (l *lister) readNamespace(ctx context.Context, resource, namespace string, wanted sets.Set[string]) error {
	kind, err := l.kinds.For(resource)
	if err != nil {
		return err
	}
	which := kind.Ended
	if l.running(resource) {
		which = ""
	}
	reading := decode.NewReading(kind, l.conditionsOf)
	return l.Client.EachPage(ctx, reading, namespace, which, func(page runtime.Object, _ metav1.ListInterface) error {
		return meta.EachListItem(page, func(object runtime.Object) error { return l.add(kind, object, wanted) })
	})
}

func (l *lister) conditionsOf(resource string) map[string]*lifecycle.Conditions {
	return l.conditions[resource]
}

// add reduces an object and adds it to the listing. It skips running objects that can finish, unless decisions depend on them too.
func (l *lister) add(k *kinds.Kind, object runtime.Object, wanted sets.Set[string]) error {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.looked == l.listedMost {
		return errEnough
	}
	l.looked++
	if m, ok := object.(metav1.Object); !ok || !wanted.Has(m.GetNamespace()) {
		return nil
	}
	l.counted++
	switch object := object.(type) {
	case *batchv1.CronJob:
		l.cronJobs = append(l.cronJobs, lifecycle.FromCronJob(object))
	case *corev1.ResourceQuota:
		l.quotas = append(l.quotas, memory.QuotaOf(object))
	default:
		kept, err := decode.Fact(k, object)
		if err != nil {
			return err
		}
		if kept.Finished || !k.Finishes || l.running(k.Resource) {
			l.kept = append(l.kept, kept)
		}
	}
	return nil
}
