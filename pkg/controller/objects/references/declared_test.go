// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// written writes references as "secrets namespace/name".
func written(refs []Reference) []string {
	to := map[To]string{Secrets: "secrets ", ConfigMaps: "configmaps ", both: "both "}
	out := []string{}
	for _, r := range refs {
		out = append(out, to[r.To]+r.Namespace+"/"+r.Name)
	}
	slices.Sort(out)
	return out
}

// sample is an object with its references.
type sample struct {
	Resource string         `json:"resource"`
	Object   map[string]any `json:"object"`
	Want     []string       `json:"want"`
	// Error is a part of the error.
	Error string `json:"error"`
}

func samples(t testing.TB, file string) []sample {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var out []sample
	if err := yaml.UnmarshalStrict(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func (s *sample) check(t *testing.T, r *Reader) {
	t.Helper()
	refs, err := r.References(s.Object)
	if (err != nil) != (s.Error != "") || err != nil && !strings.Contains(err.Error(), s.Error) {
		t.Errorf("got error %v, want %q", err, s.Error)
	}
	if got, want := each(written(refs)), each(s.Want); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// each writes references to both resources as two.
func each(written []string) (out []string) {
	for _, r := range written {
		if name, both := strings.CutPrefix(r, "both "); both {
			out = append(out, "secrets "+name, "configmaps "+name)
		} else {
			out = append(out, r)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestDeclarations(t *testing.T) {
	all, err := BuiltinDeclarations()
	if err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{}
	for _, s := range samples(t, "declared.yaml") {
		t.Run(s.Resource, func(t *testing.T) {
			tested[s.Resource] = true
			r, err := Declared(all[s.Resource])
			if err != nil {
				t.Fatal(err)
			}
			s.check(t, r)
		})
	}
	for _, resource := range slices.Sorted(maps.Keys(all)) {
		if !tested[resource] {
			t.Errorf("no sample of %s", resource)
		}
		if _, err := Declared(all[resource]); err != nil {
			t.Errorf("%s: %v", resource, err)
		}
		text, err := declarations.ReadFile("declarations/" + resource + ".yaml")
		if err != nil || !strings.Contains(string(text), "# Read from https://") {
			t.Errorf("%s: %v: the file does not say what it was read from", resource, err)
		}
	}
}

// TestDeclaredFields puts one name at each field that the APIs have, in an object that consists of nothing else.
func TestDeclaredFields(t *testing.T) {
	all, err := BuiltinDeclarations()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/fields.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var apis []struct {
		Source    string              `json:"source"`
		Resources map[string][]string `json:"resources"`
	}
	if err := yaml.UnmarshalStrict(text, &apis); err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{}
	for _, api := range apis {
		for resource, fields := range api.Resources {
			tested[resource] = true
			r, err := Declared(all[resource])
			if err != nil {
				t.Fatal(err)
			}
			for _, field := range fields {
				checkField(t, r, resource, field)
			}
		}
	}
	// The rest names nothing, by their APIs.
	for _, resource := range []string{"appprojects.argoproj.io", "certificaterequests.cert-manager.io", "orders.acme.cert-manager.io"} {
		tested[resource] = true
	}
	for resource := range all {
		if !tested[resource] {
			t.Errorf("no field of %s", resource)
		}
	}
}

func checkField(t *testing.T, r *Reader, resource, field string) {
	t.Helper()
	field, ofKind := strings.CutSuffix(field, " (kind)")
	to := map[string]To{"Secret": Secrets, "ConfigMap": ConfigMaps}
	if !ofKind && strings.Contains(strings.ToLower(field), "configmap") {
		delete(to, "Secret")
	} else if !ofKind {
		delete(to, "ConfigMap")
	}
	for kind, to := range to {
		p := parse(field)
		var value any = "a-name"
		for i := len(p) - 1; i >= 0; i-- {
			if p[i].list {
				value = []any{value}
			}
			object := map[string]any{p[i].key: value}
			if i == len(p)-1 && ofKind {
				object["kind"] = kind
			}
			value = object
		}
		object := value.(map[string]any)
		object["metadata"] = map[string]any{"name": "own", "namespace": "ns"}
		refs, err := r.References(object)
		found := slices.ContainsFunc(refs, func(f Reference) bool { return f.Name == "a-name" && f.Namespace != "a-name" && f.To&to == to })
		if err != nil || !found {
			t.Errorf("%s: %s of a %s: got %v, %v", resource, field, kind, written(refs), err)
		}
	}
}

// TestNothingUsesItself: an object that has its own name in an annotation is not used for that, also if users declare what is in its data.
func TestNothingUsesItself(t *testing.T) {
	declared, err := Declared([]gc.LifecycleReference{{To: gc.ResourceSecrets, Names: "object.data.other"}})
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{
		"metadata": map[string]any{"name": "own", "namespace": "ns", "annotations": map[string]any{"example.com/name": "own"}},
		"data":     map[string]any{"other": "x"},
	}
	refs, err := Union(Builtin("configmaps"), declared).References(object)
	if got := written(refs); err != nil || !slices.Equal(got, []string{"secrets ns/own", "secrets ns/x"}) {
		t.Errorf("got %q, %v", got, err)
	}
}
