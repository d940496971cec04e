// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"
)

func TestBuiltin(t *testing.T) {
	tested := map[string]bool{}
	for _, s := range samples(t, "builtin.yaml") {
		tested[s.Resource] = true
		t.Run(s.Resource, func(t *testing.T) { s.check(t, Builtin(s.Resource)) })
	}
	for _, resource := range BuiltinResources() {
		if !tested[resource] {
			t.Errorf("no sample of %s", resource)
		}
	}
}

// TestFields: a Reader finds the same in the fields that it reads.
func TestFields(t *testing.T) {
	for _, s := range samples(t, "builtin.yaml") {
		t.Run(s.Resource, func(t *testing.T) {
			part := map[string]any{}
			for _, path := range Builtin(s.Resource).Fields() {
				copyField(part, s.Object, path)
			}
			(&sample{Object: part, Want: s.Want, Error: s.Error}).check(t, Builtin(s.Resource))
		})
	}
}

func copyField(to, from map[string]any, path []string) {
	value, ok := from[path[0]]
	if !ok {
		return
	}
	to[path[0]] = copyValue(to[path[0]], value, path[1:])
}

func copyValue(to, from any, path []string) any {
	switch from := from.(type) {
	case map[string]any:
		if len(path) == 0 {
			return from
		}
		if to == nil {
			to = map[string]any{}
		}
		copyField(to.(map[string]any), from, path)
		return to
	case []any:
		if to == nil {
			to = make([]any, len(from))
		}
		for i := range from {
			to.([]any)[i] = copyValue(to.([]any)[i], from[i], path)
		}
		return to
	}
	return from
}

// TestEveryPath puts one name at each path of the table, in an object that consists of nothing else.
func TestEveryPath(t *testing.T) {
	types := map[string]reflect.Type{}
	for gvk, resource := range stored() {
		types[resource] = scheme.Scheme.AllKnownTypes()[gvk]
	}
	for _, resource := range elsewhere {
		types[resource] = reflect.TypeFor[metav1.PartialObjectMetadata]()
	}
	for resource, rules := range table {
		for _, r := range rules {
			if r.how == inAny || r.unless != nil {
				continue
			}
			var value any = "a-name"
			switch r.how { //nolint:exhaustive // Elsewhere there are names.
			case inAnnotations, inPodAnnotations, inParameters:
				value = map[string]any{"some-secret": "a-name"}
			case inPodText:
				value = "--secret=a-name"
			case inWords:
				value = map[string]any{"key": "a-name"}
				if r.path[len(r.path)-1].key == "*" {
					value = "a-name"
				}
			}
			for i := len(r.path) - 1; i >= 0; i-- {
				if r.path[i].list {
					value = []any{value}
				}
				value = map[string]any{strings.Replace(r.path[i].key, "*", "any", 1): value}
			}
			object := value.(map[string]any)
			typed := reflect.New(types[resource]).Interface()
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, typed, true); err != nil {
				t.Errorf("%s has no %v: %v", resource, r.path, err)
			}
			refs, err := Builtin(resource).References(object)
			found := slices.ContainsFunc(refs, func(f Reference) bool { return f.Name == "a-name" && f.To&r.to == r.to })
			if err != nil || !found {
				t.Errorf("%s: at %v: got %v, %v", resource, r.path, written(refs), err)
			}
		}
	}
}

// TestMalformed: a value of another type at any step of a path is no reason to find nothing.
func TestMalformed(t *testing.T) {
	for resource, rules := range table {
		for _, r := range rules {
			for n := range r.path {
				if r.path[n].key == "*" || r.path[0].key == "metadata" && n == 0 {
					continue
				}
				var value any = int64(1)
				if r.how == inWords && n == len(r.path)-1 || r.unless != nil {
					continue // Anything may be there.
				}
				for i := n; i >= 0; i-- {
					if i < n && r.path[i].list {
						value = []any{value}
					}
					value = map[string]any{strings.Replace(r.path[i].key, "*", "any", 1): value}
				}
				refs, err := Builtin(resource).References(value.(map[string]any))
				if err == nil || !slices.Contains(refs, Reference{both, All, All}) {
					t.Errorf("%s with a number at %v[%d]: got %v, %v", resource, r.path, n, written(refs), err)
				}
			}
		}
	}
}

// typed finds the references in a Go value by the types of its fields. It knows no path.
func typed(v reflect.Value, namespace string, add func(to To, namespace, name string)) {
	words := func(m map[string]string) {
		for _, name := range m {
			add(both, namespace, name)
		}
	}
	told := func(command, args []string, env []corev1.EnvVar) {
		for _, name := range slices.Concat(command, args) {
			add(both, namespace, name)
		}
		for _, v := range env {
			add(both, namespace, v.Value)
		}
	}
	of := func(r *corev1.SecretReference) {
		if r != nil && r.Namespace != "" {
			add(Secrets, r.Namespace, r.Name)
		} else if r != nil {
			add(Secrets, namespace, r.Name)
		}
	}
	switch x := v.Interface().(type) {
	case metav1.ObjectMeta:
		return
	case corev1.SecretVolumeSource:
		add(Secrets, namespace, x.SecretName)
	case corev1.AzureFileVolumeSource:
		add(Secrets, namespace, x.SecretName)
	case corev1.AzureFilePersistentVolumeSource:
		r := &corev1.SecretReference{Name: x.SecretName}
		if x.SecretNamespace != nil {
			r.Namespace = *x.SecretNamespace
		}
		of(r)
	case corev1.SecretProjection:
		add(Secrets, namespace, x.Name)
	case corev1.SecretKeySelector:
		add(Secrets, namespace, x.Name)
	case corev1.SecretEnvSource:
		add(Secrets, namespace, x.Name)
	case corev1.ConfigMapVolumeSource:
		add(ConfigMaps, namespace, x.Name)
	case corev1.ConfigMapProjection:
		add(ConfigMaps, namespace, x.Name)
	case corev1.ConfigMapKeySelector:
		add(ConfigMaps, namespace, x.Name)
	case corev1.ConfigMapEnvSource:
		add(ConfigMaps, namespace, x.Name)
	case corev1.SecretReference:
		of(&x)
	case corev1.StorageOSPersistentVolumeSource:
		if x.SecretRef != nil {
			of(&corev1.SecretReference{Namespace: x.SecretRef.Namespace, Name: x.SecretRef.Name})
		}
	case corev1.LocalObjectReference: // Those embedded in the types above are not visited.
		add(Secrets, namespace, x.Name)
	case corev1.Container:
		told(x.Command, x.Args, x.Env)
	case corev1.EphemeralContainer:
		told(x.Command, x.Args, x.Env)
	case corev1.CSIVolumeSource:
		words(x.VolumeAttributes)
	case corev1.CSIPersistentVolumeSource:
		words(x.VolumeAttributes)
	case corev1.FlexVolumeSource:
		words(x.Options)
	case corev1.FlexPersistentVolumeSource:
		words(x.Options)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			typed(v.Elem(), namespace, add)
		}
	case reflect.Slice:
		for i := range v.Len() {
			typed(v.Index(i), namespace, add)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && (!f.Anonymous || f.Type != reflect.TypeFor[corev1.LocalObjectReference]()) {
				typed(v.Field(i), namespace, add)
			}
		}
	}
}

// TestTyped compares the table with a walk over the Go types, for filled objects of each workload and volume.
func TestTyped(t *testing.T) {
	seed := rand.Int64()
	t.Logf("seed %d", seed)
	filler := randfill.NewWithSeed(seed).NilChance(0.3).NumElements(1, 2).MaxDepth(30).Funcs(
		func(s *string, c randfill.Continue) { *s = fmt.Sprintf("n%d", c.Int63n(1e12)) },
		func(m *metav1.ObjectMeta, _ randfill.Continue) { m.Name, m.Namespace = "own", "ns" },
		func(o *runtime.RawExtension, _ randfill.Continue) { o.Raw = []byte("{}") },
		func(f *metav1.FieldsV1, _ randfill.Continue) { f.SetRawString("{}") },
	)
	for gvk, resource := range stored() {
		cluster := slices.Contains([]string{"persistentvolumes", "volumeattachments.storage.k8s.io"}, resource)
		workload := slices.ContainsFunc(table[resource], func(r rule) bool { return r.path[len(r.path)-1].key == "secretName" && len(r.path) > 4 })
		if !cluster && !workload && resource != "pods" || resource == "controllerrevisions.apps" {
			continue
		}
		t.Run(resource, func(t *testing.T) {
			found := 0
			for range 20 {
				object := reflect.New(scheme.Scheme.AllKnownTypes()[gvk])
				filler.Fill(object.Interface())
				want := map[Reference]struct{}{}
				namespace := "ns"
				m := object.Interface().(metav1.Object)
				if cluster {
					namespace = All
					m.SetNamespace("")
					if resource == "persistentvolumes" {
						want[Reference{Secrets, All, "own"}] = struct{}{}
					}
				}
				typed(object, namespace, func(to To, namespace, name string) {
					if name != "" {
						want[Reference{to, namespace, name}] = struct{}{}
					}
				})
				content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object.Interface())
				if err != nil {
					t.Fatal(err)
				}
				got, err := Builtin(resource).References(content)
				if wanted := (&reading{collection: &collection{all: want}}).references(); err != nil || !slices.Equal(got, wanted) {
					t.Fatalf("got\n%v, %v\nwant\n%v", written(got), err, written(wanted))
				}
				found += len(got)
			}
			if found < 20 {
				t.Errorf("only %d references", found)
			}
		})
	}
}
