// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"

	"k8s.io/apiserver/pkg/storage"
)

// target is what a storage key means in the host resource.
type target struct {
	location

	// key is the key as prepared, a prefix with a trailing slash when it stands for a set.
	key string
	// nothing is set for keys at which no object can be: a namespace asked for as if it were an
	// object, or the children of an object.
	nothing bool
}

// locate translates a key below the resource prefix, PREFIX/NAMESPACE/NAME for namespaced resources
// and PREFIX/NAME for cluster-scoped ones. A recursive key stands for all that is below it.
func (s *store) locate(key string, recursive bool) (target, error) {
	key, err := storage.PrepareKey(s.resourcePrefix, key, recursive)
	if err != nil {
		return target{}, err
	}
	found := target{key: key}
	var segments []string
	for segment := range strings.SplitSeq(strings.TrimPrefix(key, s.resourcePrefix), "/") {
		if segment != "" {
			segments = append(segments, segment)
		}
	}
	depth := len(segments)
	switch {
	case recursive && depth == 0:
	case recursive && depth == 1 && s.namespaced:
		found.namespace = segments[0]
	case !recursive && depth == 2 && s.namespaced && !strings.HasSuffix(key, "/"):
		found.namespace, found.name = segments[0], segments[1]
	case !recursive && depth == 1 && !s.namespaced && !strings.HasSuffix(key, "/"):
		found.name = segments[0]
	default:
		found.nothing = true
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
