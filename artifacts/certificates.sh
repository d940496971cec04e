#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes the serving certificate of Winnow in clusters without cert-manager: the Secret that the Pods wait for. It also holds
# the certificate authority, which artifacts/register.sh gives to kube-apiserver.
#
# Run it again to renew. Needs winnow-apiserver ("make build", or WINNOW is its path), and kubectl with the rights to write the
# Secret and the APIService and to restart the Deployment. The key of the authority is not kept, so that nobody can sign another
# certificate with it. DAYS is how long both are valid. Once they have expired, policies cannot be read and no namespace of the
# cluster can be deleted.
set -o errexit -o nounset -o pipefail

winnow="${WINNOW:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/bin/winnow-apiserver}"
days="${DAYS:-3650}"
namespace=winnow-system
secret=winnow-serving-cert
name="winnow.${namespace}.svc"
apiservice=v1alpha1.gc.winnow.dev

command -v "${winnow}" >/dev/null || {
  echo "there is no ${winnow}: run make build, or set WINNOW to the path of a winnow-apiserver" >&2
  exit 1
}
work="$(mktemp -d)"
trap 'rm -rf "${work}"' EXIT
cd "${work}"
umask 077

# trust makes kube-apiserver accept what the authorities in the given files have signed, once Winnow is registered.
trust() {
  if [[ -n "$(kubectl get apiservice "${apiservice}" --ignore-not-found --output name)" ]]; then
    kubectl patch apiservice "${apiservice}" --type=merge \
      --patch "{\"spec\":{\"caBundle\":\"$(cat "$@" | base64 | tr -d '\n')\"}}"
  fi
}

"${winnow}" certificates --dir . --days "${days}" "${name}"

renewed="$(kubectl get secret "${secret}" --namespace "${namespace}" --ignore-not-found --output name)"
# Replicas change over one after the other: until the last has, kube-apiserver accepts the old authority too.
kubectl get apiservice "${apiservice}" --ignore-not-found --output 'jsonpath={.spec.caBundle}' | base64 --decode >old-ca.crt
trust ca.crt old-ca.crt
kubectl create secret generic "${secret}" --namespace "${namespace}" --type kubernetes.io/tls \
  --from-file tls.crt --from-file tls.key --from-file ca.crt \
  --dry-run=client --output yaml | kubectl apply --server-side --force-conflicts --filename -
if [[ -n "${renewed}" ]]; then
  kubectl rollout restart --namespace "${namespace}" deployment/winnow
  kubectl rollout status --namespace "${namespace}" deployment/winnow --timeout 5m
  trust ca.crt
fi
