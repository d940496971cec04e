// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// aggregated is aggregated discovery, of the group without a name or of all others.
func (s *Store) aggregated(core bool) any {
	out := &apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"},
	}
	groups := map[string]*apidiscoveryv2.APIVersionDiscovery{}
	for _, t := range s.tables {
		if core != (t.Group == "") || !s.serves(t) {
			continue
		}
		if groups[t.Group] == nil {
			groups[t.Group] = &apidiscoveryv2.APIVersionDiscovery{Version: t.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
		}
		r := apidiscoveryv2.APIResourceDiscovery{
			Resource: t.Resource.Resource, ResponseKind: &metav1.GroupVersionKind{Group: t.Group, Version: t.Version, Kind: t.Kind},
			Scope: apidiscoveryv2.ScopeCluster, Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"},
		}
		if t.Namespaced {
			r.Scope = apidiscoveryv2.ScopeNamespace
		}
		groups[t.Group].Resources = append(groups[t.Group].Resources, r)
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		v := groups[name]
		slices.SortFunc(v.Resources, func(a, b apidiscoveryv2.APIResourceDiscovery) int { return cmp.Compare(a.Resource, b.Resource) })
		out.Items = append(out.Items, apidiscoveryv2.APIGroupDiscovery{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Versions: []apidiscoveryv2.APIVersionDiscovery{*v},
		})
	}
	return out
}

// IsDiscovery reports whether a request with a path asks what is served.
func IsDiscovery(path string) bool {
	steps := strings.Split(strings.Trim(path, "/"), "/")
	return steps[0] == "openapi" || steps[0] == "api" && len(steps) <= 2 || steps[0] == "apis" && len(steps) <= 3
}

// discovery answers requests about what is served; nil for others.
func (s *Store) discovery(r *http.Request, path []string) *Answer {
	switch {
	case len(path) == 1 && path[0] == "version":
		return answer(http.StatusOK, map[string]any{"major": "1", "minor": "37", "gitVersion": "v1.37.0"})
	case len(path) == 1 && strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList") && (path[0] == "api" || path[0] == "apis"):
		out := answer(http.StatusOK, s.aggregated(path[0] == "api"))
		out.ContentType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
		return out
	case len(path) == 2 && path[0] == "api":
		return s.resources(schema.GroupVersion{Version: path[1]})
	case len(path) == 3 && path[0] == "apis":
		return s.resources(schema.GroupVersion{Group: path[1], Version: path[2]})
	}
	return nil
}

func (s *Store) resources(gv schema.GroupVersion) *Answer {
	out := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
	for _, t := range s.tables {
		if t.GroupVersion() == gv && s.serves(t) {
			out.APIResources = append(out.APIResources, metav1.APIResource{
				Name: t.Resource.Resource, Kind: t.Kind, Namespaced: t.Namespaced,
				Verbs: metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"},
			})
		}
	}
	if len(out.APIResources) == 0 {
		return nil
	}
	slices.SortFunc(out.APIResources, func(a, b metav1.APIResource) int { return cmp.Compare(a.Name, b.Name) })
	return answer(http.StatusOK, out)
}

// NoDeleter is a user who may delete nothing.
const NoDeleter = "joe"

// review answers reviews of access: everybody may do everything but NoDeleter.
func review(method string, path []string, data []byte) any {
	last := path[len(path)-1]
	if method != http.MethodPost || !strings.HasSuffix(last, "reviews") {
		return nil
	}
	out := map[string]any{}
	if err := json.Unmarshal(data, &out); err != nil {
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
		if err != nil {
			panic(err)
		}
		out, _ = runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	}
	user, _, _ := unstructured.NestedString(out, "spec", "user")
	verb, _, _ := unstructured.NestedString(out, "spec", "resourceAttributes", "verb")
	out["status"] = authorizationv1.SubjectAccessReviewStatus{Allowed: user != NoDeleter || verb != "delete"}
	if last == "selfsubjectreviews" {
		out["status"] = map[string]any{"userInfo": map[string]any{"username": "system:serviceaccount:winnow-system:winnow"}}
	}
	return out
}
