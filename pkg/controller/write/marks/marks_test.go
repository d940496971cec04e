// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package marks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"

	manifests "github.com/winnow-dev/winnow/artifacts/storage"
	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// of returns marks with some objects.
func of(namespace, name, resourceVersion string, objects int) *memory.Marks {
	out := &memory.Marks{
		NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}, ResourceVersion: resourceVersion, Unused: map[types.UID]time.Time{},
	}
	for i := range objects {
		out.Unused[types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i))] = noon.Add(time.Duration(i)*time.Second + 123456789)
	}
	return out
}

func encoded(t *testing.T, m *memory.Marks) []byte {
	t.Helper()
	body, err := json.Marshal(encode(m))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func decoded(t *testing.T, body []byte) (*memory.Marks, error) {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(body, &object.Object); err != nil {
		t.Fatal(err)
	}
	return Decode(object)
}

// TestRoundTrip: what is decoded is what was encoded, and the largest marks take little of the 1.5 MiB that etcd allows.
func TestRoundTrip(t *testing.T) {
	for _, objects := range []int{0, 1, knowledge.MaxMarks} {
		m := of("team-a", "marks-0", "7", objects)
		body := encoded(t, m)
		if got, err := decoded(t, body); err != nil || !cmp.Equal(got, m) {
			t.Errorf("%v %s", err, cmp.Diff(m, got))
		}
		if len(body) > 400_000 {
			t.Errorf("%d objects take %d bytes", objects, len(body))
		}
	}
	finished := of("team-a", "marks-0", "7", 0)
	finished.Finished = map[types.UID]memory.FinishMark{}
	for i := range knowledge.MaxMarks {
		uid := types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i))
		finished.Finished[uid] = memory.FinishMark{Since: noon.Add(time.Duration(i)*time.Second + 123456789), Version: math.MaxUint64}
	}
	body := encoded(t, finished)
	if got, err := decoded(t, body); err != nil || !cmp.Equal(got, finished) || len(body) > 700_000 {
		t.Errorf("%d bytes: %v %s", len(body), err, cmp.Diff(finished, got))
	}
	matched := of("team-a", "marks-0", "7", 0)
	matched.Matched = map[memory.MatchKey]memory.MatchMark{}
	for i := range knowledge.MaxMarks {
		key := memory.MatchKey{UID: types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i/2)), Rule: math.MaxUint64 - lifecycle.MatchID(i)}
		matched.Matched[key] = memory.MatchMark{Since: noon.Add(time.Duration(i)*time.Second + 123456789), ByChange: i%3 == 0}
	}
	body = encoded(t, matched)
	if got, err := decoded(t, body); err != nil || !cmp.Equal(got, matched) || len(body) > 500_000 {
		t.Errorf("%d bytes: %v %s", len(body), err, cmp.Diff(matched, got))
	}
	announced := of("team-a", "marks-0", "7", 0)
	announced.Announced = map[types.UID]policy.Announcement{}
	for i := range knowledge.MaxMarks {
		uid, given := types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)), noon.Add(time.Duration(i)*time.Second+123456789)
		announced.Announced[uid] = policy.Announcement{Given: given, At: given.Add(24 * time.Hour)}
	}
	body = encoded(t, announced)
	if got, err := decoded(t, body); err != nil || !cmp.Equal(got, announced) || len(body) > 800_000 {
		t.Errorf("%d bytes: %v %s", len(body), err, cmp.Diff(announced, got))
	}
	local := of("team-a", "marks-0", "", 0)
	local.Finished = map[types.UID]memory.FinishMark{"b": {Since: noon.Add(500_000_000), Version: 12}}
	local.Matched = map[memory.MatchKey]memory.MatchMark{
		{UID: "c", Rule: 255}: {Since: noon}, {UID: "d", Rule: 1}: {Since: noon, ByChange: true},
	}
	local.Unused["a"] = noon.Add(123456789).In(time.FixedZone("", 3600))
	want := `{"apiVersion":"internal.gc.winnow.dev/v1alpha1","finished":{"b":{"resourceVersion":"12","since":"2026-11-25T12:00:00.5Z"}},` +
		`"kind":"UsageMarks","matched":{"c/00000000000000ff":"2026-11-25T12:00:00Z","d/0000000000000001/change":"2026-11-25T12:00:00Z"},` +
		`"metadata":{"name":"marks-0","namespace":"team-a"},` +
		`"unused":{"a":"2026-11-25T12:00:00.123456789Z"}}`
	if got := string(encoded(t, local)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestUnreadable: if any part of an object cannot be decoded, it has no marks. Its resource version is known, so that it can be
// overwritten.
func TestUnreadable(t *testing.T) {
	for _, c := range []struct{ stored, want string }{
		{`{}`, "is <nil>, not a map"},
		{`{"unused": null}`, "is <nil>, not a map"},
		{`{"unused": ["a"]}`, "is []interface {}, not a map"},
		{`{"unused": {"a": "2026-11-25T12:00:00Z", "b": "yesterday"}}`, `has yesterday for "b", not a time`},
		{`{"unused": {"a": "2026-11-25T12:00:00Z", "b": 7}}`, `has 7 for "b", not a time`},
		{`{"unused": {}, "finished": "yesterday"}`, "is string, not a map"},
		{`{"unused": {}, "finished": {"a": "2026-11-25T12:00:00Z"}}`, `has 2026-11-25T12:00:00Z for "a", not a time`},
		{`{"unused": {}, "finished": {"a": {"since": "2026-11-25T12:00:00Z", "resourceVersion": "x"}}}`, `not a time`},
		{`{"unused": {}, "matched": ["a"]}`, "is []interface {}, not a map"},
		{`{"unused": {}, "matched": {"a/0000000000000001": "yesterday"}}`, `has yesterday for "a/0000000000000001", not a time`},
		{`{"unused": {}, "matched": {"a/1": "2026-11-25T12:00:00Z"}}`, `has the key "a/1", not the UID of an object and the ID of a rule`},
		{`{"unused": {}, "matched": {"a": "2026-11-25T12:00:00Z"}}`, `has the key "a"`},
		{`{"unused": {}, "notices": ["a"]}`, "is []interface {}, not a map"},
		{`{"unused": {}, "notices": {"a": "2026-11-25T12:00:00Z"}}`, `not a time`},
		{`{"unused": {}, "notices": {"a": {"given": "2026-11-25T12:00:00Z"}}}`, `not a time`},
		{`{"unused": {}, "notices": {"a": {"at": "2026-11-25T12:00:00Z"}}}`, `not a time`},
		{`{"unused": {}, "notices": {"a": {"given": "0001-01-01T00:00:00Z", "at": "2026-11-25T12:00:00Z"}}}`, `not a time`},
	} {
		body := `{"metadata": {"namespace": "team-a", "name": "marks-0", "resourceVersion": "7"}, ` + strings.TrimPrefix(c.stored, "{")
		m, err := decoded(t, []byte(strings.Replace(body, ", }", "}", 1)))
		if err == nil || !strings.Contains(err.Error(), `UsageMarks "team-a/marks-0" `) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.stored, err, c.want)
		}
		want := &memory.Marks{NamespacedName: types.NamespacedName{Namespace: "team-a", Name: "marks-0"}, ResourceVersion: "7"}
		if !cmp.Equal(m, want) {
			t.Errorf("%s: %s", c.stored, cmp.Diff(want, m))
		}
	}
}

// TestMarksOfEarlierVersions had no fractions, and only ConfigMaps and Secrets.
func TestMarksOfEarlierVersions(t *testing.T) {
	m, err := decoded(t, []byte(`{"metadata": {"namespace": "team-a", "name": "marks-0", "resourceVersion": "7"},
		"unused": {"a": "2026-11-25T12:00:00Z"}}`))
	if err != nil || len(m.Finished) != 0 || !m.Unused["a"].Equal(noon) {
		t.Errorf("got %+v, %v", m, err)
	}
}

// TestDefinition: the manifest defines what this package uses.
func TestDefinition(t *testing.T) {
	var crd struct {
		Metadata struct{ Name string }
		Spec     struct {
			Scope    string
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct {
					OpenAPIV3Schema struct {
						Properties map[string]struct{ MaxProperties int }
					}
				}
			}
		}
	}
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests.CRDs), 4096); crd.Metadata.Name != Resource.GroupResource().String(); {
		if err := decoder.Decode(&crd); err != nil {
			t.Fatalf("there is no definition of %v: %v", Resource, err)
		}
	}
	version := crd.Spec.Versions[0]
	if crd.Spec.Names.Kind != kind || version.Name != Resource.Version || crd.Spec.Scope != "Namespaced" ||
		version.Schema.OpenAPIV3Schema.Properties[fieldUnused].MaxProperties != knowledge.MaxMarks ||
		version.Schema.OpenAPIV3Schema.Properties[fieldFinished].MaxProperties != knowledge.MaxMarks ||
		version.Schema.OpenAPIV3Schema.Properties[fieldMatched].MaxProperties != knowledge.MaxMarks ||
		version.Schema.OpenAPIV3Schema.Properties[fieldNotices].MaxProperties != knowledge.MaxMarks {
		t.Errorf("got %+v", crd)
	}
}
