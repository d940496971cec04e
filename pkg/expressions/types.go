// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package expressions

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// typeName is the name of the type of the object in errors. The variable hides a type of the same name.
const typeName = "Object"

// Types checks expressions against the schema of a resource, as the status of a ValidatingAdmissionPolicy does.
type Types struct{ env *cel.Env }

// NewTypes returns Types for a schema whose references are resolved. It fails if CEL has no type for the schema.
func NewTypes(schema *spec.Schema) (*Types, error) {
	object := common.SchemaDeclType(&openapi.Schema{Schema: asEvaluated(schema)}, false)
	if object == nil {
		return nil, errors.New("the schema has no type")
	}
	object = object.MaybeAssignTypeName(typeName)
	set, err := environmentsOver(object.CelType(), object)
	if err != nil {
		return nil, err
	}
	env, err := set.Env(environment.StoredExpressions)
	return &Types{env}, err
}

// Check returns an error if the expression reads a field that the schema does not have, or uses one as another type.
func (t *Types) Check(text string) error {
	_, issues := t.env.Compile(text)
	if issues == nil {
		return nil
	}
	var misfits []string
	for _, e := range issues.Errors() {
		if !readsAsMap.MatchString(e.Message) {
			misfits = append(misfits, fmt.Sprintf("ERROR: <input>:%d:%d: %s", e.Location.Line(), e.Location.Column()+1, e.Message))
		}
	}
	if len(misfits) == 0 {
		return nil
	}
	return errors.New(strings.Join(misfits, "\n"))
}

// readsAsMap matches the error about an expression that reads a field of an object as a key of a map. Objects are evaluated as maps.
var readsAsMap = regexp.MustCompile(`^found no matching overload for '(_\[_\]|_\[\?_\]|@in)' applied to '\((string, )?` + typeName)

// asEvaluated returns a copy of a schema as expressions are evaluated, over JSON of which the schema is not known: a time is a string, a
// field of any name can be read, with an index if CEL has no word for it, and what the schema leaves open has any type.
func asEvaluated(s *spec.Schema) *spec.Schema {
	out := *s
	if isOpen(s) {
		out.VendorExtensible = spec.VendorExtensible{Extensions: spec.Extensions{"x-kubernetes-int-or-string": true}} // A type for any.
		return &out
	}
	if out.Type.Contains("string") {
		out.Format = ""
	}
	if s.Properties != nil {
		out.Properties = make(map[string]spec.Schema, len(s.Properties))
		for name, property := range s.Properties {
			out.Properties[name] = *asEvaluated(&property)
		}
	}
	if s.Items != nil && s.Items.Schema != nil {
		out.Items = &spec.SchemaOrArray{Schema: asEvaluated(s.Items.Schema)}
	}
	if a := s.AdditionalProperties; a != nil && a.Schema != nil {
		out.AdditionalProperties = &spec.SchemaOrBool{Allows: a.Allows, Schema: asEvaluated(a.Schema)}
	}
	return &out
}

// selectable reports whether expressions can select a field of this name. A keyword is selectable unless it is an operator or a literal:
// metadata of Kubernetes has the field namespace, which is a keyword of CEL.
func selectable(name string) bool {
	escaped, ok := apiservercel.Escape(name)
	return ok && (escaped == name || escaped == "__"+name+"__" && !slices.Contains([]string{"true", "false", "null", "in"}, name))
}

// isOpen reports whether a schema does not tell all types that its values may have, or has fields that expressions cannot select by name.
func isOpen(s *spec.Schema) bool {
	if preserves, _ := s.Extensions.GetBool("x-kubernetes-preserve-unknown-fields"); preserves || len(s.Type) != 1 {
		return true
	}
	switch s.Type[0] {
	case "array":
		return s.Items == nil || s.Items.Schema == nil
	case "object":
		for name := range s.Properties {
			if !selectable(name) {
				return true
			}
		}
		return len(s.Properties) == 0 && (s.AdditionalProperties == nil || s.AdditionalProperties.Schema == nil)
	}
	return false
}
