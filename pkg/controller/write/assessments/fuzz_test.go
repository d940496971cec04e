// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package assessments

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/winnow-dev/winnow/pkg/controller/rules/assessment"
)

// FuzzDecode: whatever is stored, either all of it is decoded and survives being stored again, or nothing is.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"cluster","resourceVersion":"7"},"format":1,` +
		`"seen":{"pods":18446744073709551615},"cluster":{"leader":"a"}}`))
	f.Add([]byte(`{"metadata":{"name":"holds-0"},"format":1,` +
		`"holds":{"holds":[{"id":"a","namespace":"b","members":["u"],"since":"0000-01-01T00:00:00+01:00"}]}}`))
	f.Add([]byte(`{"metadata":{"name":"namespaces-0"},"format":1,` +
		`"namespaces":[{"uid":"u","number":1e19,"counts":[{"at":"2026-11-25T12:00:00Z"}]}]}`))
	f.Add([]byte(`{"metadata":{"name":"cluster"},"format":2,"cluster":7}`))
	f.Add([]byte(`{"metadata":[],"format":"1"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		object := &unstructured.Unstructured{}
		if utiljson.Unmarshal(data, &object.Object) != nil {
			return
		}
		o, err := Decode(object)
		if o.Name != object.GetName() || o.ResourceVersion != object.GetResourceVersion() {
			t.Fatalf("%s: decoded as %s in version %q", data, o.Name, o.ResourceVersion)
		}
		if err != nil {
			if named := (assessment.Object{Name: o.Name, ResourceVersion: o.ResourceVersion}); !cmp.Equal(*o, named) {
				t.Fatalf("%s: %v, and it has contents: %+v", data, err, o)
			}
			return
		}
		if again, err := decoded(t, encoded(t, o)); err != nil || !cmp.Equal(o, again, cmpopts.EquateEmpty()) {
			t.Fatalf("%s: stored again it is %v %s", data, err, cmp.Diff(o, again))
		}
	})
}
