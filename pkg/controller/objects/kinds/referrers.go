// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/references"
)

// Referrer is a resource whose objects may refer to ConfigMaps and Secrets.
type Referrer struct {
	Listed
	// Reader finds their references. If it is nil, they count as used without a reference.
	Reader *references.Reader
	// FieldSelector selects the objects; empty for all.
	FieldSelector string
	// Why is why objects count as used without a Reader.
	Why string
	// lifecycle is the lifecycle of users that the Reader was made with; empty for none.
	lifecycle string
}

// Listed is a resource that the cluster serves, and whose objects can be listed and watched.
type Listed struct {
	Served
	Namespaced bool
}

// Source names the objects as referrers; see references.Source. It is empty if they have no Reader.
func (r *Referrer) Source() string {
	if r.Reader == nil {
		return ""
	}
	return r.Resource()
}

// Exemptions names the objects that are used without a reference; empty if no object of the resource can be unused.
func (r *Referrer) Exemptions() string {
	switch {
	case !gc.CanBeUnused(r.Resource()):
		return ""
	case r.FieldSelector != "":
		return references.Exemptions + r.Resource() + " with " + r.FieldSelector
	}
	return references.Exemptions + r.Resource()
}

// Sources returns Source and Exemptions, without empty ones.
func (r *Referrer) Sources() []string {
	return slices.DeleteFunc([]string{r.Source(), r.Exemptions()}, func(name string) bool { return name == "" })
}

// References returns what an object refers to, and why it is used without a reference; empty if it is not. With an error, what the object
// refers to cannot be read, and it may refer to everything in its namespace.
func (r *Referrer) References(object *unstructured.Unstructured) (refs []references.Reference, exempt string, err error) {
	if r.Reader != nil {
		refs, err = r.Reader.References(object.Object)
	}
	if gc.CanBeUnused(r.Resource()) {
		exempt = cmp.Or(r.Why, references.Exempt(r.GroupKind(), metadata(object), ""))
	}
	return refs, exempt, err
}

// Itself returns the reference of an object to itself.
func (r *Referrer) Itself(namespace, name string) references.Reference {
	return references.Reference{To: ToOf(r.Resource()), Namespace: namespace, Name: name}
}

// ToOf returns the set of resources that a reference to an object of this resource may be to.
func ToOf(resource string) references.To {
	return map[string]references.To{gc.ResourceConfigMaps: references.ConfigMaps, gc.ResourceSecrets: references.Secrets}[resource]
}

func metadata(object *unstructured.Unstructured) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{
		Name: object.GetName(), Namespace: object.GetNamespace(), Labels: object.GetLabels(), Annotations: object.GetAnnotations(),
		OwnerReferences: object.GetOwnerReferences(), Finalizers: object.GetFinalizers(), DeletionTimestamp: object.GetDeletionTimestamp(),
	}
}

// Kind returns what is read of the objects: of ConfigMaps and Secrets only the metadata, unless a lifecycle of users says what is in them.
// Most other objects of Kubernetes are read into their Go types, because JSON costs many times as much. Not all are: their types may not
// have what a lifecycle reads, and the data of ControllerRevisions and the parameters of devices are raw in Go.
func (r *Referrer) Kind() *Kind {
	k := &Kind{Resource: r.Resource(), GroupVersionKind: r.GroupVersionKind, Plural: r.Plural}
	if r.Reader != nil {
		k.Fields = r.Reader.Fields()
	}
	k.New = func() runtime.Object { return &unstructured.Unstructured{} }
	switch {
	case r.lifecycle != "", r.Group == "resource.k8s.io", r.Resource() == "controllerrevisions.apps":
	case gc.CanBeUnused(r.Resource()):
		k.New = func() runtime.Object { return &metav1.PartialObjectMetadata{} }
	case scheme.Scheme.Recognizes(r.GroupVersionKind):
		k.New = func() runtime.Object {
			object, _ := scheme.Scheme.New(r.GroupVersionKind) // It is recognized.
			return object
		}
	}
	return k
}

// Referrers returns those among the resources that the cluster serves, with the lifecycles of users, which replace built-in declarations.
// One that is as before is the same.
func (c *Catalog) Referrers(all []Listed, users map[string]*gc.ResourceLifecycle, before []*Referrer) []*Referrer {
	type identity struct {
		Listed
		selector, lifecycle string
	}
	known := make(map[identity]*Referrer, len(before))
	for _, r := range before {
		known[identity{r.Listed, r.FieldSelector, r.lifecycle}] = r
	}
	var out []*Referrer
	for _, l := range all {
		for _, r := range c.referrers(l, users[l.Resource()]) {
			if same := known[identity{r.Listed, r.FieldSelector, r.lifecycle}]; same != nil {
				r = same
			}
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *Referrer) int {
		return cmp.Or(cmp.Compare(a.Resource(), b.Resource()), cmp.Compare(a.FieldSelector, b.FieldSelector))
	})
	return out
}

// referrers returns what refers to ConfigMaps and Secrets of one resource.
func (c *Catalog) referrers(l Listed, user *gc.ResourceLifecycle) []*Referrer {
	resource := l.Resource()
	if resource == gc.ResourceSecrets {
		out := []*Referrer{{Listed: l, Reader: references.Builtin(resource)}}
		types := references.ExemptTypes()
		for _, t := range slices.Sorted(maps.Keys(types)) {
			out = append(out, &Referrer{Listed: l, FieldSelector: "type=" + t, Why: types[t]})
		}
		return out
	}
	r := &Referrer{Listed: l, Reader: references.Builtin(resource)}
	switch {
	case r.Reader != nil, ofKubernetes(l.Served):
	case NeverRefers(l.Group):
		return nil
	case c.declared[resource] != nil:
		r.Reader = c.declared[resource]
	default:
		r.Reader = undeclared
	}
	if r.declare(user); r.Reader == nil {
		return nil
	}
	return []*Referrer{r}
}

var undeclared = references.Undeclared()

// declare uses the references of a lifecycle of users. Those of resources of Kubernetes itself are found in addition.
func (r *Referrer) declare(user *gc.ResourceLifecycle) {
	if user == nil {
		return
	}
	why := gc.Unreadable(&user.ObjectMeta)
	if why == "" && len(user.Spec.References) == 0 {
		return
	}
	r.lifecycle = fmt.Sprintf("generation %d of %s", user.Generation, user.UID)
	reader, err := references.Declared(user.Spec.References)
	if why != "" {
		err = errors.New(why)
	}
	if err != nil {
		reader = references.Unreadable(fmt.Errorf("ResourceLifecycle %s: %w", user.Name, err))
	}
	if builtin := references.Builtin(r.Resource()); builtin != nil {
		reader = references.Union(builtin, reader)
	}
	r.Reader = reader
}

// neverRefer are groups, compared whole: anybody may define custom resources in a group whose name only ends like one of them.
var neverRefer = sets.New(
	gc.GroupName, "internal."+gc.GroupName, "metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io",
)

// NeverRefers reports whether no resource of a group refers to ConfigMaps or Secrets: the groups of Winnow itself and of metrics. Their
// servers may be unavailable; Winnow's server is unavailable whenever Winnow starts.
func NeverRefers(group string) bool {
	return neverRefer.Has(group)
}

// ofKubernetes reports whether a resource is one of Kubernetes itself. Those that refer to ConfigMaps or Secrets have a Reader, as a test
// of package references checks; one that is newer than this program is none of them.
func ofKubernetes(s Served) bool {
	if s.Group == "apiextensions.k8s.io" || s.Group == "apiregistration.k8s.io" {
		return true
	}
	for _, gv := range scheme.Scheme.VersionsForGroupKind(s.GroupKind()) {
		if scheme.Scheme.Recognizes(gv.WithKind(s.Kind)) {
			return true
		}
	}
	return false
}

// compileDeclarations returns a Reader for each resource whose references are declared.
func compileDeclarations() (map[string]*references.Reader, error) {
	all, err := references.BuiltinDeclarations()
	if err != nil {
		return nil, err
	}
	out := make(map[string]*references.Reader, len(all))
	for resource, declarations := range all {
		if out[resource], err = references.Declared(declarations); err != nil {
			return nil, err
		}
	}
	return out, nil
}
