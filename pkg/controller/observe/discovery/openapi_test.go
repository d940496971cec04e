// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"
)

// documents has one OpenAPI document, and answers only while the context of the request has not ended.
type documents struct {
	openapi.GroupVersionWithContext
}

func (d documents) PathsWithContext(ctx context.Context) (map[string]openapi.GroupVersionWithContext, error) {
	return map[string]openapi.GroupVersionWithContext{"apis/example.com/v1": d}, ctx.Err()
}

func (documents) SchemaWithContext(ctx context.Context, _ string) ([]byte, error) {
	return []byte(`{"components": {"schemas": {"com.example.v1.Run": {
		"type": "object", "properties": {"spec": {"$ref": "#/components/schemas/com.example.v1.RunSpec"}},
		"x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Run"}]
	}, "com.example.v1.RunSpec": {"type": "object", "properties": {"image": {"type": "string"}}}}}}`), ctx.Err()
}

func TestSchemaOf(t *testing.T) {
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	s, err := schemaOf(t.Context(), documents{}, gv.WithKind("Run"))
	if err != nil || !s.Properties["spec"].Properties["image"].Type.Contains("string") {
		t.Errorf("got %+v, %v", s, err)
	}
	for _, unknown := range []schema.GroupVersionKind{gv.WithKind("Other"), {Group: "other.com", Version: "v1", Kind: "Run"}} {
		if s, err := schemaOf(t.Context(), documents{}, unknown); s != nil || err != nil {
			t.Errorf("%s: got %+v, %v", unknown, s, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := schemaOf(ctx, documents{}, gv.WithKind("Run")); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the request: %v", err)
	}
}
