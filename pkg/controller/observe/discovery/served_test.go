// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
)

// cluster is what discovery says.
type cluster struct {
	discovery.AggregatedDiscoveryInterfaceWithContext
	groups    []metav1.APIGroup
	resources map[schema.GroupVersion]*metav1.APIResourceList
	failed    map[schema.GroupVersion]error
	err       error
}

func (c *cluster) GroupsAndMaybeResourcesWithContext(context.Context) (
	*metav1.APIGroupList, map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error, error,
) {
	return &metav1.APIGroupList{Groups: c.groups}, c.resources, c.failed, c.err
}

// serve adds the versions of a group, the preferred one first, with the same resources. Those that begin with "cluster:" are cluster-scoped,
// those that begin with "readonly:" cannot be deleted, and those that begin with "unwatched:" cannot be watched either.
func (c *cluster) serve(group, versions string, resources ...string) *cluster {
	g := metav1.APIGroup{Name: group}
	if c.resources == nil {
		c.resources, c.failed = map[schema.GroupVersion]*metav1.APIResourceList{}, map[schema.GroupVersion]error{}
	}
	for _, version := range strings.Fields(versions) {
		gv := schema.GroupVersion{Group: group, Version: version}
		g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: version})
		list := &metav1.APIResourceList{GroupVersion: gv.String()}
		for _, name := range resources {
			r := metav1.APIResource{Namespaced: true, Verbs: metav1.Verbs{"create", "delete", "get", "list", "watch"}}
			if r.Name = strings.TrimPrefix(name, "cluster:"); r.Name != name {
				r.Namespaced = false
			}
			if short := strings.TrimPrefix(r.Name, "readonly:"); short != r.Name {
				r.Name, r.Verbs = short, metav1.Verbs{"get", "list", "watch"}
			}
			if short := strings.TrimPrefix(r.Name, "unwatched:"); short != r.Name {
				r.Name, r.Verbs = short, metav1.Verbs{"get", "list"}
			}
			r.Kind = "Kind of " + r.Name
			list.APIResources = append(list.APIResources, r)
		}
		c.resources[gv] = list
	}
	c.groups = append(c.groups, g)
	return c
}

// stale makes a version of a group fail, as the API server says of one whose server does not answer.
func (c *cluster) stale(group, version string) *cluster {
	gv := schema.GroupVersion{Group: group, Version: version}
	delete(c.resources, gv)
	c.failed[gv] = errors.New("stale")
	for i := range c.groups {
		c.groups[i].Versions = slices.DeleteFunc(c.groups[i].Versions, func(v metav1.GroupVersionForDiscovery) bool {
			return c.groups[i].Name == group && v.Version == version
		})
	}
	return c
}

func apiService(group, version string, remote bool) runtime.Object {
	spec := map[string]any{"group": group, "version": version}
	if remote {
		spec["service"] = map[string]any{"namespace": "system", "name": "server"}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": version + "." + group}, "spec": spec,
	}}
}

func (c *cluster) reader(services ...runtime.Object) *Reader {
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(
		runtime.NewScheme(), map[schema.GroupVersionResource]string{apiServices: "APIServiceList"}, services...)
	return &Reader{Discovery: c, APIServices: client}
}

func describe(all []kinds.Served) string {
	var out []string
	for _, s := range all {
		out = append(out, s.Resource()+"="+s.Version)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestRead(t *testing.T) {
	before := &answer{served: []kinds.Served{
		{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Run"}, Plural: "runs"},
	}}
	local, remote := apiService("example.com", "v1", false), apiService("example.com", "v1", true)
	for name, tc := range map[string]struct {
		cluster  *cluster
		services []runtime.Object
		served   string
		refused  map[string]string // how the reason begins
	}{
		"built-in and custom": {
			new(cluster).serve("", "v1", "pods", "pods/log", "cluster:nodes", "readonly:statuses").serve("example.com", "v1", "runs"),
			[]runtime.Object{local}, "pods=v1 runs.example.com=v1",
			map[string]string{"nodes": "is cluster-scoped", "statuses": `does not support the verb "delete"`},
		},
		"the preferred version": {
			new(cluster).serve("example.com", "v1 v1beta1", "runs"), nil, "runs.example.com=v1", nil,
		},
		"a resource of an older version alone": {
			new(cluster).serve("example.com", "v1", "runs").serve("example.com", "v1beta1", "walks"), nil,
			"runs.example.com=v1 walks.example.com=v1beta1", nil,
		},
		"another API server": {
			new(cluster).serve("example.com", "v1", "runs").serve("other.io", "v1", "metrics"), []runtime.Object{remote, apiService("other.io", "v1", false)},
			"metrics.other.io=v1", map[string]string{"runs.example.com": "is served by another API server"},
		},
		"a version that fails stays as it was": {
			new(cluster).serve("example.com", "v1 v1beta1", "runs").stale("example.com", "v1"), nil, "runs.example.com=v1", nil,
		},
		"a version that was dropped does not": {
			new(cluster).serve("example.com", "v1beta1", "runs"), nil, "runs.example.com=v1beta1", nil,
		},
		"a group that is gone": {new(cluster).serve("", "v1", "pods"), nil, "pods=v1", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.cluster.reader(tc.services...).read(t.Context(), before)
			if err != nil {
				t.Fatal(err)
			}
			if served := describe(got.served); served != tc.served {
				t.Errorf("served: %s; want %s", served, tc.served)
			}
			for resource, why := range tc.refused {
				if !strings.HasPrefix(got.refused[resource], why) {
					t.Errorf("%s: %q; want %q", resource, got.refused[resource], why)
				}
			}
			if len(got.refused) != len(tc.refused) {
				t.Errorf("refused: %v", got.refused)
			}
		})
	}
}

// TestReadFails: an answer in which nothing is served must not be made up.
func TestReadFails(t *testing.T) {
	for name, c := range map[string]*cluster{
		"discovery fails":                  {err: errors.New("no connection")},
		"an API server without the format": {groups: []metav1.APIGroup{{Name: "apps"}}},
	} {
		if got, err := c.reader().read(t.Context(), nil); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestAbout(t *testing.T) {
	c := new(cluster).serve("example.com", "v1", "widgets", "cluster:racks", "readonly:reports").serve("stale.example.com", "v1", "runs")
	found, err := c.stale("stale.example.com", "v1").reader().read(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for resource, want := range map[string]gc.ServedResource{
		"widgets.example.com":    {},
		"runs.stale.example.com": {},
		"racks.example.com":      {Refusal: "is cluster-scoped, and Winnow deletes only objects in namespaces", Refers: true},
		"reports.example.com":    {Refusal: `does not support the verb "delete", which Winnow needs`, Refers: true},
		"widget.example.com":     {Missing: true, Similar: "widgets.example.com"},
		"widgets.exmaple.com":    {Missing: true, Similar: "widgets.example.com"},
		"widgets":                {Missing: true, Similar: "widgets.example.com"},
		"engines.other.org":      {Missing: true},
		"workflow.argoproj.io":   {Missing: true, Similar: "workflows.argoproj.io"},
		"workflows.argoproj.com": {Missing: true, Similar: "workflows.argoproj.io"},
		"workflows.argoproj.io":  {Missing: true},
		"engines.argoproj.io":    {Missing: true},
	} {
		if got := found.about(resource); got != want {
			t.Errorf("%s: got %+v, want %+v", resource, got, want)
		}
	}
	var f Follower
	if got := f.Served("engines.other.org"); got != (gc.ServedResource{}) {
		t.Errorf("before the first reading: %+v", got)
	}
}

// TestUndiscovered: what a failed group has is not known, unless its objects cannot refer to anything.
func TestUndiscovered(t *testing.T) {
	for group, unknown := range map[string]bool{
		"example.com": true, "storage.example.com": true, "metrics.k8s.io": false, "custom.metrics.k8s.io": false, gc.GroupName: false,
		"x.metrics.k8s.io": true, "x." + gc.GroupName: true,
	} {
		c := (&cluster{}).serve("batch", "v1", "jobs").serve(group, "v1", "things").stale(group, "v1")
		found, err := (&Reader{Discovery: c}).read(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if why := found.undiscovered(); why != "" != unknown {
			t.Errorf("%s: %q", group, why)
		}
	}
}
