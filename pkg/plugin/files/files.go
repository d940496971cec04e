// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package files reads policies from files, and checks them as the server does.
package files

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/install"
	"github.com/winnow-dev/winnow/pkg/apis/gc/manifest"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

var (
	scheme  = newScheme()
	decoder = serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	install.Install(s)
	return s
}

// Flag is the flag --filename.
type Flag struct{ Names []string }

// AddFlag adds the flag.
func (f *Flag) AddFlag(cmd *cobra.Command, usage string) {
	cmd.Flags().StringSliceVarP(&f.Names, "filename", "f", nil, usage)
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json") // The flag exists.
}

// Read returns the policies in the files, checked as the server checks them. A CleanupPolicy without a namespace gets this one.
func (f *Flag) Read(ctx context.Context, stdin io.Reader, namespace string) (local.Drafts, error) {
	var out local.Drafts
	for _, name := range f.Names {
		content, err := readFile(name, stdin)
		if err == nil {
			err = Add(ctx, &out, content, namespace)
		}
		if err != nil {
			return out, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out, nil
}

func readFile(name string, stdin io.Reader) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(stdin)
	}
	content, err := os.ReadFile(name)
	var path *fs.PathError
	if errors.As(err, &path) { // The caller names the file.
		return nil, path.Err
	}
	return content, err
}

// Add adds the policies of a file, which may have several documents.
func Add(ctx context.Context, to *local.Drafts, content []byte, namespace string) error {
	documents, err := Documents(content)
	if err != nil {
		return err
	}
	if len(documents) == 0 {
		return errors.New("the file has no policy")
	}
	for _, document := range documents {
		object, err := Decode(ctx, document, namespace)
		if err != nil {
			return err
		}
		switch object := object.(type) {
		case *gc.CleanupPolicy:
			to.Policies = append(to.Policies, object)
		case *gc.ClusterCleanupPolicy:
			to.ClusterPolicies = append(to.ClusterPolicies, object)
		default:
			return errors.New("a ResourceLifecycle is no policy")
		}
	}
	return nil
}

// Documents returns the documents of a YAML file as JSON, without those that have only comments.
func Documents(content []byte) ([][]byte, error) {
	var out [][]byte
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		encoded, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, err
		}
		if string(encoded) != "null" {
			out = append(out, encoded)
		}
	}
}

// Decode returns a policy or a ResourceLifecycle, with defaults, checked as the server checks it. A CleanupPolicy without a namespace gets
// this one.
func Decode(ctx context.Context, document []byte, namespace string) (runtime.Object, error) {
	object, kind, err := decoder.Decode(document, nil, nil)
	switch {
	case runtime.IsNotRegisteredError(err):
		return nil, fmt.Errorf("%s of %s is no policy; write apiVersion: %s, and kind: CleanupPolicy or ClusterCleanupPolicy",
			kind.Kind, kind.GroupVersion(), v1alpha1.SchemeGroupVersion)
	case kind != nil:
		err = cmp.Or(checkFields(ctx, document, *kind), err)
	}
	if err != nil {
		return nil, err
	}
	name := ""
	switch object := object.(type) {
	case *v1alpha1.CleanupPolicy:
		name, object.Namespace = object.Name, cmp.Or(object.Namespace, namespace)
	case *v1alpha1.ClusterCleanupPolicy:
		name = object.Name
	case *v1alpha1.ResourceLifecycle:
		name = object.Name
	default:
		return nil, fmt.Errorf("a %s is no policy", kind.Kind)
	}
	converted, errs, err := manifest.Validate(ctx, scheme, object)
	if err != nil {
		return nil, err
	}
	return converted, invalid(kind.Kind, name, errs)
}

// checkFields returns what the server says about values of a wrong type and unknown fields.
func checkFields(ctx context.Context, document []byte, kind schema.GroupVersionKind) error {
	decoded, err := manifest.Decode(document)
	if err != nil {
		return err
	}
	content, ok := decoded.(map[string]any)
	if !ok {
		return fmt.Errorf("a %s must be an object", kind.Kind)
	}
	var c manifest.Checker
	c.Object(content, scheme.KnownTypes(kind.GroupVersion())[kind.Kind])
	if len(c.Unknown) > 0 {
		return runtime.NewStrictDecodingError(c.Refusals(ctx, scheme, kind, content))
	}
	name, _, _ := unstructured.NestedString(content, "metadata", "name")
	return invalid(kind.Kind, name, c.Wrong)
}

// invalid returns errors about fields as the server does; nil if there are none.
func invalid(kind, name string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(gc.Kind(kind), name, errs)
}
