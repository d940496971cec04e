// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

// target is an object that a user has named.
type target struct {
	local.Object
	*resource.Info
	content *unstructured.Unstructured
}

// object reads the object that arguments name as kubectl takes them: "job/NAME" or "job NAME".
func (p *plugin) object(args []string) (*target, error) {
	namespace, err := p.namespace()
	if err != nil {
		return nil, err
	}
	return p.objectIn(namespace, args...)
}

// objectIn is object, in a namespace.
func (p *plugin) objectIn(namespace string, args ...string) (*target, error) {
	if len(args) == 1 && !strings.Contains(args[0], "/") {
		return nil, fmt.Errorf("%q is no object: name its type too, for example job/%[1]s", args[0])
	}
	infos, err := resource.NewBuilder(p.flags).Unstructured().NamespaceParam(namespace).DefaultNamespace().
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
	return &target{
		Object: local.Object{Resource: info.Mapping.Resource.GroupResource().String(), Namespace: info.Namespace, Name: info.Name},
		Info:   info, content: content,
	}, nil
}
