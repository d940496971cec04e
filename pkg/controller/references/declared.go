// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"embed"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/winnow-dev/winnow/pkg/expressions"
)

// Declaration says which ConfigMaps or Secrets the objects of a custom resource refer to. It has the form of an entry of spec.references of
// a ResourceLifecycle:
//
//	// references say which ConfigMaps and Secrets the objects of the resource use. If unset, an object uses everything of its namespace
//	// whose name is in it. If set, they must be complete: Winnow deletes what is named nowhere. What an object names in annotations, and
//	// in fields whose names contain "secret", "configMap" or "credential", counts too.
//	// +optional
//	// +listType=atomic
//	// +k8s:maxItems=16
//	References []LifecycleReference `json:"references,omitempty"`
type Declaration struct {
	// To is "configmaps" or "secrets".
	To string `json:"to"`
	// Names is a CEL expression for the names: a string, or a list of strings or of such lists. An empty string is no name.
	// "namespace/name" is an object of another namespace. "*" instead of the namespace stands for every namespace, and instead of the
	// name for every object. An object without a namespace refers to every namespace, unless it names one. Instead of a string there may be an
	// object. Then everything that it may name counts, as for resources without declaration.
	Names string `json:"names"`
}

// Declared returns a Reader for a resource with declarations. An API can get another field after its declaration was written, and other
// tools name what they use in annotations. So annotations, and fields whose names speak of a Secret or ConfigMap, count too.
func Declared(declarations []Declaration) (*Reader, error) {
	compiled := make([]compiledDeclaration, len(declarations))
	for i, d := range declarations {
		to, ok := map[string]To{"secrets": Secrets, "configmaps": ConfigMaps}[d.To]
		if !ok {
			return nil, fmt.Errorf(`references[%d].to: %q is neither "configmaps" nor "secrets"`, i, d.To)
		}
		names, err := expressions.Stored(d.Names, expressions.Names)
		if err != nil {
			return nil, fmt.Errorf("references[%d].names: %w", i, err)
		}
		compiled[i] = compiledDeclaration{to, names}
	}
	return newReader(func(o *reading) error {
		object := expressions.NewObject(o.object, expressions.LifecycleBudget)
		for i, d := range compiled {
			names, err := d.names.Names(object)
			if err == nil {
				err = o.declared(d.to, names)
			}
			if err != nil {
				return fmt.Errorf("references[%d].names: %w", i, err)
			}
		}
		o.content(func(o *reading, key string, value any) { o.mentioned(0, key, value) })
		return o.everyAnnotation()
	}, [][]string{{}}), nil
}

type compiledDeclaration struct {
	to    To
	names *expressions.Expression
}

// declared adds what an expression evaluates to.
func (o *reading) declared(to To, names any) error {
	switch names := names.(type) {
	case nil:
		return nil
	case string:
		return o.declaredName(to, names)
	case map[string]any:
		o.words(to, names)
		return nil
	case []any:
		for _, n := range names {
			if err := o.declared(to, n); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("a name is %T, not a string", names)
}

func (o *reading) declaredName(to To, text string) error {
	if text == "" {
		return nil
	}
	namespace, name, both := strings.Cut(text, "/")
	if !both {
		namespace, name = o.namespace, text
	}
	if (name != All && !isName(name)) || (namespace != All && !isLabel(namespace)) {
		return fmt.Errorf(`%q is neither a name nor "namespace/name"`, text)
	}
	o.add(to, namespace, name)
	return nil
}

// declarations has one file for each resource. Each says what it was read from.
//
//go:embed declarations/*.yaml
var declarations embed.FS

// BuiltinDeclarations returns the declarations for well-known custom resources, by resource.
func BuiltinDeclarations() (map[string][]Declaration, error) {
	files, err := declarations.ReadDir("declarations")
	if err != nil {
		return nil, err
	}
	out := make(map[string][]Declaration, len(files))
	for _, file := range files {
		text, err := declarations.ReadFile("declarations/" + file.Name())
		if err != nil {
			return nil, err
		}
		var l struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Metadata   struct {
				Name string `json:"name"`
			} `json:"metadata"`
			Spec struct {
				References []Declaration `json:"references"`
			} `json:"spec"`
		}
		err = yaml.UnmarshalStrict(text, &l)
		if err == nil && (l.Kind != "ResourceLifecycle" || l.Metadata.Name+".yaml" != file.Name() || len(l.Spec.References) == 0) {
			err = errors.New("it is not the ResourceLifecycle of its name with references")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name(), err)
		}
		out[l.Metadata.Name] = l.Spec.References
	}
	return out, nil
}
