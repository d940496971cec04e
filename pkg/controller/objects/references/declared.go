// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"embed"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/expressions"
)

// Declared returns a Reader for a resource with declarations. An API can get another field after its declaration was written, and other
// tools name what they use in annotations. So annotations, and fields whose names speak of a Secret or ConfigMap, count too.
func Declared(declarations []gc.LifecycleReference) (*Reader, error) {
	compiled := make([]compiledDeclaration, len(declarations))
	for i, d := range declarations {
		to, ok := targets[d.To]
		if !ok {
			return nil, fmt.Errorf(`spec.references[%d].to: %q is neither "configmaps" nor "secrets"`, i, d.To)
		}
		names, err := expressions.Stored(d.Names, expressions.Names)
		if err != nil {
			return nil, fmt.Errorf("spec.references[%d].names: %w", i, err)
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
				return fmt.Errorf("spec.references[%d].names: %w", i, err)
			}
		}
		o.content(func(o *reading, key string, value any) { o.mentioned(0, key, value) })
		return o.everyAnnotation()
	}, [][]string{{}}), nil
}

var targets = map[gc.ReferenceTarget]To{gc.ResourceSecrets: Secrets, gc.ResourceConfigMaps: ConfigMaps}

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

// Unreadable returns a Reader for a resource whose declarations cannot be read: every object may refer to everything.
func Unreadable(why error) *Reader {
	return newReader(func(*reading) error { return why }, [][]string{{}})
}

// Union returns a Reader that finds what two others find.
func Union(a, b *Reader) *Reader {
	r := newReader(func(o *reading) error {
		if err := a.read(o); err != nil {
			return err
		}
		return b.read(o)
	}, a.fields, b.fields)
	r.self = a.self | b.self
	return r
}

// declarations has one file for each resource. Each says what it was read from.
//
//go:embed declarations/*.yaml
var declarations embed.FS

// BuiltinDeclarations returns the declarations for well-known custom resources, by resource.
func BuiltinDeclarations() (map[string][]gc.LifecycleReference, error) {
	files, err := declarations.ReadDir("declarations")
	if err != nil {
		return nil, err
	}
	out := make(map[string][]gc.LifecycleReference, len(files))
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
				References []gc.LifecycleReference `json:"references"`
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
