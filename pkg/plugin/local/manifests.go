// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// Manifests are everything that a cluster has. They are complete: what is not among them does not exist.
type Manifests struct {
	Policies        []*gc.CleanupPolicy
	ClusterPolicies []*gc.ClusterCleanupPolicy
	Lifecycles      []*gc.ResourceLifecycle
	// Objects are all others, such as Jobs, Namespaces and CustomResourceDefinitions. See Complete.
	Objects []*unstructured.Unstructured
	Marks   []Mark
}

// Mark is what Winnow has stored about an object, because the object does not say it itself.
type Mark struct {
	Object
	// Since is when Winnow saw first that a ConfigMap or Secret is unused, that another object has finished, or that a rule with
	// after: Matched matches it.
	Since time.Time
	// Notice is the notice of its deletion that was given.
	Notice policy.Announcement
}

// ObjectOf names an object of Manifests.
func (m *Manifests) ObjectOf(u *unstructured.Unstructured) Object {
	return Object{m.served(u.GroupVersionKind()).Resource(), u.GetNamespace(), u.GetName()}
}

// Controller names the controller of an object; false if it has none.
func (m *Manifests) Controller(u *unstructured.Unstructured) (Object, bool) {
	c := metav1.GetControllerOf(u)
	if c == nil {
		return Object{}, false
	}
	return m.owner(u, c), true
}

func (m *Manifests) owner(u *unstructured.Unstructured, o *metav1.OwnerReference) Object {
	return Object{m.served(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)).Resource(), u.GetNamespace(), o.Name}
}

// Complete adds what the API server sets: the namespace, the UID and the resource version of each object, and the UIDs of owners. It fails
// if there are two objects of the same name, or if the name of a resource is in doubt.
func (m *Manifests) Complete(namespace string) error {
	if err := errors.Join(m.twice(), m.doubtful()); err != nil {
		return err
	}
	uids := map[Object]types.UID{}
	for _, u := range m.Objects {
		if !m.served(u.GroupVersionKind()).Namespaced {
			u.SetNamespace("")
		} else if u.GetNamespace() == "" {
			u.SetNamespace(namespace)
		}
		name := m.ObjectOf(u)
		if _, twice := uids[name]; twice {
			return fmt.Errorf("there are two objects %s in namespace %s", name.field(), name.Namespace)
		}
		u.SetUID(cmp.Or(u.GetUID(), uidOf(name)))
		u.SetResourceVersion(cmp.Or(u.GetResourceVersion(), "1"))
		uids[name] = u.GetUID()
	}
	for _, u := range m.Objects {
		owners := u.GetOwnerReferences()
		for i := range owners {
			owner := m.owner(u, &owners[i])
			owners[i].UID = cmp.Or(owners[i].UID, uids[owner], uidOf(owner))
		}
		if len(owners) > 0 {
			u.SetOwnerReferences(owners)
		}
	}
	return nil
}

// twice fails if there are two policies or two lifecycles of the same name.
func (m *Manifests) twice() error {
	var names []string
	for _, p := range m.Policies {
		names = append(names, fmt.Sprintf("CleanupPolicies %s in namespace %s", p.Name, p.Namespace))
	}
	for _, p := range m.ClusterPolicies {
		names = append(names, "ClusterCleanupPolicies "+p.Name)
	}
	for _, l := range m.Lifecycles {
		names = append(names, "ResourceLifecycles "+l.Name)
	}
	seen := sets.New[string]()
	for _, name := range names {
		if seen.Has(name) {
			return fmt.Errorf("there are two %s", name)
		}
		seen.Insert(name)
	}
	return nil
}

// uidOf returns the UID of an object that has none, the same each time.
func uidOf(o Object) types.UID {
	return types.UID(uuid.NewSHA1(uuid.NameSpaceOID, []byte(o.Namespace+"/"+o.field())).String())
}

// World returns what the manifests say at a time. They must be complete.
func (m *Manifests) World(ctx context.Context, now time.Time) (*World, error) {
	s := &setting{policies: m.Policies, clusterPolicies: m.ClusterPolicies, namespaces: m.namespaces(), permitted: true}
	for _, p := range m.Policies {
		p.ObjectMeta = stored(&p.ObjectMeta)
	}
	for _, p := range m.ClusterPolicies {
		p.ObjectMeta = stored(&p.ObjectMeta)
	}
	from := newManifestObjects(m)
	var err error
	if s.kinds, err = from.table(m.Lifecycles); err != nil {
		return nil, err
	}
	s.marks = m.marks()
	w := newWorld(s, Options{Now: now, Resources: s.kinds.Deletable()})
	return w, w.readObjects(ctx, from)
}

// stored returns metadata as the API server stores it.
func stored(m *metav1.ObjectMeta) metav1.ObjectMeta {
	out := newMeta(m.Namespace, m.Name)
	out.Labels, out.Annotations = m.Labels, m.Annotations
	return out
}

// namespaces returns the Namespaces, and those without a manifest in which anything is.
func (m *Manifests) namespaces() []*metav1.PartialObjectMetadata {
	names := map[string]*metav1.PartialObjectMetadata{}
	add := func(name string) {
		if name != "" && names[name] == nil {
			names[name] = &metav1.PartialObjectMetadata{ObjectMeta: newMeta("", name)}
		}
	}
	for _, p := range m.Policies {
		add(p.Namespace)
	}
	for _, u := range m.Objects {
		add(u.GetNamespace())
	}
	for _, u := range m.Objects {
		if u.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
			names[u.GetName()] = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(), Labels: u.GetLabels(),
				Annotations: u.GetAnnotations(), DeletionTimestamp: u.GetDeletionTimestamp(),
			}}
		}
	}
	return slices.Collect(maps.Values(names))
}

// marks returns the marks as they are stored, for each namespace.
func (m *Manifests) marks() []*memory.Marks {
	out := []*memory.Marks{}
	rules, uids := m.matchIDs(), map[Object]types.UID{}
	for _, u := range m.Objects {
		uids[m.ObjectOf(u)] = u.GetUID()
	}
	for _, mark := range m.Marks {
		i := slices.IndexFunc(out, func(s *memory.Marks) bool { return s.Namespace == mark.Namespace })
		if i < 0 {
			i, out = len(out), append(out, &memory.Marks{
				NamespacedName: types.NamespacedName{Namespace: mark.Namespace, Name: "marks-0"}, ResourceVersion: "1",
				Unused: map[types.UID]time.Time{}, Finished: map[types.UID]memory.FinishMark{}, Announced: map[types.UID]policy.Announcement{},
				Matched: map[memory.MatchKey]memory.MatchMark{},
			})
		}
		uid := uids[mark.Object]
		switch {
		case mark.Since.IsZero():
		case gc.CanBeUnused(mark.Resource):
			out[i].Unused[uid] = mark.Since
		default:
			out[i].Finished[uid] = memory.FinishMark{Since: mark.Since, Version: 1}
		}
		for _, rule := range rules {
			if !mark.Since.IsZero() { // A mark of a rule that does not match the object has no effect.
				out[i].Matched[memory.MatchKey{UID: uid, Rule: rule}] = memory.MatchMark{Since: mark.Since}
			}
		}
		if !mark.Notice.Given.IsZero() {
			out[i].Announced[uid] = mark.Notice
		}
	}
	return out
}

// matchIDs returns the IDs of all rules with after: Matched. A policy that does not compile decides nothing.
func (m *Manifests) matchIDs() []lifecycle.MatchID {
	var out []lifecycle.MatchID
	for _, p := range m.Policies {
		if compiled, err := policy.Compile(p); err == nil {
			out = append(out, compiled.MatchIDs()...)
		}
	}
	for _, p := range m.ClusterPolicies {
		if compiled, err := policy.CompileCluster(p); err == nil {
			out = append(out, compiled.MatchIDs()...)
		}
	}
	return out
}
