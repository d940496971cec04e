// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package facts_test

import (
	"cmp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
)

// TestUIDs: whatever is packed is unpacked again, a UUID takes 16 bytes, and no two UIDs are equal or unordered that differ.
func TestUIDs(t *testing.T) {
	const id = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
	all := map[types.UID]int{ // bytes
		id:                                     16,
		"0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8fa": 16,
		"61616161-6161-6161-6161-616161616161": 16,
		"aaaaaaaaaaaaaaaa":                     16, // the bytes of the UUID before it
		types.UID(strings.ToUpper(id)):         36,
		"0a1b2c3d+4e5f-6071-8293-a4b5c6d7e8f9": 36,
		"0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8fg": 36,
		"{a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f}": 36,
		"0a1b2c3d4e5f60718293a4b5c6d7e8f9":     32,
		"urn:uuid:" + id:                       45,
		"uid-a":                                5,
		"":                                     0,
	}
	for a, size := range all {
		packed := facts.PackUID(a)
		if got := packed.Unpack(); got != a || len(packed.Bytes()) != size {
			t.Errorf("%q has %d bytes, want %d, and is unpacked as %q", a, len(packed.Bytes()), size, got)
		}
		for b, other := range all {
			order := packed.Compare(facts.PackUID(b))
			if (packed == facts.PackUID(b)) != (a == b) || (order == 0) != (a == b) || order != -facts.PackUID(b).Compare(packed) {
				t.Errorf("%q and %q are mixed up: %d", a, b, order)
			}
			if size == 16 && other == 16 && strings.Contains(string(a), "-") && strings.Contains(string(b), "-") && order != cmp.Compare(a, b) {
				t.Errorf("%q and %q are not ordered as text", a, b)
			}
		}
	}
}
