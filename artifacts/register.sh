#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# The last step of an installation: makes kube-apiserver send requests for gc.winnow.dev to Winnow.
#
#   artifacts/register.sh [MANIFEST]
#
# MANIFEST is artifacts/apiservice.yaml unless you name another one. An APIService without a server behind it keeps every
# namespace of the cluster from being deleted. So the script waits until all replicas are ready, gives kube-apiserver the
# certificate authority together with the APIService, and takes a new APIService back if it does not become available.
# TIMEOUT is how long each step may take. You can run the script again at any time.
set -o errexit -o nounset -o pipefail

manifest="${1:-"$(dirname "${BASH_SOURCE[0]}")/apiservice.yaml"}"
timeout="${TIMEOUT:-5m}"
namespace=winnow-system
secret=winnow-serving-cert
apiservice=v1alpha1.gc.winnow.dev

fail() {
  echo "register.sh: $*" >&2
  exit 1
}

authority="$(kubectl get secret "${secret}" --namespace "${namespace}" --output 'jsonpath={.data.ca\.crt}')" ||
  fail "not registered: there is no serving certificate; run artifacts/certificates.sh first, or install artifacts/cert-manager"
[[ -n "${authority}" ]] ||
  fail "not registered: Secret ${secret} has no ca.crt; run artifacts/certificates.sh again"
kubectl rollout status deployment/winnow --namespace "${namespace}" --timeout "${timeout}" ||
  fail "not registered: not all replicas are ready; see kubectl --namespace ${namespace} describe pods"

existing="$(kubectl get apiservice "${apiservice}" --ignore-not-found --output name)"
kubectl patch --local --filename "${manifest}" --type=merge --patch "{\"spec\":{\"caBundle\":\"${authority}\"}}" --output yaml |
  kubectl apply --server-side --force-conflicts --field-manager=winnow-register --filename -
if ! kubectl wait --for=condition=Available "apiservice/${apiservice}" --timeout "${timeout}"; then
  why="$(kubectl get apiservice "${apiservice}" --output 'jsonpath={.status.conditions[0].reason}: {.status.conditions[0].message}')"
  if [[ -z "${existing}" ]]; then
    kubectl delete apiservice "${apiservice}"
    fail "kube-apiserver does not reach Winnow, so the APIService is deleted again: ${why}"
  fi
  fail "kube-apiserver does not reach Winnow: ${why}"
fi
