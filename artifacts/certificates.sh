#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes the serving certificate of Winnow in clusters without cert-manager: the Secret that the Pods wait for. It also holds
# the certificate authority, which artifacts/register.sh gives to kube-apiserver.
#
# Run it again to renew. Needs openssl, and kubectl with the rights to write the Secret and the APIService and to restart the
# Deployment. The key of the authority is deleted, so that nobody can sign another certificate with it. DAYS is how long
# both are valid. Once they have expired, policies cannot be read and no namespace of the cluster can be deleted.
set -o errexit -o nounset -o pipefail

days="${DAYS:-3650}"
namespace=winnow-system
secret=winnow-serving-cert
name="winnow.${namespace}.svc"
apiservice=v1alpha1.gc.winnow.dev

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

openssl req -x509 -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days "${days}" -sha256 \
  -subj "/CN=winnow-ca" -addext "keyUsage=critical,keyCertSign" -keyout ca.key -out ca.crt
openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
  -subj "/CN=${name}" -keyout tls.key -out tls.csr
printf 'subjectAltName=DNS:%s\nextendedKeyUsage=serverAuth\nkeyUsage=critical,digitalSignature\n' "${name}" >extensions
openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days "${days}" -sha256 \
  -extfile extensions -out tls.crt
rm ca.key

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
