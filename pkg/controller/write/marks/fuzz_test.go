// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package marks

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FuzzDecode: whatever is stored, either all marks are decoded and survive being stored again, or there are none, and the object can be
// overwritten.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"metadata":{"namespace":"a","name":"b","resourceVersion":"7"},"unused":{"u":"2026-11-25T12:00:00.123456789+01:00"}}`))
	f.Add([]byte(`{"metadata":{"name":7},"unused":{},"finished":{"u":{"since":"2026-11-25T12:00:00Z","resourceVersion":"18446744073709551615"}}}`))
	f.Add([]byte(`{"metadata":[],"unused":{"u":"0000-01-01T00:00:00+01:00","v":"9999-12-31T23:59:59-01:00"},"finished":null}`))
	f.Add([]byte(`{"unused":{},"notices":{"u":{"given":"2026-11-25T12:00:00.5Z","at":"2026-11-26T12:00:01Z"}}}`))
	f.Add([]byte(`{"unused":{},"matched":{"u/00000000000000ff":"2026-11-25T12:00:00Z"}}`))
	f.Add([]byte(`{"unused":{},"matched":{"u/00000000000000ff":"2026-11-25T12:00:00Z","u/00000000000000ff/change":"2026-11-26T12:00:00Z"}}`))
	f.Add([]byte(`{"unused":{},"matched":{"u/0FF":"2026-11-25T12:00:00Z","/":"2026-11-25T12:00:00Z"}}`))
	f.Add([]byte(`{"unused":["u"],"finished":{"u":1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		object := &unstructured.Unstructured{}
		if json.Unmarshal(data, &object.Object) != nil {
			return
		}
		m, err := Decode(object)
		if m.Namespace != object.GetNamespace() || m.Name != object.GetName() || m.ResourceVersion != object.GetResourceVersion() {
			t.Fatalf("%s: decoded as %s in version %q", data, m.NamespacedName, m.ResourceVersion)
		}
		if err != nil {
			if m.Len() > 0 {
				t.Fatalf("%s: %v, and it has marks: %+v", data, err, m)
			}
			return
		}
		if again, err := decoded(t, encoded(t, m)); err != nil || !cmp.Equal(m, again, cmpopts.EquateEmpty()) {
			t.Fatalf("%s: stored again it is %v %s", data, err, cmp.Diff(m, again))
		}
	})
}
