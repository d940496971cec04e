// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/objects/references"
)

// Served is a resource that the cluster serves, in the version that is read.
type Served struct {
	schema.GroupVersionKind
	Plural string
}

// Resource returns the name that policies use.
func (s Served) Resource() string { return ResourceName(s.Plural, s.Group) }

// ResourceName returns the name that policies use for a resource: "resource.group".
func ResourceName(plural, group string) string {
	return schema.GroupResource{Group: group, Resource: plural}.String()
}

// Catalog makes tables. Its zero value has no lifecycles of users.
type Catalog struct {
	builtin  map[string]*gc.ResourceLifecycle
	declared map[string]*references.Reader
}

// NewCatalog returns a Catalog with the built-in lifecycles and declarations of references.
func NewCatalog() (*Catalog, error) {
	all, err := Lifecycles()
	if err != nil {
		return nil, err
	}
	declared, err := compileDeclarations()
	return &Catalog{all, declared}, err
}

// BuiltIn reports whether a resource has a built-in lifecycle.
func (c *Catalog) BuiltIn(resource string) bool { return c.builtin[resource] != nil }

// Table returns the table of what is served with the lifecycles of users, which replace built-in ones of the same name. A kind that is as
// in the table before is the same in both. Jobs, Pods, CronJobs and ResourceQuotas always come from Builtin.
func (c *Catalog) Table(served []Served, users map[string]*gc.ResourceLifecycle, before *Table) *Table {
	all := maps.Clone(Builtin().kinds)
	for _, s := range served {
		resource := s.Resource()
		all[resource] = c.Kind(s, users[resource], before)
	}
	return newTable(all)
}

// Kind returns the kind of a resource in a table with this lifecycle of users; nil stands for none. See Table.
func (c *Catalog) Kind(s Served, user *gc.ResourceLifecycle, before *Table) *Kind {
	resource := s.Resource()
	if k := Builtin().kinds[resource]; k != nil {
		return k
	}
	l := c.withBuiltin(user, resource)
	source := sourceOf(s, l)
	if k := before.kinds[resource]; k != nil && k.Source == source && k.Plural == s.Plural && k.GroupVersionKind == s.GroupVersionKind {
		return k
	}
	return newKind(s, l, source)
}

// withBuiltin returns the lifecycle of users, with what it leaves as it is built in.
func (c *Catalog) withBuiltin(user *gc.ResourceLifecycle, resource string) *gc.ResourceLifecycle {
	builtin := c.builtin[resource]
	switch {
	case user == nil:
		return builtin
	case user.Spec.Finished != nil, gc.Unreadable(&user.ObjectMeta) != "":
		return user
	case user.Spec.Dependents != gc.LifecycleIndependent: // It only says what the objects refer to.
		return builtin
	case builtin == nil:
		return user
	}
	out := user.DeepCopy()
	out.Spec.Finished, out.Spec.NativeTTL = builtin.Spec.Finished, builtin.Spec.NativeTTL
	return out
}

// sourceOf returns what makes the kind of a resource what it is. A generation is part of it, so that an edited lifecycle makes another
// kind.
func sourceOf(s Served, l *gc.ResourceLifecycle) Source {
	version := s.GroupVersion().String()
	out := Source{ID: "served in " + version, Text: fmt.Sprintf("%s, which the cluster serves in %s,", s.Resource(), version)}
	switch {
	case l == nil:
	case l.UID == "":
		out.ID = "built-in lifecycle, " + out.ID
	default:
		out = Source{
			UID: l.UID, ID: fmt.Sprintf("generation %d of %s, %s", l.Generation, l.UID, out.ID),
			Text: fmt.Sprintf("generation %d of ResourceLifecycle %s", l.Generation, l.Name),
		}
	}
	return out
}

func newKind(s Served, l *gc.ResourceLifecycle, source Source) *Kind {
	if l == nil {
		return Custom(s.GroupVersionKind, s.Plural, nil, source)
	}
	compiled, err := CompileLifecycle(l, s.GroupKind())
	if err != nil {
		return unreadable(s, source, fmt.Sprintf("ResourceLifecycle %s: %v", l.Name, err))
	}
	k := Custom(s.GroupVersionKind, s.Plural, compiled, source)
	switch {
	case l.Spec.Dependents != gc.LifecycleIndependent:
	case l.UID == "": // A built-in lifecycle knows what the usual controller makes, and nothing of what else somebody puts under it.
		k.Independent = lifecycle.FinishedIndependent
	default:
		k.Independent = lifecycle.Independent
	}
	return k
}

// CompileLifecycle compiles a stored lifecycle; nil if nothing of the objects but their metadata matters. It fails if the lifecycle could
// not have passed validation, for example because a newer version wrote it.
func CompileLifecycle(l *gc.ResourceLifecycle, kind schema.GroupKind) (*lifecycle.Compiled, error) {
	if why := gc.Unreadable(&l.ObjectMeta); why != "" {
		return nil, fmt.Errorf("%s", why)
	}
	if _, err := references.Declared(l.Spec.References); err != nil {
		return nil, err
	}
	if l.Spec.Finished == nil && l.Spec.Needs == "" {
		return nil, nil
	}
	return lifecycle.Compile(l.Name, kind, &l.Spec)
}

// unreadable returns the kind of a resource whose lifecycle cannot be read. All its objects are held, and what they control is left to
// them.
func unreadable(s Served, source Source, why string) *Kind {
	k := Custom(s.GroupVersionKind, s.Plural, nil, source)
	fact := k.fact
	k.Finishes = true
	k.fact = func(object any) (*lifecycle.Fact, error) {
		f, err := fact(object)
		if err == nil {
			f.Failed = why
		}
		return f, err
	}
	return k
}
