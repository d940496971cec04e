// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/openapi"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/validation"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
)

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// verbs are those that a resource needs to be observed and deleted.
var verbs = []string{"list", "watch", "delete"}

// Reader reads what the cluster serves.
type Reader struct {
	Discovery discovery.AggregatedDiscoveryInterfaceWithContext
	// Schemas reads the OpenAPI documents of the cluster.
	Schemas openapi.ClientWithContext
	// APIServices tells which groups other servers serve. If it is nil, no group counts as one of another server.
	APIServices dynamic.Interface
}

// answer is what one reading of a Reader has found.
type answer struct {
	// served are the namespaced resources that can be observed and deleted, each in the version that the cluster prefers.
	served []kinds.Served
	// listed are all resources that can be listed and watched, each in the version that the cluster prefers.
	listed []kinds.Listed
	// versions are the versions of groups of which it is known what can be listed, and unlisted the others, with the reason.
	versions sets.Set[schema.GroupVersion]
	unlisted map[schema.GroupVersion]error
	// refused says of the other resources why policies cannot name them.
	refused map[string]string
	// failed are the versions of groups of which the answer says nothing.
	failed map[schema.GroupVersion]error
}

// read reads what the cluster serves. It fails if nothing could be read. What the answer does not know of failed versions is added from the
// answer before.
func (r *Reader) read(ctx context.Context, before *answer) (*answer, error) {
	earlier, err := r.otherServers(ctx)
	if err != nil {
		return nil, err
	}
	groups, resources, failed, err := r.Discovery.GroupsAndMaybeResourcesWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading what the cluster serves: %w", err)
	}
	later, err := r.otherServers(ctx) // An APIService may have been created or deleted in between.
	if err != nil {
		return nil, err
	}
	if resources == nil {
		return nil, errors.New("reading what the cluster serves: the API server does not support aggregated discovery")
	}
	out := &answer{refused: map[string]string{}, failed: failed, unlisted: maps.Clone(failed), versions: sets.New[schema.GroupVersion]()}
	others := earlier.Union(later)
	known := out.keepListed(before)
	maps.DeleteFunc(out.failed, func(gv schema.GroupVersion, _ error) bool { return others.Has(gv) }) // Nothing of them is deleted anyway.
	seen := out.keep(before)
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
			out.add(gv, resources[gv], others.Has(gv), seen)
			out.addListed(gv, resources[gv], known)
		}
	}
	return out, nil
}

// about returns what the answer says of a resource. Of a resource of a version that failed it says nothing.
func (a *answer) about(resource string) gc.ServedResource {
	if why := a.refused[resource]; why != "" {
		_, listed := a.findListed(resource)
		return gc.ServedResource{Refusal: why, Refers: listed}
	}
	if _, ok := a.find(resource); ok {
		return gc.ServedResource{}
	}
	group := schema.ParseGroupResource(resource).Group
	for gv := range a.failed {
		if gv.Group == group {
			return gc.ServedResource{}
		}
	}
	return gc.ServedResource{Missing: true, Similar: a.similar(resource)}
}

// find returns a served resource.
func (a *answer) find(resource string) (kinds.Served, bool) {
	i := slices.IndexFunc(a.served, func(s kinds.Served) bool { return s.Resource() == resource })
	if i < 0 {
		return kinds.Served{}, false
	}
	return a.served[i], true
}

// similar returns the served resource that was probably meant by a name, or one with a built-in lifecycle; empty if there is none.
func (a *answer) similar(name string) string {
	meant := schema.ParseGroupResource(strings.ToLower(name))
	names := make([]string, len(a.served))
	for i, s := range a.served {
		if meant.Resource == s.Plural || meant.Resource == strings.ToLower(s.Kind) {
			return s.Resource() // The group is wrong or missing, or this is the singular.
		}
		names[i] = s.Resource()
	}
	return cmp.Or(validation.Nearest(name, names), similarBuiltIn(name, meant))
}

// similarBuiltIn returns the resource with a built-in lifecycle that was probably meant by a name: one with this group or this plural.
func similarBuiltIn(name string, meant schema.GroupResource) string {
	var names []string
	for _, known := range kinds.BuiltIn() {
		switch r := schema.ParseGroupResource(known); {
		case known == name:
			return "" // It is spelled right.
		case r.Group == meant.Group, r.Resource == meant.Resource:
			names = append(names, known)
		}
	}
	return validation.Nearest(name, names)
}

// keep adds what an earlier answer had of the versions of which this one says nothing, and returns the names of these resources.
func (a *answer) keep(before *answer) sets.Set[string] {
	seen := sets.New[string]()
	if before == nil {
		return seen
	}
	for _, s := range before.served {
		if _, failed := a.failed[s.GroupVersion()]; failed {
			a.served = append(a.served, s)
			seen.Insert(s.Resource())
		}
	}
	return seen
}

// add adds the resources of a version. Versions come in the order that the cluster prefers, so the first one of a resource counts.
func (a *answer) add(gv schema.GroupVersion, list *metav1.APIResourceList, other bool, seen sets.Set[string]) {
	if list == nil {
		return
	}
	for i := range list.APIResources {
		r := &list.APIResources[i]
		name := kinds.ResourceName(r.Name, gv.Group)
		if strings.Contains(r.Name, "/") || seen.Has(name) {
			continue
		}
		seen.Insert(name)
		switch why := refusal(r, other); why {
		case "":
			a.served = append(a.served, kinds.Served{GroupVersionKind: gv.WithKind(r.Kind), Plural: r.Name})
		default:
			a.refused[name] = why
		}
	}
}

// refusal returns why Winnow cannot delete objects of a resource; empty if it can.
func refusal(r *metav1.APIResource, other bool) string {
	switch {
	case other:
		return "is served by another API server, whose objects Winnow does not delete"
	case !r.Namespaced:
		return "is cluster-scoped, and Winnow deletes only objects in namespaces"
	}
	for _, verb := range verbs {
		if !slices.Contains(r.Verbs, verb) {
			return fmt.Sprintf("does not support the verb %q, which Winnow needs", verb)
		}
	}
	return ""
}

// otherServers returns the versions of groups that other API servers serve through the aggregation layer.
func (r *Reader) otherServers(ctx context.Context) (sets.Set[schema.GroupVersion], error) {
	if r.APIServices == nil {
		return sets.New[schema.GroupVersion](), nil
	}
	all, err := r.APIServices.Resource(apiServices).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading which groups other API servers serve: %w", err)
	}
	out := sets.New[schema.GroupVersion]()
	for i := range all.Items {
		spec := all.Items[i].Object
		if service, _, _ := unstructured.NestedMap(spec, "spec", "service"); service == nil {
			continue
		}
		group, _, _ := unstructured.NestedString(spec, "spec", "group")
		version, _, _ := unstructured.NestedString(spec, "spec", "version")
		out.Insert(schema.GroupVersion{Group: group, Version: version})
	}
	return out, nil
}
