// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"fmt"
	"os"
	stdreflect "reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// pruned returns what is left of a value that was decoded whole.
func pruned(value any, fields fieldSet) any {
	object, ok := value.(map[string]any)
	if !ok || fields == nil {
		return value
	}
	out := map[string]any{}
	for key, below := range fields {
		if v, ok := object[key]; ok {
			out[key] = pruned(v, below)
		}
	}
	return out
}

func checkPartial(t interface{ Fatalf(string, ...any) }, data []byte, paths [][]string) {
	var whole any
	if err := json.Unmarshal(data, &whole); err != nil {
		return
	}
	if _, ok := whole.(map[string]any); !ok {
		return
	}
	p := NewPartial(paths)
	got, err := p.Decode(data)
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	if m, ok := got.Object["metadata"].(map[string]any); ok { // The digest is tested with others.
		delete(m, "selfLink")
	}
	if want := pruned(whole, p.fields); !stdreflect.DeepEqual(any(got.Object), want) {
		t.Fatalf("%s with %v became\n%#v, want\n%#v", data, paths, got.Object, want)
	}
}

func TestPartial(t *testing.T) {
	paths := [][]string{{"spec", "ttl"}, {"status"}, {"a", "b", "c"}, {"a", "d"}, {`k"`}, {"é"}, {""}}
	for _, data := range []string{
		`{}`, ` { } `, `{"kind": "Run", "apiVersion": "v1"}`,
		`{"spec":{"ttl":60,"big":[1,2,{"ttl":3}]},"status":{"phase":"Done","list":[{"a":1}]},"other":{"spec":{"ttl":1}}}`,
		`{"spec":null,"status":null}`, `{"spec":"odd","a":[{"b":1}]}`, `{"a":{"b":{"c":1.5,"x":1},"d":{"e":true},"f":0}}`, `{"a":{"b":7}}`,
		`{"x":"\"}{][\\","y":"\\\\","z":"\\\\\"","status":"\"}\\"}`,
		`{"sp\u0065c":{"ttl":1},"k\"":2,"\u00e9":3,"":4}`,
		`{"spec":{"ttl":1},"spec":{"other":2}}`, `{"status":1,"status":2}`,
		`{"big":12345678901234567890,"status":9223372036854775807,"x":-1e300,"spec":{"ttl":1e3}}`,
		"{\n\t\"spec\" : { \"ttl\" : 1 , \"x\" : [ ] } ,\r\n \"y\" : false }",
		`{"metadata":{"name":"a","managedFields":[{"fieldsV1":{"f:spec":{}}}],"annotations":{"gc.winnow.dev/ttl":"1h","other":"x"}}}`,
	} {
		checkPartial(t, []byte(data), paths)
		checkPartial(t, []byte(data), [][]string{{"spec"}, {"spec", "ttl"}, {"spec"}})
		checkPartial(t, []byte(data), [][]string{{}})
	}
}

func TestPartialErrors(t *testing.T) {
	p := NewPartial([][]string{{"status", "phase"}})
	for _, data := range []string{
		"", " ", "null", "[]", `"x"`, "{", `{"status`, `{"status"`, `{"status":`, `{"status":}`, `{"status":{"phase"}}`, `{"status":{"phase":x}}`,
		`{"status":{"phase":"x"}`, `{"a":[1,2}`, `{"a":1 "b":2}`, `{"a" 1}`, `{a:1}`, `{"a":1,}`, `{"a":"\"}`, `{} {}`, `{"\x":1}`, `{"status":[1,}`,
	} {
		if object, err := p.Decode([]byte(data)); err == nil {
			t.Errorf("%s became %v", data, object.Object)
		}
	}
}

// TestPartialOfRandomObjects compares with the object that is decoded whole.
func TestPartialOfRandomObjects(t *testing.T) {
	testbuilders.Checks(t, 2000)
	keys := rapid.SampledFrom([]string{"metadata", "spec", "status", "a", "b", `"`, `\`, "é", "<", ""})
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		all := []*rapid.Generator[any]{
			rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int64().AsAny(), rapid.Float64().AsAny(), rapid.String().AsAny(),
			rapid.SampledFrom([]string{`}`, `"`, `\`, `\"`, `{"a":`, `]`}).AsAny(),
		}
		if depth > 0 {
			all = append(all, rapid.SliceOfN(value(depth-1), 0, 3).AsAny(), rapid.MapOfN(keys, value(depth-1), 0, 5).AsAny())
		}
		return rapid.OneOf(all...)
	}
	rapid.Check(t, func(t *rapid.T) {
		data, err := json.Marshal(rapid.MapOfN(keys, value(4), 0, 6).Draw(t, "object"))
		if err != nil {
			t.Fatal(err)
		}
		checkPartial(t, data, rapid.SliceOfN(rapid.SliceOfN(keys, 0, 4), 0, 5).Draw(t, "paths"))
	})
}

func FuzzPartial(f *testing.F) {
	f.Add([]byte(`{"status":{"phase":"\"Done\\","x":[1,{"y":null}]},"spec":1e3}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		checkPartial(t, data, [][]string{{"status", "phase"}, {"spec"}, {"a", "b"}})
	})
}

// TestPartialFacts: of what the built-in lifecycles read, nothing is missing.
func TestPartialFacts(t *testing.T) {
	all, err := kinds.Lifecycles()
	if err != nil {
		t.Fatal(err)
	}
	for resource, l := range all {
		text, err := os.ReadFile("../../objects/kinds/testdata/" + resource + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		c, err := lifecycle.Compile(resource, schema.GroupKind{Group: "example.com", Kind: "Run"}, &l.Spec)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			data, err := yaml.YAMLToJSON([]byte(document))
			if err != nil {
				t.Fatal(err)
			}
			checkFact(t, c, data)
		}
	}
}

// checkFact compares the facts of an object that was decoded in part, and whole.
func checkFact(t *testing.T, c *lifecycle.Compiled, data []byte) {
	t.Helper()
	whole := &unstructured.Unstructured{}
	if err := whole.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	partial, err := NewPartial(c.Fields()).Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	want, err := c.Fact(whole)
	if err != nil {
		t.Fatal(err)
	}
	partial.SetSelfLink("") // The digest is tested with others.
	if got, err := c.Fact(partial); err != nil || !stdreflect.DeepEqual(got, want) {
		t.Errorf("%s became\n%+v, %v, want\n%+v", data, got, err, want)
	}
	if partial.GetAPIVersion() != whole.GetAPIVersion() || partial.GetKind() != whole.GetKind() {
		t.Errorf("%s became a %s of %s", data, partial.GetKind(), partial.GetAPIVersion())
	}
}

// TestPartialMetadata: of the metadata that facts need, nothing is missing.
func TestPartialMetadata(t *testing.T) {
	spec := gc.ResourceLifecycleSpec{Finished: &gc.FinishedExpressions{When: "true", Succeeded: "true", At: "null"}}
	c, err := lifecycle.Compile("runs.example.com", schema.GroupKind{Group: "example.com", Kind: "Run"}, &spec)
	if err != nil {
		t.Fatal(err)
	}
	owner := metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "j", UID: "uid-j", Controller: new(true)}
	base := testbuilders.Pod("r").Label("app", "web").TTL("1h").KeepUntil("2026-03-02T00:00:00Z").Annotation("example.com/note", "x").Obj()
	for name, change := range map[string]func(*metav1.ObjectMeta){
		"plain":      func(*metav1.ObjectMeta) {},
		"controlled": func(m *metav1.ObjectMeta) { m.OwnerReferences = []metav1.OwnerReference{owner} },
		"terminating": func(m *metav1.ObjectMeta) {
			m.DeletionTimestamp, m.Finalizers = &metav1.Time{Time: testbuilders.Now}, []string{"a/b"}
		},
		"foreground": func(m *metav1.ObjectMeta) { m.Finalizers = []string{metav1.FinalizerDeleteDependents} },
		"by Argo CD": func(m *metav1.ObjectMeta) {
			m.Annotations["argocd.argoproj.io/tracking-id"] = "web:example.com/Run:" + m.Namespace + "/" + m.Name
		},
		"an Argo CD hook": func(m *metav1.ObjectMeta) { m.Annotations["argocd.argoproj.io/hook"] = "PreSync" },
		"by Helm": func(m *metav1.ObjectMeta) {
			m.Annotations["meta.helm.sh/release-name"], m.Annotations["meta.helm.sh/release-namespace"] = "web", "team-a"
		},
		"by Helm, with its trace": func(m *metav1.ObjectMeta) {
			m.Annotations["meta.helm.sh/release-name"], m.Annotations["meta.helm.sh/release-namespace"] = "web", "team-a"
			m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{Manager: "helm", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{}}`)})
		},
		"by Flux": func(m *metav1.ObjectMeta) {
			m.Labels["kustomize.toolkit.fluxcd.io/name"], m.Labels["kustomize.toolkit.fluxcd.io/namespace"] = "web", "team-a"
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := base.ObjectMeta.DeepCopy()
			m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{}}`)}}
			change(m)
			data, err := json.Marshal(map[string]any{"apiVersion": "example.com/v1", "kind": "Run", "metadata": m})
			if err != nil {
				t.Fatal(err)
			}
			checkFact(t, c, data)
		})
	}
}

// BenchmarkPartial decodes an object of about a megabyte.
func BenchmarkPartial(b *testing.B) {
	nodes := map[string]any{}
	for i := range 2000 {
		nodes[fmt.Sprint("node-", i)] = map[string]any{"phase": "Succeeded", "message": strings.Repeat("some text ", 40), "children": []int{i, i + 1}}
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": map[string]any{"name": "a"},
		"status": map[string]any{"phase": "Succeeded", "finishedAt": "2026-03-01T11:00:00Z", "nodes": nodes},
	})
	if err != nil {
		b.Fatal(err)
	}
	for name, decode := range map[string]func() error{
		"partial": func() error {
			_, err := NewPartial([][]string{{"status", "phase"}, {"status", "finishedAt"}}).Decode(data)
			return err
		},
		"whole": func() error { return (&unstructured.Unstructured{}).UnmarshalJSON(data) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if err := decode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkEvent decodes an Event as a match condition on its type needs it: a busy cluster creates thousands a minute.
func BenchmarkEvent(b *testing.B) {
	data, err := json.Marshal(&corev1.Event{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-6d4cf56db6-2xw8p.17f3c2a1b4d5e6f7", Namespace: "team-a", UID: "5f3c0d9e-1111", ResourceVersion: "812345",
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
				FieldsV1: metav1.NewFieldsV1(`{"f:count":{},"f:firstTimestamp":{},"f:involvedObject":{},"f:lastTimestamp":{},"f:message":{}}`),
			}},
		},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "team-a", Name: "web-6d4cf56db6-2xw8p"},
		Type:           corev1.EventTypeNormal, Reason: "Pulled", Count: 3, Source: corev1.EventSource{Component: "kubelet", Host: "node-1"},
		Message: `Successfully pulled image "registry.example.com/web:1.4" in 1.2s (1.2s including waiting)`, ReportingController: "kubelet",
	})
	if err != nil {
		b.Fatal(err)
	}
	p := NewPartial([][]string{{"type"}})
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}

// TestDecodersAreIndependent: what one decoder reads of the metadata, others do not read.
func TestDecodersAreIndependent(t *testing.T) {
	const data = `{"metadata": {"name": "a", "generation": 7, "annotations": {"own": "b"}}}`
	for _, path := range [][]string{{"metadata", "generation"}, {"metadata", "annotations", "own"}, {"metadata"}, {}} {
		NewPartial([][]string{path})
		object, err := NewPartial().Decode([]byte(data))
		if err != nil {
			t.Fatal(err)
		}
		if object.GetName() != "a" || object.GetGeneration() != 0 || len(object.GetAnnotations()) > 0 {
			t.Errorf("after a decoder of %q, others read %v", path, object)
		}
	}
}
