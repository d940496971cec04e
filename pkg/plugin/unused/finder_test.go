// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package unused

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/references"
	"github.com/winnow-dev/winnow/pkg/plugin/internal/plugintest"
)

// failer is a test, or a random test.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// parsed returns an object of the namespace ns, unless it says another one, from "Kind name" and more fields.
func parsed(t failer, text string) *unstructured.Unstructured {
	t.Helper()
	head, fields, _ := strings.Cut(text, "\n")
	kind, name, _ := strings.Cut(head, " ")
	namespace := "ns"
	if before, after, ok := strings.Cut(name, "/"); ok {
		namespace, name = before, after
	}
	versions := map[string]string{
		"Deployment": "apps/v1", "StatefulSet": "apps/v1", "Job": "batch/v1", "CronJob": "batch/v1", "EndpointSlice": "discovery.k8s.io/v1",
		"RoleBinding": "rbac.authorization.k8s.io/v1", "Ingress": "networking.k8s.io/v1", "VirtualMachine": "kubevirt.io/v1",
		"PolicyReport": "wgpolicyk8s.io/v1alpha2",
	}
	o := &unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.Unmarshal([]byte(fields), &o.Object); err != nil {
		t.Fatalf("%v\n%s", err, fields)
	}
	o.SetKind(kind)
	o.SetName(name)
	o.SetNamespace(namespace)
	if o.SetAPIVersion("v1"); versions[kind] != "" {
		o.SetAPIVersion(versions[kind])
	}
	o.SetCreationTimestamp(metav1.NewTime(plugintest.Now.Add(-100 * 24 * time.Hour)))
	return o
}

func listedOf(o *unstructured.Unstructured) kinds.Listed {
	plural, _ := apimeta.UnsafeGuessKindToResource(o.GroupVersionKind())
	return kinds.Listed{Served: kinds.Served{GroupVersionKind: o.GroupVersionKind(), Plural: plural.Resource}, Namespaced: o.GetNamespace() != ""}
}

// find returns a Finder that has taken in objects as they come from a cluster: first those that may be unused.
func find(t failer, objects []*unstructured.Unstructured) *Finder {
	t.Helper()
	f := NewFinder()
	into := func(o *unstructured.Unstructured, typed runtime.Object) {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed); err != nil {
			t.Fatalf("%v", err)
		}
	}
	for _, o := range objects {
		switch o.GetKind() {
		case "PersistentVolumeClaim":
			typed := &corev1.PersistentVolumeClaim{}
			into(o, typed)
			f.AddClaim(typed)
		case "ServiceAccount":
			typed := &corev1.ServiceAccount{}
			into(o, typed)
			f.AddAccount(&typed.ObjectMeta)
		case "Service":
			typed := &corev1.Service{}
			into(o, typed)
			f.AddService(typed)
		}
	}
	for _, o := range objects {
		if o.GetKind() == "EndpointSlice" {
			if endpoints, _, _ := unstructured.NestedSlice(o.Object, "endpoints"); len(endpoints) > 0 {
				f.Endpoints(o.GetNamespace(), o.GetLabels()[discoveryv1.LabelServiceName])
			}
		} else if r := kinds.Reporting(listedOf(o)); r != nil {
			f.Refer(r, o)
		}
	}
	return f
}

// TestClaims: what becomes of the claim data-0 of the namespace ns beside other objects.
func TestClaims(t *testing.T) {
	const (
		claim     = "PersistentVolumeClaim data-0\nstatus: {phase: Bound}"
		said      = "PersistentVolumeClaim data-0\nstatus: {phase: Bound, conditions: [{type: Unused, status: '%s', lastTransitionTime: '2026-06-01T12:00:00Z'}]}"
		mounting  = "volumes: [{persistentVolumeClaim: {claimName: data-0}}]"
		template  = "spec: {template: {spec: {" + mounting + "}}}"
		elsewhere = "{name: data-0, namespace: ns}"
	)
	since := func(status string) string { return fmt.Sprintf(said, status) }
	for name, c := range map[string]struct {
		objects []string
		want    State
		by      string // a part of what keeps it
		differs string
	}{
		"nothing":                         {[]string{claim}, Unused, "", ""},
		"nothing, as Kubernetes says":     {[]string{since("True")}, Unused, "", ""},
		"a Pod":                           {[]string{claim, "Pod p\nspec: {" + mounting + "}"}, used, "", ""},
		"a Pod, as Kubernetes says":       {[]string{since("False"), "Pod p\nspec: {" + mounting + "}"}, used, "", ""},
		"a Pod that waits":                {[]string{claim, "Pod p\nspec: {" + mounting + "}\nstatus: {phase: Pending}"}, used, "", ""},
		"a Pod without a claim":           {[]string{claim, "Pod p\nspec: {volumes: [{emptyDir: {}}]}"}, Unused, "", ""},
		"a Pod with another claim":        {[]string{claim, "Pod p\nspec: {volumes: [{persistentVolumeClaim: {claimName: data-1}}]}"}, Unused, "", ""},
		"a Pod of another namespace":      {[]string{claim, "Pod other/p\nspec: {" + mounting + "}"}, Unused, "", ""},
		"a Pod that Kubernetes misses":    {[]string{since("True"), "Pod p\nspec: {" + mounting + "}"}, used, "", "says that no Pod uses it since 2026-06-01T12:00:00Z, but pods/p does"},
		"a Pod that only Kubernetes sees": {[]string{since("False")}, used, "", "says that a Pod uses it, but no Pod names it"},
		"a finished Pod":                  {[]string{since("True"), "Pod p\nspec: {" + mounting + "}\nstatus: {phase: Succeeded}"}, Referenced, "pods/p", ""},
		"a failed Pod":                    {[]string{claim, "Pod p\nspec: {" + mounting + "}\nstatus: {phase: Failed}"}, Referenced, "pods/p", ""},
		"a Pod that is being deleted": {
			[]string{claim, "Pod p\nspec: {" + mounting + "}\nmetadata: {deletionTimestamp: '2026-06-01T12:00:00Z'}\n" +
				"status: {phase: Running, containerStatuses: [{state: {terminated: {exitCode: 0}}}, {state: {running: {}}}]}"},
			used, "", "",
		},
		"a Pod that is being deleted and has ended": {
			[]string{claim, "Pod p\nspec: {" + mounting + "}\nmetadata: {deletionTimestamp: '2026-06-01T12:00:00Z'}\n" +
				"status: {phase: Running, containerStatuses: [{state: {terminated: {exitCode: 0}}}, {state: {waiting: {reason: x}}}]}"},
			Referenced, "pods/p", "",
		},
		"a Deployment without Pods": {[]string{since("True"), "Deployment d\n" + template}, Referenced, "deployments.apps/d", ""},
		"a suspended CronJob":       {[]string{claim, "CronJob c\nspec: {jobTemplate: {" + template + "}}"}, Referenced, "cronjobs.batch/c", ""},
		"its StatefulSet": {
			[]string{"PersistentVolumeClaim data-db-7", "StatefulSet db\nspec: {volumeClaimTemplates: [{metadata: {name: data}}]}"},
			Referenced, "statefulsets.apps/db", "",
		},
		"another StatefulSet": {
			[]string{"PersistentVolumeClaim data-db-7", "StatefulSet db2\nspec: {volumeClaimTemplates: [{metadata: {name: data}}]}"}, Unused, "", "",
		},
		"a clone that is not bound": {
			[]string{claim, "PersistentVolumeClaim z\nspec: {dataSource: {kind: PersistentVolumeClaim, name: data-0}}"}, Referenced, "persistentvolumeclaims/z", "",
		},
		"a clone that is bound": {
			[]string{claim, "PersistentVolumeClaim z\nspec: {volumeName: v, dataSource: {kind: PersistentVolumeClaim, name: data-0}}"}, Unused, "", "",
		},
		"a custom resource":                   {[]string{claim, "VirtualMachine vm\nspec: {disks: [{claim: data-0}]}"}, Referenced, "virtualmachines.kubevirt.io/vm", ""},
		"a custom resource elsewhere":         {[]string{claim, "VirtualMachine other/vm\nspec: {disk: " + elsewhere + "}"}, Referenced, "virtualmachines.kubevirt.io/vm in other", ""},
		"a custom resource of the name":       {[]string{"PersistentVolumeClaim data-kafka-0", "VirtualMachine kafka"}, Referenced, "virtualmachines.kubevirt.io/kafka", ""},
		"a custom resource of another name":   {[]string{"PersistentVolumeClaim data-kafka-0", "VirtualMachine kaf"}, Unused, "", ""},
		"a custom resource of all namespaces": {[]string{claim, "VirtualMachine /vm\nspec: {disk: data-0}"}, Referenced, "vm (cluster-scoped)", ""},
		"a report about it":                   {[]string{claim, "PolicyReport r\nscope: " + elsewhere}, Unused, "", ""},
		"a Pod that cannot be read":           {[]string{claim, "Pod p\nspec: {volumes: no list}"}, used, "", ""},
		"a Job that cannot be read":           {[]string{claim, "Job j\nspec: {template: {spec: {volumes: no list}}}"}, Referenced, "volumes is string, not a list", ""},
		"an owner":                            {[]string{"PersistentVolumeClaim data-0\nmetadata: {ownerReferences: [{kind: Cluster, name: pg}]}"}, Referenced, "its owner Cluster/pg", ""},
		"the finalizer of every claim":        {[]string{"PersistentVolumeClaim data-0\nmetadata: {finalizers: [kubernetes.io/pvc-protection]}"}, Unused, "", ""},
		"a snapshot is being made": {
			[]string{"PersistentVolumeClaim data-0\nmetadata: {finalizers: [snapshot.storage.kubernetes.io/pvc-as-source-protection]}"},
			Referenced, "finalizer snapshot", "",
		},
		"a user of JupyterHub": {[]string{"PersistentVolumeClaim data-0\nmetadata: {labels: {component: singleuser-storage}}"}, Referenced, "JupyterHub", ""},
		"applied by a tool": {
			[]string{"PersistentVolumeClaim data-0\nmetadata: {annotations: {meta.helm.sh/release-name: a, meta.helm.sh/release-namespace: ns}}"},
			Referenced, "Helm", "",
		},
		"being deleted": {[]string{"PersistentVolumeClaim data-0\nmetadata: {deletionTimestamp: '2026-06-01T12:00:00Z'}"}, used, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []*unstructured.Unstructured
			for _, text := range c.objects {
				objects = append(objects, parsed(t, text))
			}
			r := find(t, objects).Report(plugintest.Now, 0)
			first := Object{State: used}
			for _, o := range r.Objects {
				if o.Name == objects[0].GetName() {
					first = o
				}
			}
			if first.State != c.want || !strings.Contains(strings.Join(first.UsedBy, "\n"), c.by) {
				t.Errorf("got %q, kept by %q", first.State, first.UsedBy)
			}
			if got := strings.Join(r.Differences, "\n"); (got == "") != (c.differs == "") || !strings.Contains(got, c.differs) {
				t.Errorf("differences: %q", got)
			}
		})
	}
}

// TestAccountsAndServices: which of them are unused.
func TestAccountsAndServices(t *testing.T) {
	const service = "Service web\nspec: {selector: {app: shop}}"
	for name, c := range map[string]struct {
		objects []string
		want    string
	}{
		"nothing":                  {[]string{"ServiceAccount robot", "ServiceAccount default", "ServiceAccount kube-system/job-controller", service}, "robot web"},
		"a Pod":                    {[]string{"ServiceAccount robot", "Pod p\nspec: {serviceAccountName: robot}"}, ""},
		"a Pod of another account": {[]string{"ServiceAccount robot", "Pod p\nspec: {serviceAccountName: default}"}, "robot"},
		"a finished Pod":           {[]string{"ServiceAccount robot", "Pod p\nspec: {serviceAccountName: robot}\nstatus: {phase: Failed}"}, ""},
		"a RoleBinding":            {[]string{"ServiceAccount robot", "RoleBinding other/b\nsubjects: [{kind: ServiceAccount, name: robot, namespace: ns}]"}, ""},
		"the group":                {[]string{"ServiceAccount robot", "RoleBinding b\nsubjects: [{kind: Group, name: 'system:serviceaccounts:ns'}]"}, ""},
		"another group":            {[]string{"ServiceAccount robot", "RoleBinding b\nsubjects: [{kind: Group, name: 'system:serviceaccounts:x'}]"}, "robot"},
		"a token":                  {[]string{"ServiceAccount robot", "Secret s\nmetadata: {annotations: {kubernetes.io/service-account.name: robot}}"}, ""},
		"a custom resource":        {[]string{"ServiceAccount robot", "VirtualMachine vm\nspec: {account: robot}"}, ""},
		"a tool":                   {[]string{"ServiceAccount robot\nmetadata: {labels: {kustomize.toolkit.fluxcd.io/name: a, kustomize.toolkit.fluxcd.io/namespace: b}}"}, ""},

		"endpoints":                       {[]string{service, "EndpointSlice s\nmetadata: {labels: {kubernetes.io/service-name: web}}\nendpoints: [{addresses: [10.0.0.1]}]"}, ""},
		"no endpoints":                    {[]string{service, "EndpointSlice s\nmetadata: {labels: {kubernetes.io/service-name: web}}\nendpoints: []"}, "web"},
		"endpoints of another":            {[]string{service, "EndpointSlice s\nmetadata: {labels: {kubernetes.io/service-name: shop}}\nendpoints: [{addresses: [10.0.0.1]}]"}, "web"},
		"a Pod that has no address":       {[]string{service, "Pod p\nmetadata: {labels: {app: shop, tier: web}}"}, ""},
		"a Pod with other labels":         {[]string{service, "Pod p\nmetadata: {labels: {app: blog}}"}, "web"},
		"a Pod elsewhere":                 {[]string{service, "Pod other/p\nmetadata: {labels: {app: shop}}"}, "web"},
		"a Deployment without Pods":       {[]string{service, "Deployment d\nspec: {replicas: 0, template: {metadata: {labels: {app: shop}}}}"}, ""},
		"a custom resource of its labels": {[]string{service, "VirtualMachine vm\nspec: {template: {metadata: {labels: {app: shop}}}}"}, ""},
		"an Ingress":                      {[]string{service, "Ingress i\nspec: {defaultBackend: {service: {name: web}}}"}, ""},
		"no selector":                     {[]string{"Service web\nspec: {}"}, ""},
		"an external name":                {[]string{"Service web\nspec: {type: ExternalName, externalName: example.com, selector: {a: b}}"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []*unstructured.Unstructured
			for _, text := range c.objects {
				objects = append(objects, parsed(t, text))
			}
			var names []string
			for _, o := range find(t, objects).Report(plugintest.Now, 0).Of(Unused, "") {
				names = append(names, o.Name)
			}
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("unused are %q, want %q", got, c.want)
			}
		})
	}
}

// TestGaps: what cannot be listed may refer to everything that it is for, and to nothing else.
func TestGaps(t *testing.T) {
	objects := []*unstructured.Unstructured{
		parsed(t, "PersistentVolumeClaim c"), parsed(t, "ServiceAccount a"), parsed(t, "Service s\nspec: {selector: {app: x}}"),
		parsed(t, "PersistentVolumeClaim kept"), parsed(t, "Deployment d\nspec: {template: {spec: {volumes: [{persistentVolumeClaim: {claimName: kept}}]}}}"),
	}
	f := find(t, objects)
	f.Cannot("rolebindings", "outside namespace ns", mayNot, references.ServiceAccounts)
	f.Cannot("widgets.example.com", "in all namespaces", mayNot, references.PersistentVolumeClaims)
	f.Cannot("gadgets.example.com", "in all namespaces", mayNot, references.PersistentVolumeClaims)
	r := f.Report(plugintest.Now, 0)
	got := map[string]State{}
	for _, o := range r.Objects {
		got[o.Name] = o.State
	}
	if fmt.Sprint(got) != "map[a:Unknown c:Unknown kept:Referenced s:Unused]" || len(r.Totals) > 0 {
		t.Errorf("got %v, in total %v", got, r.Totals)
	}
	const want = "cannot list gadgets.example.com, widgets.example.com in all namespaces, so what only they may refer to counts as used: you may not list them"
	if len(r.Incomplete) != 2 || r.Incomplete[0].String() != want {
		t.Errorf("got %q", r.Incomplete)
	}
	many := Gap{Where: "in namespace ns", Resources: strings.Fields("a b c d e f g"), Why: mayNot}
	if got := many.String(); !strings.HasPrefix(got, "cannot list a, b, c, d, e and 2 more in namespace ns,") {
		t.Error(got)
	}
}

// TestOlderThan: a claim of which it is not known since when no Pod uses it is left out, and counted.
func TestOlderThan(t *testing.T) {
	unusedSince := func(name, since string) *unstructured.Unstructured {
		return parsed(t, "PersistentVolumeClaim "+name+"\nstatus: {phase: Bound, conditions: [{type: Unused, status: 'True', lastTransitionTime: '"+since+"'}]}")
	}
	young := parsed(t, "PersistentVolumeClaim young")
	young.SetCreationTimestamp(metav1.NewTime(plugintest.Now.Add(-time.Hour)))
	f := find(t, []*unstructured.Unstructured{
		unusedSince("long", "2026-05-01T12:00:00Z"), unusedSince("exactly", "2026-06-01T12:00:00Z"), unusedSince("short", "2026-06-01T12:00:01Z"),
		parsed(t, "PersistentVolumeClaim undated"), young, parsed(t, "ServiceAccount old"),
	})
	r := f.Report(plugintest.Now, 30*24*time.Hour)
	var names []string
	for _, o := range r.Objects {
		names = append(names, o.Name)
	}
	if fmt.Sprint(names) != "[exactly long old]" || r.Undated != 1 {
		t.Errorf("got %v, and %d of which it is not known", names, r.Undated)
	}
}

// TestStem: what a claim is called without its number.
func TestStem(t *testing.T) {
	for name, want := range map[string]string{"data-db-0": "data-db", "data-10": "data", "data": "data", "data-a1": "data-a1", "data-": "data-", "-1": "-1", "7": "7"} {
		if got := stem(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := len(partsOf(strings.Repeat("a-", 126) + "a")); got != maxParts {
		t.Errorf("a long name has %d parts", got)
	}
}

// drawn is a random object that may refer to others.
func drawn(t *rapid.T) *unstructured.Unstructured {
	name := rapid.SampledFrom([]string{"a", "b", "data-a-0", "data-b-1", "c"})
	namespace := rapid.SampledFrom([]string{"ns", "other"}).Draw(t, "namespace")
	n, phase := name.Draw(t, "name"), rapid.SampledFrom([]string{"Running", "Succeeded"}).Draw(t, "phase")
	pod := fmt.Sprintf("{serviceAccountName: %s, volumes: [{persistentVolumeClaim: {claimName: %s}}]}", n, name.Draw(t, "claim"))
	texts := []string{
		"Pod %[1]s/p\nmetadata: {labels: {app: %[2]s}}\nspec: %[3]s\nstatus: {phase: %[4]s}",
		"Deployment %[1]s/d\nspec: {template: {metadata: {labels: {app: %[2]s}}, spec: %[3]s}}",
		"StatefulSet %[1]s/%[2]s\nspec: {volumeClaimTemplates: [{metadata: {name: data}}]}",
		"VirtualMachine %[1]s/%[2]s\nspec: {disk: %[2]s, namespace: ns}",
		"VirtualMachine /%[2]s\nspec: {x: %[4]s}",
		"Job %[1]s/j\nspec: {template: {spec: {volumes: %[2]s}}}",
		"RoleBinding %[1]s/b\nsubjects: [{kind: ServiceAccount, name: %[2]s, namespace: ns}]",
	}
	text := rapid.SampledFrom(texts).Draw(t, "object")
	for at, value := range map[string]string{"%[1]s": namespace, "%[2]s": n, "%[3]s": pod, "%[4]s": phase} {
		text = strings.ReplaceAll(text, at, value)
	}
	return parsed(t, text)
}

// TestFewerReferrers: without one of the objects that may refer to others, at least as much is unused; with a gap, nothing more.
func TestFewerReferrers(t *testing.T) {
	var subjects []*unstructured.Unstructured
	for _, name := range []string{"a", "b", "data-a-0", "data-b-1"} {
		subjects = append(subjects, parsed(t, "PersistentVolumeClaim "+name), parsed(t, "ServiceAccount "+name),
			parsed(t, "Service "+name+"\nspec: {selector: {app: "+name+"}}"))
	}
	unusedOf := func(f *Finder) (out []string) {
		for _, o := range f.Report(plugintest.Now, 0).Of(Unused, "") {
			out = append(out, o.Resource+"/"+o.Name)
		}
		return out
	}
	rapid.Check(t, func(rt *rapid.T) {
		referrers := rapid.SliceOfN(rapid.Custom(drawn), 1, 6).Draw(rt, "referrers")
		without := slices.Clone(referrers)
		i := rapid.IntRange(0, len(referrers)-1).Draw(rt, "removed")
		without = slices.Delete(without, i, i+1)
		all, fewer := find(t, append(slices.Clone(subjects), referrers...)), find(t, append(slices.Clone(subjects), without...))
		before, after := unusedOf(all), unusedOf(fewer)
		for _, o := range before {
			if !slices.Contains(after, o) {
				rt.Fatalf("%s is unused with %v, and not without it", o, referrers[i].Object)
			}
		}
		fewer.Cannot("widgets", "", mayNot, rapid.SampledFrom([]references.To{references.PersistentVolumeClaims, references.Services}).Draw(rt, "gap"))
		for _, o := range unusedOf(fewer) {
			if !slices.Contains(after, o) {
				rt.Fatalf("%s is unused only because something cannot be listed", o)
			}
		}
	})
}
