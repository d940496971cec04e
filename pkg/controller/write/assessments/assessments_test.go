// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package assessments

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"

	manifests "github.com/winnow-dev/winnow/artifacts/storage"
	"github.com/winnow-dev/winnow/pkg/controller/rules/assessment"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func encoded(t *testing.T, o *assessment.Object) []byte {
	t.Helper()
	object, err := encode(o)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func decoded(t *testing.T, body []byte) (*assessment.Object, error) {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(body, &object.Object); err != nil { // as clients do
		t.Fatal(err)
	}
	return Decode(object)
}

func namespaces(n int) *assessment.Object {
	out := &assessment.Object{Name: "namespaces-0", ResourceVersion: "8", Seen: map[string]uint64{"pods": 1 << 53}}
	for i := range n {
		out.Namespaces = append(out.Namespaces, assessment.Namespace{
			UID: types.UID(fmt.Sprint("uid-", i)), Number: 1<<53 + 1, // more than a float64 can tell apart
			Inputs: assessment.Inputs{
				Policies: []assessment.Policy{{UID: "p", Title: "team-a/p", Generation: 4, Digest: "abc"}}, Quotas: map[types.UID]string{"q": "50"},
			},
			HoldAbove: &assessment.Limit{Objects: -1, Total: 100}, Counts: []assessment.Count{{At: noon.Add(123456789), Objects: 7}},
		})
	}
	return out
}

// TestRoundTrip: what is decoded is what was encoded, and the largest objects take little of the 1.5 MiB that etcd allows.
func TestRoundTrip(t *testing.T) {
	for _, o := range []*assessment.Object{
		holding("holds-0", "7", 0), holding("holds-0", "7", 5000), namespaces(1), namespaces(500),
		{Name: "cluster", ResourceVersion: "9", Cluster: &assessment.Cluster{Leader: "winnow-0", Term: 12}},
	} {
		body := encoded(t, o)
		if got, err := decoded(t, body); err != nil || !cmp.Equal(got, o, cmpopts.EquateEmpty()) {
			t.Errorf("%v %s", err, cmp.Diff(o, got))
		}
		if len(body) > 400_000 {
			t.Errorf("%s takes %d bytes", o.Name, len(body))
		}
	}
	want := `{"apiVersion":"internal.gc.winnow.dev/v1alpha1","cluster":{"leader":"winnow-0","term":12},"format":1,"kind":"Assessment",` +
		`"metadata":{"name":"cluster"},"seen":{"pods":7}}`
	got := encoded(t, &assessment.Object{
		Name: "cluster", Seen: map[string]uint64{"pods": 7}, Cluster: &assessment.Cluster{Leader: "winnow-0", Term: 12},
	})
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestUnreadable: if any part of an object cannot be decoded, it has no contents, and the error says why.
func TestUnreadable(t *testing.T) {
	for _, c := range []struct{ stored, want string }{
		{`{}`, "it has no format"},
		{`{"format": 0, "cluster": {"leader": "a"}}`, "it has no format"},
		{`{"format": "1", "cluster": {"leader": "a"}}`, "cannot unmarshal string"},
		{`{"format": 2, "cluster": "a"}`, "format 2, and this version of Winnow knows formats up to 1 only: a newer version has written it"},
		{`{"format": 1}`, "lacks its contents"},
		{`{"format": 1, "cluster": {"leader": "a"}, "seen": {"pods": -1}}`, "cannot unmarshal number -1"},
		{`{"format": 1, "cluster": {"leader": "a", "term": "b"}}`, "cannot unmarshal string"},
		{`{"format": 1, "cluster": {"leader": "a"}, "holds": {}}`, "has contents of another object"},
	} {
		body := `{"metadata": {"name": "cluster", "resourceVersion": "7"}, ` + strings.TrimPrefix(c.stored, "{")
		o, err := decoded(t, []byte(strings.Replace(body, ", }", "}", 1)))
		if err == nil || !strings.Contains(err.Error(), `Assessment "cluster" cannot be read: `) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.stored, err, c.want)
		}
		if want := (&assessment.Object{Name: "cluster", ResourceVersion: "7"}); !cmp.Equal(o, want) {
			t.Errorf("%s: got %s", c.stored, cmp.Diff(want, o))
		}
	}
}

// TestSchema: the CustomResourceDefinition keeps every field of an object that Winnow writes, and says which group, kind and plural it has.
func TestSchema(t *testing.T) {
	definition := definitionOf(t)
	names, _, _ := unstructured.NestedStringMap(definition, "spec", "names")
	group, _, _ := unstructured.NestedString(definition, "spec", "group")
	scope, _, _ := unstructured.NestedString(definition, "spec", "scope")
	if names["plural"] != Resource.Resource || names["kind"] != kind || group != Resource.Group || scope != "Cluster" {
		t.Errorf("%v in %s, %s", names, group, scope)
	}
	versions, _, _ := unstructured.NestedSlice(definition, "spec", "versions")
	known, _, err := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties")
	if err != nil {
		t.Fatal(err)
	}
	all := holding("holds-0", "7", 1)
	all.Namespaces, all.Cluster = namespaces(1).Namespaces, &assessment.Cluster{Leader: "a"}
	object, err := encode(all)
	if err != nil {
		t.Fatal(err)
	}
	for field := range object.Object {
		if _, ok := known[field]; !ok && field != "apiVersion" && field != "kind" && field != "metadata" {
			t.Errorf("the schema prunes %s", field)
		}
	}
}

// definitionOf returns the CustomResourceDefinition of Resource.
func definitionOf(t *testing.T) map[string]any {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests.CRDs), 1024)
	for {
		var definition map[string]any
		if err := decoder.Decode(&definition); err != nil {
			t.Fatal(err)
		}
		if name, _, _ := unstructured.NestedString(definition, "metadata", "name"); name == Resource.GroupResource().String() {
			return definition
		}
	}
}
