// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
)

func describeListed(all []kinds.Listed) string {
	var out []string
	for _, l := range all {
		scope := ""
		if !l.Namespaced {
			scope = "cluster:"
		}
		out = append(out, scope+l.Resource()+"="+l.Version)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestListed: everything that can be listed and watched may refer to ConfigMaps and Secrets, also what policies cannot name. A version that
// fails keeps what it had, and if it never answered, not everything is known.
func TestListed(t *testing.T) {
	whole := func() *cluster {
		return new(cluster).serve("", "v1", "pods", "pods/log", "cluster:nodes", "readonly:statuses", "unwatched:components").
			serve("example.com", "v1 v1beta1", "runs", "cluster:racks").serve("other.io", "v1", "builds")
	}
	const all = "builds.other.io=v1 cluster:nodes=v1 cluster:racks.example.com=v1 pods=v1 runs.example.com=v1 statuses=v1"
	for name, tc := range map[string]struct {
		readings     []*cluster
		remote       []string // groups that other API servers serve
		want         string
		undiscovered string // the version that is named; empty if none is
	}{
		"everything":                {[]*cluster{whole()}, nil, all, ""},
		"of another API server too": {[]*cluster{whole()}, []string{"other.io"}, all, ""},
		"a version that fails from the start": {
			[]*cluster{whole().stale("other.io", "v1")}, nil, strings.TrimPrefix(all, "builds.other.io=v1 "), "other.io/v1",
		},
		"one of another API server": {
			[]*cluster{whole().stale("other.io", "v1")}, []string{"other.io"}, strings.TrimPrefix(all, "builds.other.io=v1 "), "other.io/v1",
		},
		"the preferred version fails from the start": {
			[]*cluster{whole().stale("example.com", "v1")}, nil,
			"builds.other.io=v1 cluster:nodes=v1 cluster:racks.example.com=v1beta1 pods=v1 runs.example.com=v1beta1 statuses=v1", "example.com/v1",
		},
		"two fail from the start": {
			[]*cluster{whole().stale("other.io", "v1").stale("example.com", "v1")}, nil,
			"cluster:nodes=v1 cluster:racks.example.com=v1beta1 pods=v1 runs.example.com=v1beta1 statuses=v1", "example.com/v1",
		},
		"a version that fails later":                   {[]*cluster{whole(), whole().stale("other.io", "v1")}, nil, all, ""},
		"one of another API server that fails later":   {[]*cluster{whole(), whole().stale("other.io", "v1")}, []string{"other.io"}, all, ""},
		"the preferred version fails later":            {[]*cluster{whole(), whole().stale("example.com", "v1")}, nil, all, ""},
		"a version that goes on failing":               {[]*cluster{whole(), whole().stale("other.io", "v1"), whole().stale("other.io", "v1")}, nil, all, ""},
		"a version that recovers":                      {[]*cluster{whole().stale("other.io", "v1"), whole()}, nil, all, ""},
		"a version that fails from the start and goes": {[]*cluster{whole().stale("other.io", "v1"), new(cluster).serve("", "v1", "pods")}, nil, "pods=v1", ""},
		"a group that is gone":                         {[]*cluster{whole(), new(cluster).serve("", "v1", "pods")}, nil, "pods=v1", ""},
		"a group that was gone before it failed": {
			[]*cluster{whole(), new(cluster).serve("", "v1", "pods"), new(cluster).serve("", "v1", "pods").serve("other.io", "v1", "builds").stale("other.io", "v1")},
			nil, "pods=v1", "other.io/v1",
		},
		"a version that comes and fails": {
			[]*cluster{whole(), whole().serve("other.io", "v2", "builds").stale("other.io", "v2")}, nil, all, "other.io/v2",
		},
		"another version": {
			[]*cluster{new(cluster).serve("example.com", "v1", "runs"), new(cluster).serve("example.com", "v2", "runs")}, nil, "runs.example.com=v2", "",
		},
		"metrics": {
			[]*cluster{new(cluster).serve("", "v1", "pods").serve("metrics.k8s.io", "v1", "pods").stale("metrics.k8s.io", "v1").
				serve("external.metrics.k8s.io", "v1", "queues").stale("external.metrics.k8s.io", "v1")},
			[]string{"metrics.k8s.io", "external.metrics.k8s.io"}, "pods=v1", "",
		},
		"Winnow itself, before it is ready": {
			[]*cluster{new(cluster).serve("", "v1", "pods").serve(gc.GroupName, "v1alpha1", "cleanuppolicies").stale(gc.GroupName, "v1alpha1")},
			[]string{gc.GroupName}, "pods=v1", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var services []runtime.Object
			for _, group := range tc.remote {
				services = append(services, apiService(group, "v1", true))
			}
			var got *answer
			for _, c := range tc.readings {
				next, err := c.reader(services...).read(t.Context(), got)
				if err != nil {
					t.Fatal(err)
				}
				got = next
			}
			if listed := describeListed(got.listed); listed != tc.want {
				t.Errorf("listed: %s; want %s", listed, tc.want)
			}
			why := got.undiscovered()
			version, group := "", ""
			if tc.undiscovered != "" {
				group, version, _ = strings.Cut(tc.undiscovered, "/")
			}
			if (why == "") != (tc.undiscovered == "") || !strings.Contains(why, " "+tc.undiscovered+" has: stale") && why != "" {
				t.Errorf("undiscovered because %q, want %q", why, tc.undiscovered)
			}
			if way := "delete the APIService " + version + "." + group; why != "" && !strings.HasSuffix(why, way) {
				t.Errorf("%q does not end with %q", why, way)
			}
		})
	}
}
