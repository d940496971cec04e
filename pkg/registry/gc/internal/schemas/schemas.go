// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schemas tells authors which of their expressions do not fit the schema of a resource.
package schemas

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/winnow-dev/winnow/pkg/expressions"
)

// Source returns the schema of a resource, without references; nil if none is known. A nil Source knows none.
type Source func(resource string) (*spec.Schema, error)

// Expression is one that an author has written, and where.
type Expression struct {
	Field *field.Path
	Text  string
}

// Misfits returns a warning for each expression that does not fit the schema of a resource. Schemas change, so it is no error.
func (s Source) Misfits(resource string, all []Expression) []string {
	if s == nil || len(all) == 0 {
		return nil
	}
	schema, err := s(resource)
	if err == nil && schema == nil {
		return nil
	}
	var types *expressions.Types
	if err == nil {
		types, err = expressions.NewTypes(schema)
	}
	if err != nil {
		return []string{fmt.Sprintf("the expressions could not be checked against the schema of %s: %v", resource, err)}
	}
	var out []string
	for _, e := range all {
		if err := types.Check(e.Text); err != nil {
			first, _, _ := strings.Cut(err.Error(), "\n") // The next lines draw where it is.
			out = append(out, fmt.Sprintf("%s does not fit the schema of %s: %s. Objects for which it fails are kept", e.Field, resource,
				strings.TrimPrefix(first, "ERROR: <input>:")))
		}
	}
	return out
}
