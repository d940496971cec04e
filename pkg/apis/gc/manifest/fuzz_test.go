// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"reflect"
	"testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// FuzzObject: no manifest and no patch makes the Checker panic, and an object without fields has no errors.
func FuzzObject(f *testing.F) {
	f.Add([]byte(`{"spec":{"rules":[{"name":"a","ttl":1}],"guardrails":{"capacity":null}}}`))
	f.Add([]byte(`[{"op":"add","path":"/spec/rules/0/ttl","value":{}}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		content, err := Decode(data)
		if err != nil {
			return
		}
		for _, kind := range []reflect.Type{reflect.TypeFor[v1alpha1.ClusterCleanupPolicy](), reflect.TypeFor[v1alpha1.ResourceLifecycle]()} {
			c := Checker{Directives: true}
			switch content := content.(type) {
			case map[string]any:
				c.Object(content, kind)
				if len(content) == 0 && len(c.Wrong)+len(c.Unknown) > 0 {
					t.Errorf("errors about nothing: %v, %v", c.Wrong, c.Unknown)
				}
			case []any:
				c.Patch(content, kind)
			}
		}
	})
}
