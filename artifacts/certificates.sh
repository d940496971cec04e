#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes the serving certificate of an installed Winnow, for clusters without cert-manager, and tells kube-apiserver which
# authority to verify it against:
#
#   kubectl apply -f artifacts/install/
#   artifacts/certificates.sh
#
# Run it again to renew. Needs openssl and kubectl with the rights to write the Secret and the APIService. The key of the
# authority is thrown away, so that nothing but this one certificate can ever be signed by it. DAYS is how long both
# are valid: when they have expired, policies cannot be read and no namespace of the cluster can be deleted.
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

# trust makes kube-apiserver accept what the authorities in the given files have signed.
trust() {
  kubectl patch apiservice "${apiservice}" --type=merge \
    --patch "{\"spec\":{\"caBundle\":\"$(cat "$@" | base64 | tr -d '\n')\"}}"
}

openssl req -x509 -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days "${days}" -sha256 \
  -subj "/CN=winnow-ca" -addext "keyUsage=critical,keyCertSign" -keyout ca.key -out ca.crt
openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
  -subj "/CN=${name}" -keyout tls.key -out tls.csr
printf 'subjectAltName=DNS:%s\nextendedKeyUsage=serverAuth\nkeyUsage=critical,digitalSignature\n' "${name}" >extensions
openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days "${days}" -sha256 \
  -extfile extensions -out tls.crt
rm ca.key

# Replicas change over one after the other: until the last has, the old authority is accepted too.
kubectl get apiservice "${apiservice}" --output 'jsonpath={.spec.caBundle}' | base64 --decode >old-ca.crt
trust ca.crt old-ca.crt
kubectl create secret tls "${secret}" --namespace "${namespace}" --cert tls.crt --key tls.key \
  --dry-run=client --output yaml | kubectl apply --server-side --force-conflicts --filename -
if [[ -s old-ca.crt ]]; then
  kubectl rollout restart --namespace "${namespace}" deployment/winnow
fi
kubectl rollout status --namespace "${namespace}" deployment/winnow --timeout 5m
trust ca.crt
