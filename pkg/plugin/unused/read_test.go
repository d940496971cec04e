// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package unused

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/observe/decode"
	"github.com/winnow-dev/winnow/pkg/plugin/internal/plugintest"
)

// cluster has a claim, a ServiceAccount and a Service that nothing uses.
type cluster struct {
	// fails has the errors of lists, by "resource" or "resource namespace".
	fails        map[string]error
	undiscovered string
	lock         sync.Mutex
	lists        []string // what was listed, as "resource namespace"
}

var everything = []kinds.Listed{
	listedAs("v1", "Pod", "pods", true), listedAs("apps/v1", "Deployment", "deployments", true), listedAs("v1", "Node", "nodes", false),
	listedAs("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", true), listedAs("kubevirt.io/v1", "VirtualMachine", "virtualmachines", true),
	listedAs("example.com/v1", "Zone", "zones", false), listedAs("wgpolicyk8s.io/v1", "PolicyReport", "policyreports", true),
	listedAs("v1", "Secret", "secrets", true),
}

func listedAs(version, kind, plural string, namespaced bool) kinds.Listed {
	return kinds.Listed{Served: kinds.Served{GroupVersionKind: schema.FromAPIVersionAndKind(version, kind), Plural: plural}, Namespaced: namespaced}
}

func (c *cluster) Listed(context.Context) ([]kinds.Listed, string, error) {
	return everything, c.undiscovered, nil
}

func (c *cluster) EachOf(
	_ context.Context, r decode.Reading, namespace, fieldSelector string, do func(runtime.Object, metav1.ListInterface) error,
) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	key := strings.TrimSpace(r.Kind.Resource + " " + namespace + " " + fieldSelector)
	c.lists = append(c.lists, key)
	for _, name := range []string{r.Kind.Resource, key} {
		if err := c.fails[name]; err != nil {
			return err
		}
	}
	m := metav1.ObjectMeta{Namespace: "ns", Name: "x"}
	var page runtime.Object
	switch r.Kind.Resource {
	case Claims:
		page = &corev1.PersistentVolumeClaimList{Items: []corev1.PersistentVolumeClaim{{ObjectMeta: m}}}
	case Accounts:
		page = &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{{ObjectMeta: m}}}
	case Services:
		page = &corev1.ServiceList{Items: []corev1.Service{{ObjectMeta: m, Spec: corev1.ServiceSpec{Selector: map[string]string{"a": "b"}}}}}
	case "endpointslices.discovery.k8s.io":
		page = &discoveryv1.EndpointSliceList{}
	default:
		page = &unstructured.UnstructuredList{}
	}
	l, ok := page.(metav1.ListInterface)
	if !ok {
		return fmt.Errorf("%T is no list", page)
	}
	return do(page, l)
}

func forbidden(resource string) error {
	return apierrors.NewForbidden(schema.ParseGroupResource(resource), "", errors.New("no"))
}

// TestRead: what is listed where, and what becomes of what cannot be.
func TestRead(t *testing.T) {
	for name, c := range map[string]struct {
		namespace string
		resources []string
		fails     []string
		// lists are some of what is listed, and unlisted what is not.
		lists, unlisted []string
		want            string // states by resource, or the error
		gaps            string
	}{
		"all namespaces": {
			lists:    []string{"pods", "virtualmachines.kubevirt.io", "zones.example.com", "secrets  type=kubernetes.io/service-account-token"},
			unlisted: []string{"nodes", "policyreports.wgpolicyk8s.io"},
			want:     "persistentvolumeclaims Unused, serviceaccounts Unused, services Unused",
		},
		"one namespace": {
			namespace: "ns",
			lists: []string{
				"persistentvolumeclaims ns", "pods ns", "deployments.apps ns", "endpointslices.discovery.k8s.io ns",
				"virtualmachines.kubevirt.io", "rolebindings.rbac.authorization.k8s.io", "zones.example.com",
			},
			unlisted: []string{"pods", "virtualmachines.kubevirt.io ns"},
			want:     "persistentvolumeclaims Unused, serviceaccounts Unused, services Unused",
		},
		"claims alone": {
			namespace: "ns", resources: []string{Claims}, lists: []string{"pods ns"},
			unlisted: []string{"serviceaccounts ns", "secrets ns type=kubernetes.io/service-account-token", "endpointslices.discovery.k8s.io ns"},
			want:     "persistentvolumeclaims Unused",
		},
		"no rights elsewhere": {
			namespace: "ns", fails: []string{"virtualmachines.kubevirt.io"},
			want: "persistentvolumeclaims Unknown, serviceaccounts Unknown, services Unknown",
			gaps: "virtualmachines.kubevirt.io in namespace ns; virtualmachines.kubevirt.io outside namespace ns",
		},
		"no tokens": {
			namespace: "ns", fails: []string{"secrets"},
			want: "persistentvolumeclaims Unused, serviceaccounts Unknown, services Unused", gaps: "secrets in namespace ns",
		},
		"no endpoints": {
			fails: []string{"endpointslices.discovery.k8s.io"},
			want:  "persistentvolumeclaims Unused, serviceaccounts Unused, services Unknown", gaps: "endpointslices.discovery.k8s.io in all namespaces",
		},
		"no ServiceAccounts": {
			namespace: "ns", fails: []string{"serviceaccounts"}, unlisted: []string{"secrets ns type=kubernetes.io/service-account-token"},
			want: "persistentvolumeclaims Unused, services Unused", gaps: "serviceaccounts in namespace ns",
		},
		"nothing": {
			fails: []string{"serviceaccounts", "persistentvolumeclaims", "services"},
			want:  "error you may list none of what can be reported in all namespaces; to report on one namespace: -n NAMESPACE",
		},
	} {
		t.Run(name, func(t *testing.T) {
			from := &cluster{fails: map[string]error{}}
			for _, resource := range c.fails {
				from.fails[resource] = forbidden(resource)
			}
			if c.resources == nil {
				c.resources = []string{Claims, Accounts, Services}
			}
			got, gaps := states(t, from, c.namespace, c.resources)
			if got != c.want || gaps != c.gaps {
				t.Errorf("got %s, without %s", got, gaps)
			}
			for _, list := range c.lists {
				if !slices.Contains(from.lists, strings.Join(strings.Fields(list), " ")) && !slices.Contains(from.lists, list) {
					t.Errorf("%s was not listed: %q", list, from.lists)
				}
			}
			for _, list := range c.unlisted {
				if slices.Contains(from.lists, list) {
					t.Errorf("%s was listed", list)
				}
			}
		})
	}
}

func states(t *testing.T, from *cluster, namespace string, resources []string) (states, gaps string) {
	t.Helper()
	r, err := Read(t.Context(), from, Options{Namespace: namespace, Resources: resources, Now: plugintest.Now, Progress: func(string, int, int64) {}})
	if err != nil {
		return "error " + err.Error(), ""
	}
	var all, missing []string
	for _, o := range r.Objects {
		all = append(all, o.Resource+" "+string(o.State))
	}
	for _, g := range r.Incomplete {
		missing = append(missing, strings.Join(g.Resources, ", ")+" "+g.Where)
	}
	return strings.Join(all, ", "), strings.Join(missing, "; ")
}

// TestReadFailures: a resource that is gone has no objects; what fails for another reason may refer to everything.
func TestReadFailures(t *testing.T) {
	resource := schema.GroupResource{Group: "kubevirt.io", Resource: "virtualmachines"}
	gone := &cluster{fails: map[string]error{resource.String(): apierrors.NewNotFound(resource, "")}}
	if got, gaps := states(t, gone, "", []string{Claims}); got != "persistentvolumeclaims Unused" || gaps != "" {
		t.Errorf("gone: %s, without %s", got, gaps)
	}
	broken := &cluster{fails: map[string]error{resource.String(): apierrors.NewServiceUnavailable("restarting")}}
	if got, gaps := states(t, broken, "", []string{Claims}); got != "persistentvolumeclaims Unknown" || gaps != resource.String()+" in all namespaces" {
		t.Errorf("unavailable: %s, without %s", got, gaps)
	}
	if got, gaps := states(t, &cluster{undiscovered: "a server is down"}, "", []string{Claims}); got != "persistentvolumeclaims Unknown" || gaps == "" {
		t.Errorf("undiscovered: %s, without %s", got, gaps)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ctx, &cluster{}, Options{Resources: []string{Claims}, Progress: func(string, int, int64) {}}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestNamed: types as kubectl takes them.
func TestNamed(t *testing.T) {
	for name, want := range map[string]string{"pvc": Claims, "serviceaccount": Accounts, "svc": Services, "services": Services} {
		if got, err := Named(name); got != want || err != nil {
			t.Errorf("%s is %s, %v", name, got, err)
		}
	}
	if _, err := Named("pods"); err == nil {
		t.Error("Pods cannot be reported")
	}
}
