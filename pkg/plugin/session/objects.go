// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

// Target is an object that a user has named.
type Target struct {
	local.Object
	*resource.Info
	Content *unstructured.Unstructured
}

// Command returns the command of this plugin that does something with the object.
func (t *Target) Command(verb string) string {
	return fmt.Sprintf("kubectl winnow %s %s/%s -n %s", verb, t.Object.Resource, t.Object.Name, t.Object.Namespace)
}

// Named returns the object that arguments name as Object takes them. It need not exist.
func (s *Session) Named(args []string) (local.Object, error) {
	if err := expectType(args); err != nil {
		return local.Object{}, err
	}
	kind, name, ok := strings.Cut(strings.Join(args, "/"), "/")
	if !ok || kind == "" || name == "" || strings.Contains(name, "/") {
		return local.Object{}, fmt.Errorf("%q is no object: name its type too, for example job/NAME", strings.Join(args, " "))
	}
	namespace, err := s.Namespace()
	if err != nil {
		return local.Object{}, err
	}
	object := local.Object{Resource: kind, Namespace: namespace, Name: name}
	mapper, err := s.Flags.ToRESTMapper()
	if err != nil {
		return object, err
	}
	switch resource, err := mapper.ResourceFor(schema.ParseGroupResource(kind).WithVersion("")); {
	case err == nil:
		object.Resource = resource.GroupResource().String()
	case !meta.IsNoMatchError(err) || !strings.Contains(kind, "."): // The definition of a custom resource may be gone too.
		return object, err
	}
	return object, nil
}

// expectType fails if arguments are only a name.
func expectType(args []string) error {
	if len(args) == 1 && !strings.Contains(args[0], "/") {
		return fmt.Errorf("%q is no object: name its type too, for example job/%[1]s", args[0])
	}
	return nil
}

// Object reads the object that arguments name as kubectl takes them: "job/NAME" or "job NAME".
func (s *Session) Object(args []string) (*Target, error) {
	namespace, err := s.Namespace()
	if err != nil {
		return nil, err
	}
	return s.ObjectIn(namespace, args...)
}

// ObjectIn is like Object, in a namespace.
func (s *Session) ObjectIn(namespace string, args ...string) (*Target, error) {
	if err := expectType(args); err != nil {
		return nil, err
	}
	infos, err := resource.NewBuilder(s.Flags).Unstructured().NamespaceParam(namespace).DefaultNamespace().
		ResourceTypeOrNameArgs(false, args...).Flatten().Do().Infos()
	switch {
	case err != nil:
		return nil, err
	case len(infos) != 1:
		return nil, errors.New("name one object")
	case infos[0].Mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		return nil, fmt.Errorf("%s have no namespace, and Winnow deletes only objects in namespaces", infos[0].Mapping.Resource.GroupResource())
	}
	info := infos[0]
	content, ok := info.Object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("unexpected object %T", info.Object)
	}
	return &Target{
		Object: local.Object{Resource: info.Mapping.Resource.GroupResource().String(), Namespace: info.Namespace, Name: info.Name},
		Info:   info, Content: content,
	}, nil
}
