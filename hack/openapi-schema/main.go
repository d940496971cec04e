// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Command openapi-schema prints the OpenAPI v2 definitions of the API, from which the apply configurations are generated.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/winnow-dev/winnow/pkg/generated/openapi"
)

func main() {
	definitions := make(map[string]spec.Schema)
	for name, d := range openapi.GetOpenAPIDefinitions(ref) {
		definitions[name] = d.Schema
		if v2, ok := d.Schema.Extensions[common.ExtensionV2Schema].(spec.Schema); ok {
			definitions[name] = v2
		}
	}
	err := json.NewEncoder(os.Stdout).Encode(&spec.Swagger{SwaggerProps: spec.SwaggerProps{
		Swagger:     "2.0",
		Info:        &spec.Info{InfoProps: spec.InfoProps{Title: "Winnow", Version: "unversioned"}},
		Definitions: definitions,
	}})
	if err != nil {
		fmt.Fprintf(os.Stderr, "cannot write the OpenAPI definitions: %v\n", err)
		os.Exit(1)
	}
}

func ref(name string) spec.Ref { return spec.MustCreateRef("#/definitions/" + name) }
