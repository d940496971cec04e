// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"encoding/json"
	"testing"
)

// FuzzReferences: whatever an object is, each Reader says what it refers to within a bound, and what it cannot read refers to everything in
// the namespace of the object.
func FuzzReferences(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"a","namespace":"ns"},"spec":{"volumes":[{"secret":{"secretName":"s"}}],"containers":[{"envFrom":[1]}]}}`))
	f.Add([]byte(`{"metadata":{"name":"a","namespace":7,"annotations":{"configmap":"c"}},"parameters":{"x":"ns/s"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var object map[string]any
		if json.Unmarshal(data, &object) != nil {
			return
		}
		for _, resource := range BuiltinResources() {
			all, err := Builtin(resource).References(object)
			if len(all) > maxReferences {
				t.Fatalf("%s: %d references", resource, len(all))
			}
			if err != nil && len(all) == 0 {
				t.Fatalf("%s: %v, and it refers to nothing", resource, err)
			}
		}
	})
}
