#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Generates deep copies, conversions, defaults, validation, OpenAPI and the typed clients from pkg/apis.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
module=github.com/winnow-dev/winnow
boilerplate=hack/boilerplate.go.txt

# The generators are built into GOBIN; a separate folder leaves those of other projects untouched.
GOBIN="${WINNOW_CACHE:-${XDG_CACHE_HOME:-${HOME}/.cache}/winnow}/codegen-bin"
export GOBIN
mkdir -p "${GOBIN}"

go mod download k8s.io/code-generator # No package of ours imports it, so that a build does not fetch it.
# shellcheck source=/dev/null
source "$(go list -m -f '{{.Dir}}' k8s.io/code-generator)/kube_codegen.sh"

# metav1 declares custom validation that validation-gen of v0.37 cannot resolve outside of the Kubernetes tree. The fields
# of its types are +k8s:opaqueType here, and validated by hand or by the registry.
all_readonly=("${KUBE_CODEGEN_READONLY_PKGS[@]}")
for i in "${!KUBE_CODEGEN_READONLY_PKGS[@]}"; do
  if [[ "${KUBE_CODEGEN_READONLY_PKGS[i]}" == */meta/v1 ]]; then unset 'KUBE_CODEGEN_READONLY_PKGS[i]'; fi
done

kube::codegen::gen_helpers --boilerplate "${boilerplate}" pkg/apis

KUBE_CODEGEN_READONLY_PKGS=("${all_readonly[@]}")

kube::codegen::gen_openapi \
  --boilerplate "${boilerplate}" \
  --output-dir pkg/generated/openapi \
  --output-pkg "${module}/pkg/generated/openapi" \
  --output-model-name-file zz_generated.model_name.go \
  --report-filename "${OPENAPI_REPORT:-/dev/null}" \
  --update-report \
  pkg/apis

kube::codegen::gen_client \
  --boilerplate "${boilerplate}" \
  --output-dir pkg/generated \
  --output-pkg "${module}/pkg/generated" \
  --with-watch \
  --with-applyconfig \
  --applyconfig-openapi-schema <(go run ./hack/openapi-schema) \
  pkg/apis
