// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// schemaOf returns the schema of a kind, without references; nil if the cluster has none. It asks until ctx ends.
func schemaOf(ctx context.Context, client openapi.ClientWithContext, kind schema.GroupVersionKind) (*spec.Schema, error) {
	r := resolver.ClientDiscoveryResolver{Discovery: bound{ctx: ctx, client: client}}
	s, err := r.ResolveSchema(kind)
	if errors.Is(err, resolver.ErrSchemaNotFound) {
		return nil, nil
	}
	return s, err
}

// bound is a client whose requests have a context, which the resolver of Kubernetes does not pass on. It has nothing but OpenAPI documents.
type bound struct {
	discovery.DiscoveryInterface
	ctx    context.Context
	client openapi.ClientWithContext
}

// OpenAPIV3 implements discovery.OpenAPIV3SchemaInterface.
func (b bound) OpenAPIV3() openapi.Client { return b }

// Paths implements openapi.Client.
func (b bound) Paths() (map[string]openapi.GroupVersion, error) {
	all, err := b.client.PathsWithContext(b.ctx)
	out := make(map[string]openapi.GroupVersion, len(all))
	for path, gv := range all {
		out[path] = boundVersion{gv, b.ctx}
	}
	return out, err
}

type boundVersion struct {
	openapi.GroupVersionWithContext
	ctx context.Context
}

// Schema implements openapi.GroupVersion.
func (b boundVersion) Schema(contentType string) ([]byte, error) {
	return b.SchemaWithContext(b.ctx, contentType)
}
