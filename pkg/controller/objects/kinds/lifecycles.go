// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"embed"
	"fmt"
	"path"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// lifecycles has one file for each resource, in the form that users write. Each says what it was read from.
//
//go:embed lifecycles/*.yaml
var lifecycles embed.FS

// Lifecycles returns the built-in lifecycles by resource. A ResourceLifecycle of the same name replaces a built-in one. Those of Jobs and
// Pods are in package lifecycle.
func Lifecycles() (map[string]*gc.ResourceLifecycle, error) {
	files, err := lifecycles.ReadDir("lifecycles")
	if err != nil {
		return nil, err
	}
	out := make(map[string]*gc.ResourceLifecycle, len(files))
	for _, file := range files {
		text, err := lifecycles.ReadFile(path.Join("lifecycles", file.Name()))
		if err != nil {
			return nil, err
		}
		l, err := parseLifecycle(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name(), err)
		}
		out[l.Name] = l
	}
	return out, nil
}

// BuiltIn returns the names of the resources with a built-in lifecycle, apart from Jobs and Pods.
func BuiltIn() []string {
	files, _ := lifecycles.ReadDir("lifecycles") // It is part of the program.
	out := make([]string, len(files))
	for i, file := range files {
		out[i] = strings.TrimSuffix(file.Name(), ".yaml")
	}
	return out
}

func parseLifecycle(text []byte) (*gc.ResourceLifecycle, error) {
	written, l := &v1alpha1.ResourceLifecycle{}, &gc.ResourceLifecycle{}
	if err := yaml.UnmarshalStrict(text, written); err != nil {
		return nil, err
	}
	v1alpha1.SetObjectDefaults_ResourceLifecycle(written)
	return l, v1alpha1.Convert_v1alpha1_ResourceLifecycle_To_gc_ResourceLifecycle(written, l, nil)
}
