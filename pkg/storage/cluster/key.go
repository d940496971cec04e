// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"

	"k8s.io/apiserver/pkg/storage"
)

// target is the translation of a storage key to the host resource.
type target struct {
	location

	// key is the key as prepared, a prefix with a trailing slash when it stands for a set.
	key string
	// neverExists is set for keys that no object can have: a namespace as if it were an object, a child of an object, or a Barrier.
	neverExists bool
}

// locate translates a key below the resource prefix, PREFIX/NAMESPACE/NAME for namespaced resources
// and PREFIX/NAME for cluster-scoped ones. A recursive key stands for all that is below it.
func (s *store) locate(key string, recursive bool) (target, error) {
	key, err := storage.PrepareKey(s.resourcePrefix, key, recursive)
	if err != nil {
		return target{}, err
	}
	segments := strings.FieldsFunc(strings.TrimPrefix(key, s.resourcePrefix), func(r rune) bool { return r == '/' })
	depth := 1
	if s.namespaced {
		depth = 2
	}
	found := target{key: key}
	if recursive {
		found.neverExists = len(segments) >= depth
	} else {
		found.neverExists = len(segments) != depth || strings.HasSuffix(key, "/")
	}
	if found.neverExists {
		return found, nil
	}
	if s.namespaced && len(segments) > 0 {
		found.namespace = segments[0]
	}
	if !recursive {
		found.name = segments[depth-1]
		found.neverExists = found.name == barrierName
	}
	return found, nil
}

// keyOf is the key of an object of this list, in the order in which the host lists.
func (t target) keyOf(object *storedObject) string {
	if t.name != "" {
		return t.key
	}
	if t.namespace != "" || object.Namespace == "" {
		return t.key + object.Name
	}
	return t.key + object.Namespace + "/" + object.Name
}
