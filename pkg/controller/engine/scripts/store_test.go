// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package scripts_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/install"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/engine/scope"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// store is the API server: it has the newest state of everything, and all events so far. Replicas observe these one after another.
type store struct {
	now        time.Time
	version    uint64
	namespaces map[string]*metav1.PartialObjectMetadata
	policies   map[types.NamespacedName]metav1.Object // of both kinds
	jobs       map[types.NamespacedName]*lifecycle.Fact
	assessments
	events []event
}

// event tells an engine of one write.
type event func(e *engine.Engine, now time.Time)

func newStore() *store {
	return &store{
		now: testbuilders.Now, namespaces: map[string]*metav1.PartialObjectMetadata{}, policies: map[types.NamespacedName]metav1.Object{},
		jobs: map[types.NamespacedName]*lifecycle.Fact{}, assessments: newAssessments(),
	}
}

func (s *store) next() string {
	s.version++
	return strconv.FormatUint(s.version, 10)
}

func (s *store) setNamespace(name string, labels ...string) {
	m := testbuilders.Namespace(name, s.next(), labels...)
	s.namespaces[name] = m
	s.events = append(s.events, func(e *engine.Engine, now time.Time) { e.SetNamespace(m, now) })
}

func (s *store) setJob(f *lifecycle.Fact) {
	s.next()
	f.ResourceVersion = s.version
	s.jobs[types.NamespacedName{Namespace: f.Namespace, Name: f.Name}] = f
	s.events = append(s.events, func(e *engine.Engine, now time.Time) { e.Upsert(facts.Compress(f), now) })
}

func (s *store) deleteJob(name types.NamespacedName) {
	f := *s.jobs[name]
	s.next()
	f.ResourceVersion = s.version
	delete(s.jobs, name)
	s.events = append(s.events, func(e *engine.Engine, now time.Time) { e.Remove(facts.Compress(&f), now) })
}

// writeSpec writes the next generation of a policy, or the first one if there is none.
func (s *store) writeSpec(kind string, name types.NamespacedName, spec string) error {
	p, err := decodePolicy(kind, name, spec)
	if err != nil {
		return err
	}
	if before := s.policies[name]; before != nil {
		p.SetUID(before.GetUID())
		p.SetGeneration(before.GetGeneration() + 1)
		p.SetAnnotations(before.GetAnnotations())
		*statusOf(p) = *statusOf(before)
	} else {
		p.SetUID(types.UID(fmt.Sprint("uid-", name, "-", s.version)))
		p.SetGeneration(1)
	}
	s.setPolicy(p)
	return nil
}

// decodePolicy returns a policy as the API server serves it, with its defaults.
func decodePolicy(kind string, name types.NamespacedName, spec string) (metav1.Object, error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	manifest := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s, namespace: %q}\nspec:\n  %s\n",
		v1alpha1.SchemeGroupVersion, kind, name.Name, name.Namespace, strings.ReplaceAll(spec, "\n", "\n  "))
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(gc.SchemeGroupVersion)
	obj, _, err := decoder.Decode([]byte(manifest), nil, nil)
	if err != nil {
		return nil, err
	}
	return obj.(metav1.Object), nil
}

func (s *store) annotate(name types.NamespacedName, key, value string) {
	p := copyOf(s.policies[name])
	p.SetAnnotations(map[string]string{key: value})
	s.setPolicy(p)
}

func (s *store) setStatus(name types.NamespacedName, status gc.CleanupPolicyStatus) {
	p := copyOf(s.policies[name])
	*statusOf(p) = status
	s.setPolicy(p)
}

func (s *store) setPolicy(p metav1.Object) {
	p.SetResourceVersion(s.next())
	s.policies[types.NamespacedName{Namespace: p.GetNamespace(), Name: p.GetName()}] = p
	s.events = append(s.events, func(e *engine.Engine, now time.Time) { e.SetPolicy(scope.Observe(p), now) })
}

func (s *store) deletePolicy(name types.NamespacedName) {
	p := copyOf(s.policies[name])
	p.SetResourceVersion(s.next())
	delete(s.policies, name)
	s.events = append(s.events, func(e *engine.Engine, now time.Time) { e.RemovePolicy(policy.StoredOf(p), now) })
}

func copyOf(p metav1.Object) metav1.Object {
	return p.(runtime.Object).DeepCopyObject().(metav1.Object)
}

// statusOf returns the status of a policy of either kind.
func statusOf(p metav1.Object) *gc.CleanupPolicyStatus {
	if p, ok := p.(*gc.ClusterCleanupPolicy); ok {
		return &p.Status
	}
	return &p.(*gc.CleanupPolicy).Status
}

// listPolicies returns all policies of one kind.
func (s *store) listPolicies(kind freshness.Collection) []scope.ObservedPolicy {
	var out []scope.ObservedPolicy
	for name, p := range s.policies {
		if (name.Namespace == "") == (kind == freshness.ClusterPolicies) {
			out = append(out, scope.Observe(p))
		}
	}
	return out
}

// consistentRead returns the result of a consistent read now.
func (s *store) consistentRead() freshness.ConsistentRead {
	contents := func() freshness.Contents {
		return freshness.Contents{Version: strconv.FormatUint(s.version, 10), Revisions: map[types.NamespacedName]freshness.Revision{}}
	}
	r := freshness.ConsistentRead{
		Began: s.now, ServerTime: s.now, Policies: contents(), ClusterPolicies: contents(), Namespaces: contents(),
	}
	for name, p := range s.policies {
		of := r.Policies
		if name.Namespace == "" {
			of = r.ClusterPolicies
		}
		of.Revisions[name] = freshness.SpecRevision(p.GetUID(), p.GetGeneration())
	}
	for name, m := range s.namespaces {
		r.Namespaces.Revisions[types.NamespacedName{Name: name}] = freshness.Revision{UID: m.UID, Version: m.ResourceVersion}
	}
	return r
}
