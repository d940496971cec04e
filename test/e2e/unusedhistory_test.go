// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// history is what watches of a namespace have reported. It knows references in its own way: an object uses all ConfigMaps and Secrets whose
// name is a string in it. So the names in a test must stand for nothing else.
type history struct {
	client dynamic.Interface
	ns     string

	lock    sync.Mutex
	changes []change
	present map[object]change
}

// object is "ReplicaSet" and "web-1".
type object struct{ kind, name string }

func (o object) String() string { return o.kind + " " + o.name }

// change is a new state of an object, or its deletion.
type change struct {
	object
	version uint64 // versions of all resources are in one order
	deleted bool
	strings map[string]bool
}

var historyResources = []schema.GroupVersionResource{
	{Version: "v1", Resource: "configmaps"}, {Version: "v1", Resource: "secrets"}, {Version: "v1", Resource: "pods"},
	{Version: "v1", Resource: "serviceaccounts"}, {Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Version: "v1", Resource: "replicasets"}, {Group: "apps", Version: "v1", Resource: "statefulsets"},
	{Group: "apps", Version: "v1", Resource: "daemonsets"}, {Group: "apps", Version: "v1", Resource: "controllerrevisions"},
	{Group: "batch", Version: "v1", Resource: "jobs"}, {Group: "batch", Version: "v1", Resource: "cronjobs"},
	{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
}

// watchHistory watches a namespace until the test ends.
func watchHistory(t *testing.T, ns string) *history {
	t.Helper()
	client, err := dynamic.NewForConfig(suite.RESTConfig())
	must(t, err)
	h := &history{client: client, ns: ns, present: map[object]change{}}
	for _, resource := range historyResources {
		objects := client.Resource(resource).Namespace(ns)
		list, err := objects.List(t.Context(), metav1.ListOptions{})
		must(t, err)
		for i := range list.Items {
			h.add(&list.Items[i], false)
		}
		w, err := objects.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
		must(t, err)
		go func() {
			for event := range w.ResultChan() {
				if u, ok := event.Object.(*unstructured.Unstructured); ok && event.Type != watch.Error {
					h.add(u, event.Type == watch.Deleted)
				}
			}
		}()
	}
	return h
}

func (h *history) add(u *unstructured.Unstructured, deleted bool) {
	c := change{object: object{u.GetKind(), u.GetName()}, version: versionOf(u), deleted: deleted, strings: map[string]bool{}}
	c.collect(u.Object)
	h.lock.Lock()
	defer h.lock.Unlock()
	h.changes = append(h.changes, c)
	c.applyTo(h.present)
}

// versionOf returns 0 for a version that is no number, which is none of any object.
func versionOf(u *unstructured.Unstructured) uint64 {
	version, _ := strconv.ParseUint(u.GetResourceVersion(), 10, 64)
	return version
}

// collect collects the strings in a value.
func (c *change) collect(value any) {
	switch value := value.(type) {
	case string:
		c.strings[value] = true
	case []any:
		for _, v := range value {
			c.collect(v)
		}
	case map[string]any:
		for _, v := range value {
			c.collect(v)
		}
	}
}

func (c *change) applyTo(present map[object]change) {
	if delete(present, c.object); !c.deleted {
		present[c.object] = *c
	}
}

// users returns the objects that use a ConfigMap or Secret.
func users(present map[object]change, name string) (out []object) {
	for o, c := range present {
		if c.strings[name] && o.name != name {
			out = append(out, o)
		}
	}
	return out
}

// complete waits until the watches have reported everything.
func (h *history) complete(t *testing.T) {
	t.Helper()
	for _, resource := range historyResources {
		eventually(t, func(ctx context.Context) string {
			list, err := h.client.Resource(resource).Namespace(h.ns).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err.Error()
			}
			want, got := map[object]uint64{}, map[object]uint64{}
			for i := range list.Items {
				want[object{list.Items[i].GetKind(), list.Items[i].GetName()}] = versionOf(&list.Items[i])
			}
			h.lock.Lock()
			defer h.lock.Unlock()
			for o, c := range h.present {
				if o.kind == strings.TrimSuffix(list.GetKind(), "List") {
					got[o] = c.version
				}
			}
			if !maps.Equal(got, want) {
				return fmt.Sprintf("watches reported %v, and there are %v", got, want)
			}
			return ""
		})
	}
}

// inUse returns the names that objects use now.
func (h *history) inUse(t *testing.T, names ...string) (used, unused []string) {
	t.Helper()
	h.complete(t)
	h.lock.Lock()
	defer h.lock.Unlock()
	for _, name := range names {
		if len(users(h.present, name)) > 0 {
			used = append(used, name)
		} else {
			unused = append(unused, name)
		}
	}
	return used, unused
}

// expectUnusedOnly fails if a ConfigMap or Secret was deleted while something used it.
func (h *history) expectUnusedOnly(t *testing.T) {
	t.Helper()
	h.complete(t)
	h.lock.Lock()
	defer h.lock.Unlock()
	slices.SortFunc(h.changes, func(a, b change) int { return cmp.Compare(a.version, b.version) })
	present, deleted := map[object]change{}, 0
	for _, c := range h.changes {
		c.applyTo(present)
		if !c.deleted || c.kind != "ConfigMap" && c.kind != "Secret" {
			continue
		}
		deleted++
		if by := users(present, c.name); len(by) > 0 {
			t.Errorf("%s was deleted, and used by %v", c.object, by)
		}
	}
	t.Logf("%d ConfigMaps and Secrets were deleted among %d changes", deleted, len(h.changes))
}
