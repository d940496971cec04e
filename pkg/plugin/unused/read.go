// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package unused

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/objects/references"
	"github.com/winnow-dev/winnow/pkg/controller/observe/decode"
)

// Cluster reads a cluster, with the rights of the caller.
type Cluster interface {
	// Listed returns which resources can be listed, and why others may be missing; empty if none is.
	Listed(ctx context.Context) (all []kinds.Listed, undiscovered string, err error)
	// EachOf lists objects of a namespace, or with "" of all, page by page.
	EachOf(
		ctx context.Context, r decode.Reading, namespace, fieldSelector string, do func(page runtime.Object, m metav1.ListInterface) error,
	) error
}

// Options say what is read.
type Options struct {
	// Namespace is empty for all namespaces.
	Namespace string
	// Resources are those of Claims, Accounts and Services that are reported.
	Resources []string
	OlderThan time.Duration
	Now       time.Time
	// Progress is told how many objects were listed, and how many remain, page by page.
	Progress func(resource string, listed int, remaining int64)
}

// reader reads what a report needs.
type reader struct {
	Cluster
	Options
	lock   sync.Mutex
	finder *Finder
	wanted references.To
}

// Read returns a report on a cluster. Objects are listed before what may refer to them, so that nothing is missed that has come in between.
func Read(ctx context.Context, c Cluster, o Options) (*Report, error) {
	r := &reader{Cluster: c, Options: o, finder: NewFinder()}
	if err := r.readSubjects(ctx); err != nil {
		return nil, err
	}
	if err := r.readReferrers(ctx); err != nil {
		return nil, err
	}
	report := r.finder.Report(o.Now, o.OlderThan)
	report.Namespace = o.Namespace
	return report, nil
}

// source is how the objects of a resource are read.
type source struct {
	kind *kinds.Kind
	to   references.To
	add  func(*Finder, runtime.Object)
}

var sources = map[string]source{
	Claims: {
		kindOf(Claims, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), func() runtime.Object {
			return &corev1.PersistentVolumeClaim{}
		}),
		references.PersistentVolumeClaims,
		func(f *Finder, o runtime.Object) {
			if claim, ok := o.(*corev1.PersistentVolumeClaim); ok {
				f.AddClaim(claim)
			}
		},
	},
	Accounts: {
		kindOf(Accounts, corev1.SchemeGroupVersion.WithKind("ServiceAccount"), func() runtime.Object {
			return &metav1.PartialObjectMetadata{}
		}),
		references.ServiceAccounts,
		func(f *Finder, o runtime.Object) {
			if m, ok := o.(*metav1.PartialObjectMetadata); ok {
				f.AddAccount(&m.ObjectMeta)
			}
		},
	},
	Services: {
		kindOf(Services, corev1.SchemeGroupVersion.WithKind("Service"), func() runtime.Object { return &corev1.Service{} }),
		references.Services,
		func(f *Finder, o runtime.Object) {
			if service, ok := o.(*corev1.Service); ok {
				f.AddService(service)
			}
		},
	},
}

func kindOf(plural string, of schema.GroupVersionKind, empty func() runtime.Object) *kinds.Kind {
	return &kinds.Kind{Resource: kinds.ResourceName(plural, of.Group), GroupVersionKind: of, Plural: plural, New: empty}
}

// readSubjects lists the objects that may be unused. It fails if nothing of them may be listed.
func (r *reader) readSubjects(ctx context.Context) error {
	for _, resource := range r.Resources {
		s := sources[resource]
		err := r.each(ctx, wholly(s.kind), r.Namespace, "", func(o runtime.Object) error {
			s.add(r.finder, o)
			return nil
		})
		switch {
		case apierrors.IsForbidden(err) && len(r.Resources) > 1:
			r.finder.Cannot(resource, in(r.Namespace), mayNot, 0)
			continue
		case err != nil:
			return fmt.Errorf("listing %s: %w", resource, err)
		}
		r.wanted |= s.to
	}
	if r.wanted == 0 {
		return fmt.Errorf("you may list none of what can be reported %s; to report on one namespace: -n NAMESPACE", in(r.Namespace))
	}
	return nil
}

const mayNot = "you may not list them"

func in(namespace string) string {
	if namespace == "" {
		return "in all namespaces"
	}
	return "in namespace " + namespace
}

func wholly(k *kinds.Kind) decode.Reading {
	return decode.NewReading(k, func(string) map[string]*lifecycle.Conditions { return nil })
}

// each calls do with each object, under the lock.
func (r *reader) each(ctx context.Context, of decode.Reading, namespace, fieldSelector string, do func(runtime.Object) error) error {
	return r.EachOf(ctx, of, namespace, fieldSelector, func(page runtime.Object, m metav1.ListInterface) error {
		r.lock.Lock()
		defer r.lock.Unlock()
		r.Progress(of.Kind.Resource, apimeta.LenList(page), ptr.Deref(m.GetRemainingItemCount(), 0))
		return apimeta.EachListItem(page, do)
	})
}

// listsAtOnce is how many resources are listed concurrently.
const listsAtOnce = 4

// readReferrers lists everything that may refer to the objects.
func (r *reader) readReferrers(ctx context.Context) error {
	all, undiscovered, err := r.Listed(ctx)
	if err != nil {
		return err
	}
	if undiscovered != "" {
		r.finder.Cannot("some resources", "", undiscovered, r.wanted)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(listsAtOnce)
	if r.wanted&references.Services != 0 {
		group.Go(func() error {
			return r.note(ctx, endpoints.Resource, r.Namespace, references.Services, r.readEndpoints(ctx))
		})
	}
	for _, l := range all {
		if k := kinds.Reporting(l); k != nil && k.Reader.To()&r.wanted != 0 {
			group.Go(func() error { return r.readReferrer(ctx, k) })
		}
	}
	return group.Wait()
}

// readReferrer lists what may refer to the objects. What may refer to objects in other namespaces is listed in all of them.
func (r *reader) readReferrer(ctx context.Context, k *kinds.Referrer) error {
	namespace, to := r.Namespace, k.Reader.To()&r.wanted
	everywhere := k.OfCustomResource() || k.Resource() == "rolebindings.rbac.authorization.k8s.io"
	if !k.Namespaced || everywhere {
		namespace = ""
	}
	err := r.list(ctx, k, namespace)
	if apierrors.IsForbidden(err) && k.Namespaced && namespace != r.Namespace {
		r.cannot(k.Resource(), "outside namespace "+r.Namespace, mayNot, to)
		namespace = r.Namespace
		err = r.list(ctx, k, namespace)
	}
	return r.note(ctx, k.Resource(), namespace, to, err)
}

func (r *reader) list(ctx context.Context, k *kinds.Referrer, namespace string) error {
	unstructuredOf := decode.UnstructuredFrom(k)
	return r.each(ctx, decode.ReferrerReading(k), namespace, k.FieldSelector, func(o runtime.Object) error {
		u, err := unstructuredOf(o)
		if err == nil {
			r.finder.Refer(k, u)
		}
		return err
	})
}

var endpoints = kindOf("endpointslices", discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"),
	func() runtime.Object { return &discoveryv1.EndpointSlice{} })

func (r *reader) readEndpoints(ctx context.Context) error {
	return r.each(ctx, wholly(endpoints), r.Namespace, "", func(o runtime.Object) error {
		if slice, ok := o.(*discoveryv1.EndpointSlice); ok && len(slice.Endpoints) > 0 {
			r.finder.Endpoints(slice.Namespace, slice.Labels[discoveryv1.LabelServiceName])
		}
		return nil
	})
}

// note notes that something could not be listed. A resource that the cluster does not serve any more has no objects.
func (r *reader) note(ctx context.Context, resource, namespace string, to references.To, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil, apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
	case apierrors.IsForbidden(err):
		r.cannot(resource, in(namespace), mayNot, to)
	default:
		r.cannot(resource, in(namespace), err.Error(), to)
	}
	return nil
}

func (r *reader) cannot(resource, where, why string, to references.To) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.finder.Cannot(resource, where, why, to)
}

// Named returns the resource that a user names, as kubectl takes it.
func Named(name string) (string, error) {
	for resource, names := range map[string][]string{
		Claims:   {"persistentvolumeclaim", "pvc"},
		Accounts: {"serviceaccount", "sa"},
		Services: {"service", "svc"},
	} {
		if name == resource || slices.Contains(names, name) {
			return resource, nil
		}
	}
	if slices.Contains([]string{"configmaps", "configmap", "cm", "secrets", "secret"}, name) {
		return "", errors.New("policies find unused ConfigMaps and Secrets: write a rule with after: Unused, and try it: " +
			"kubectl winnow report -f FILE")
	}
	return "", errors.New(name + " cannot be reported: name persistentvolumeclaims, serviceaccounts or services")
}
