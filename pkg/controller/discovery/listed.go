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

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/kinds"
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

// addListed adds the resources of a version that can be listed and watched. Versions come in the order that the cluster prefers, so the first
// one of a resource counts.
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

// undiscovered returns why it is not known of all resources whether their objects can be listed; empty if it is. Metrics are no objects that
// could be watched, and their servers fail often. Winnow's own objects refer to nothing, and their server has failed whenever it starts.
func (a *answer) undiscovered() string {
	compare := func(x, y schema.GroupVersion) int { return cmp.Compare(x.String(), y.String()) }
	for _, gv := range slices.SortedFunc(maps.Keys(a.unlisted), compare) {
		if gv.Group != gc.GroupName && gv.Group != "metrics.k8s.io" && !strings.HasSuffix(gv.Group, ".metrics.k8s.io") {
			return fmt.Sprintf("the cluster does not say which resources %s has: %v", gv, a.unlisted[gv])
		}
	}
	return ""
}
