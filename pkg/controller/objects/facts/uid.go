// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
)

// UID is the UID of an object as it is stored: a UUID takes 16 bytes instead of 36. Two are equal exactly if they stand for the same UID.
type UID struct {
	bytes  string
	isUUID bool // in the form that the API server gives it
}

// textLength is the length of a UUID as text.
const textLength = 36

// PackUID returns the stored form of a UID.
func PackUID(uid types.UID) UID {
	if s := string(uid); len(s) == textLength && strings.ToLower(s) == s {
		if id, err := uuid.Parse(s); err == nil {
			return UID{string(id[:]), true}
		}
	}
	return UID{string(uid), false}
}

// Unpack returns the UID. It allocates if the UID is a UUID.
func (u UID) Unpack() types.UID {
	if !u.isUUID {
		return types.UID(u.bytes)
	}
	return types.UID(uuid.UUID([]byte(u.bytes)).String())
}

// Bytes returns what is stored. A UUID and a UID that is none may have the same bytes.
func (u UID) Bytes() string { return u.bytes }

// Compare orders UUIDs as text, and all of them before other UIDs. The API server gives UUIDs to all objects.
func (u UID) Compare(o UID) int {
	if u.isUUID != o.isUUID {
		if u.isUUID {
			return -1
		}
		return 1
	}
	return cmp.Compare(u.bytes, o.bytes)
}
