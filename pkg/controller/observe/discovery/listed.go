// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
)

// keepListed adds what an earlier answer had of the versions of which this one says nothing, and returns the names of these resources. What
// they have now is not known, but what they had before fails to be listed as well.
func (a *answer) keepListed(before *answer) sets.Set[string] {
	seen := sets.New[string]()
	if before == nil {
		return seen
	}
	for gv := range a.unlisted {
		if before.versions.Has(gv) {
			delete(a.unlisted, gv)
			a.versions.Insert(gv)
		}
	}
	for _, l := range before.listed {
		if _, failed := a.failed[l.GroupVersion()]; failed {
			a.listed = append(a.listed, l)
			seen.Insert(l.Resource())
		}
	}
	return seen
}

// addListed adds the resources of a version that can be listed and watched. Versions come in the order that the cluster prefers, so the
// first one of a resource counts.
func (a *answer) addListed(gv schema.GroupVersion, list *metav1.APIResourceList, seen sets.Set[string]) {
	if list == nil {
		return
	}
	a.versions.Insert(gv)
	for i := range list.APIResources {
		r := &list.APIResources[i]
		name := kinds.ResourceName(r.Name, gv.Group)
		if strings.Contains(r.Name, "/") || seen.Has(name) || !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "watch") {
			continue
		}
		seen.Insert(name)
		a.listed = append(a.listed, kinds.Listed{
			Served: kinds.Served{GroupVersionKind: gv.WithKind(r.Kind), Plural: r.Name}, Namespaced: r.Namespaced,
		})
	}
}

// findListed returns a resource that can be listed and watched.
func (a *answer) findListed(resource string) (kinds.Listed, bool) {
	i := slices.IndexFunc(a.listed, func(l kinds.Listed) bool { return l.Resource() == resource })
	if i < 0 {
		return kinds.Listed{}, false
	}
	return a.listed[i], true
}

// undiscovered returns why it is not known of all resources that may refer to others whether their objects can be listed; empty if it is.
func (a *answer) undiscovered() string {
	compare := func(x, y schema.GroupVersion) int { return cmp.Compare(x.String(), y.String()) }
	for _, gv := range slices.SortedFunc(maps.Keys(a.unlisted), compare) {
		if !kinds.NeverRefers(gv.Group) {
			return fmt.Sprintf("the cluster does not say which resources %s has: %v. Repair its API server, or delete the APIService %s.%s",
				gv, a.unlisted[gv], gv.Version, gv.Group)
		}
	}
	return ""
}
