// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import "time"

// UsageState says whether anything refers to a ConfigMap or Secret.
type UsageState uint8

const (
	// UsageUnknown: not everything that may refer to the object is known.
	UsageUnknown UsageState = iota
	// InUse: something refers to the object.
	InUse
	// Unused: nothing refers to the object.
	Unused
)

// Usage says whether anything refers to a ConfigMap or Secret.
type Usage struct {
	State UsageState
	// Since is when the object became unused; zero if it is InUse, or if that is not known. While it is not known what refers to the object,
	// Since remains.
	Since time.Time
}
