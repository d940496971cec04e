// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
)

// Listed is which resources the user of one request may list in a namespace. It asks about each once.
type Listed struct {
	checker   Checker
	who       user.Info
	namespace string
	allowed   map[string]bool
	denied    map[string]string // with the command that asks for the permission
}

// NewListed returns what a user may list in a namespace, or with "" in all.
func (c Checker) NewListed(who user.Info, namespace string) *Listed {
	return &Listed{checker: c, who: who, namespace: namespace, allowed: map[string]bool{}, denied: map[string]string{}}
}

// May reports whether the user may list a resource.
func (l *Listed) May(ctx context.Context, resource string) (bool, error) {
	if may, known := l.allowed[resource]; known {
		return may, nil
	}
	missing, err := l.checker.Missing(ctx, l.who, []Permission{{Verb: "list", Resource: resource, Namespace: l.namespace}})
	if err != nil {
		return false, err
	}
	l.allowed[resource] = len(missing) == 0
	if len(missing) > 0 {
		l.denied[resource] = missing[0]
	}
	return l.allowed[resource], nil
}

// Denied returns the commands that ask for the permissions that the user lacks; empty if none was missing.
func (l *Listed) Denied() string { return strings.Join(slices.Sorted(maps.Values(l.denied)), "; ") }
