// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage embeds the manifests that Winnow's storage in the cluster's own API needs, so that a
// server with the rights to can apply what `kubectl apply -f artifacts/storage/` would.
package storage

import _ "embed"

// CRDs defines the custom resources that hold policies, lifecycles, usage marks, records and copies, as a YAML stream.
//
//go:embed crds.yaml
var CRDs []byte

// AdmissionPolicy reserves those resources for Winnow, as a YAML stream.
//
//go:embed admission-policy.yaml
var AdmissionPolicy []byte
