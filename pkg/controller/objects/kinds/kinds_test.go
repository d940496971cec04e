// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// TestTable: each row is consistent, and the owners of each kind are in the table too.
func TestTable(t *testing.T) {
	for _, k := range builtin.kinds {
		if want := strings.TrimSuffix(k.Plural+"."+k.GroupVersionKind.Group, "."); k.Resource != want {
			t.Errorf("%s: its plural and group are %s", k.Resource, want)
		}
		gvks, _, err := scheme.Scheme.ObjectKinds(k.New())
		if err != nil || !slices.Contains(gvks, k.GroupVersionKind) {
			t.Errorf("%s: New makes %v, %v", k.Resource, gvks, err)
		}
		if got := builtin.ForOwner(k.GroupVersionKind.GroupKind()); got != k {
			t.Errorf("%s: as an owner it is %v", k.Resource, got)
		}
		for _, owner := range k.Owners {
			if _, err := builtin.For(owner); err != nil {
				t.Errorf("%s: owner: %v", k.Resource, err)
			}
		}
		if f, err := k.Fact(k.New()); (f != nil) != (err == nil && k.Deletable()) || f != nil && f.Resource != k.Resource {
			t.Errorf("%s: its fact is %+v, %v", k.Resource, f, err)
		}
	}
	if got := builtin.Deletable(); !slices.Equal(got, gc.DefaultResources()) {
		t.Errorf("policies can name %v, and their defaults are for %v", got, gc.DefaultResources())
	}
}

func TestUnknown(t *testing.T) {
	if k, err := builtin.For("secrets"); err == nil || !strings.Contains(err.Error(), "serve secrets") {
		t.Errorf("got %v, %v", k, err)
	}
	if got := builtin.ForOwner(schema.GroupKind{Group: "example.com", Kind: "Job"}); got != nil {
		t.Errorf("a Job of another group is %v", got)
	}
	if f, err := builtin.kinds[gc.ResourcePods].Fact(&corev1.Secret{}); err == nil || !strings.Contains(err.Error(), "Secret") {
		t.Errorf("got %v, %v", f, err)
	}
}

func TestPath(t *testing.T) {
	for _, tc := range []struct{ resource, namespace, name, want string }{
		{gc.ResourceJobs, "ns", "a", "/apis/batch/v1/namespaces/ns/jobs/a"},
		{gc.ResourceJobs, "ns", "", "/apis/batch/v1/namespaces/ns/jobs"},
		{gc.ResourceJobs, "", "", "/apis/batch/v1/jobs"},
		{gc.ResourcePods, "ns", "a", "/api/v1/namespaces/ns/pods/a"},
		{gc.ResourcePods, "ns", "", "/api/v1/namespaces/ns/pods"},
		{gc.ResourcePods, "", "", "/api/v1/pods"},
	} {
		k, err := builtin.For(tc.resource)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(k.Path(tc.namespace, tc.name), "/"); got != tc.want {
			t.Errorf("got %s, want %s", got, tc.want)
		}
	}
}

func TestObservedOwners(t *testing.T) {
	for resource, want := range map[string][]string{
		gc.ResourceJobs: {CronJobs}, gc.ResourcePods: {}, CronJobs: {}, ResourceQuotas: {},
	} {
		if got := resources(builtin.ObservedOwners(resource)); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", resource, got, want)
		}
	}
}

func TestWithOwners(t *testing.T) {
	for name, c := range map[string]struct{ resources, want []string }{
		"none":                 {nil, nil},
		"Jobs":                 {[]string{gc.ResourceJobs}, []string{gc.ResourceJobs}},
		"Pods":                 {[]string{gc.ResourcePods}, []string{gc.ResourcePods, gc.ResourceJobs}},
		"both":                 {[]string{gc.ResourceJobs, gc.ResourcePods}, []string{gc.ResourceJobs, gc.ResourcePods}},
		"and quotas":           {[]string{ResourceQuotas, gc.ResourcePods}, []string{ResourceQuotas, gc.ResourcePods, gc.ResourceJobs}},
		"and one that is none": {[]string{"secrets", gc.ResourcePods}, []string{"secrets", gc.ResourcePods, gc.ResourceJobs}},
	} {
		if got := builtin.WithOwners(c.resources...); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func resources(all []*Kind) []string {
	var out []string
	for _, k := range all {
		out = append(out, k.Resource)
	}
	return out
}
