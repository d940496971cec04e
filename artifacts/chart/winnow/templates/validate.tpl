{{- /* Refuses values that fit the schema and not each other, and a second Winnow. It renders nothing. */ -}}
{{- $v := .Values }}
{{- if and (eq $v.certificates.source "secret") (not $v.certificates.secretName) }}
{{- fail "certificates.source is \"secret\", and certificates.secretName is empty: set it to a Secret with tls.crt, tls.key and ca.crt" }}
{{- end }}
{{- if and $v.certificates.secretName (ne $v.certificates.source "secret") }}
{{- fail (printf "certificates.secretName is set, and certificates.source is %q: set the source to \"secret\", or remove the name" $v.certificates.source) }}
{{- end }}
{{- if and (not $v.register) (eq $v.certificates.source "own") }}
{{- fail "register is false, so you apply the APIService yourself with the authority of your certificate: set certificates.source to \"certManager\" or \"secret\"" }}
{{- end }}
{{- if and $v.optional.referrers (not $v.optional.moreResources) }}
{{- fail "optional.referrers needs optional.moreResources: set both to true" }}
{{- end }}
{{- $accounts := or $v.accounts.enabled $v.accounts.beforeKubernetes136 }}
{{- if not (or $accounts $v.rights.delete) }}
{{- fail "rights.delete is false, so Winnow deletes only as ServiceAccounts: set accounts.enabled to true" }}
{{- end }}
{{- if and $v.optional.deadlines (not $v.rights.delete) }}
{{- fail "optional.deadlines gives Winnow itself the right to patch Jobs and Pods, and rights.delete is false: set optional.deadlines to false, since the ServiceAccounts of policies change deadlines" }}
{{- end }}
{{- if and $v.accounts.enabled $v.accounts.beforeKubernetes136 }}
{{- fail "accounts.beforeKubernetes136 allows Winnow every request as the accounts, so that accounts.enabled restricts nothing: set only one of them, accounts.enabled from Kubernetes 1.36 on" }}
{{- end }}
{{- if and $v.accounts.beforeKubernetes136 (not $v.accounts.names) }}
{{- fail "accounts.beforeKubernetes136 without accounts.names would let Winnow become any ServiceAccount: set accounts.names" }}
{{- end }}
{{- if and (or $v.accounts.default $v.accounts.require) (not $accounts) }}
{{- fail "accounts.default and accounts.require have no use as long as Winnow can act as no account: set accounts.enabled to true" }}
{{- end }}
{{- if and $v.accounts.default $v.accounts.names (not (has $v.accounts.default $v.accounts.names)) }}
{{- fail (printf "accounts.default is %q, and accounts.names does not contain it: add it to accounts.names" $v.accounts.default) }}
{{- end }}
{{- $n := $v.notify }}
{{- if and (not $n.url) (or $n.sourcePrefix $n.caSecret $n.caConfigMap $n.systemRoots $n.tokenSecret $n.clientCertSecret) }}
{{- fail "the values of notify have no use without notify.url: set it to the https URL of the receiver" }}
{{- end }}
{{- if and $n.url (not (or $n.caSecret $n.caConfigMap $n.systemRoots)) }}
{{- fail "notify.url needs notify.caSecret or notify.caConfigMap, with the authorities of the receiver in ca.crt: the image has none. If yours has them, set notify.systemRoots to true" }}
{{- end }}
{{- if gt (len (compact (list $n.caSecret $n.caConfigMap (ternary "roots" "" $n.systemRoots)))) 1 }}
{{- fail "only one of notify.caSecret, notify.caConfigMap and notify.systemRoots can be set" }}
{{- end }}
{{- if and $v.networkPolicy.enabled $v.hostNetwork }}
{{- fail "networkPolicy.enabled has no effect with hostNetwork: set one of them to false" }}
{{- end }}
{{- if or (hasPrefix "kube-" .Release.Namespace) (eq .Release.Namespace "default") }}
{{- fail (printf "the namespace is %q, and Winnow needs one to itself, because it may create a Secret there and deletes nothing in it: add --namespace winnow-system --create-namespace" .Release.Namespace) }}
{{- end }}
{{- $pods := add (mul (ternary 1 2 $v.hostNetwork) (int $v.replicas)) (ternary 2 0 (eq (include "winnow.guarded" .) "true")) }}
{{- if and (hasPrefix "system-" (default "" $v.priorityClassName)) $v.criticalPodsQuota (gt (int $pods) (int $v.criticalPodsQuota)) }}
{{- fail (printf "criticalPodsQuota is %d, and an upgrade of %d replicas needs up to %d Pods: raise it, or set it to 0 for no quota" (int $v.criticalPodsQuota) (int $v.replicas) (int $pods)) }}
{{- end }}
{{- if and $v.optional.manageStorage $v.storage }}
{{- fail "optional.manageStorage lets Winnow install its storage, so Helm must not: set storage to false" }}
{{- end }}
{{- if and $v.certificates.certManager.issuerRef (ne $v.certificates.source "certManager") }}
{{- fail (printf "certificates.certManager.issuerRef is set, and certificates.source is %q: set the source to \"certManager\", or remove the issuer" $v.certificates.source) }}
{{- end }}
{{- range $v.extraArgs }}
{{- $flag := index (splitList "=" (trimPrefix "-" (trimPrefix "-" .))) 0 }}
{{- with get (dict "secure-port" "port" "register" "register" "namespace" "the namespace of the release" "manage-storage" "optional.manageStorage" "default-service-account" "accounts.default" "require-service-account" "accounts.require" "tls-cert-file" "certificates" "tls-private-key-file" "certificates" "tls-ca-file" "certificates") $flag }}
{{- fail (printf "extraArgs contains --%s, on which other objects of the chart depend: set %s instead" $flag .) }}
{{- end }}
{{- end }}
{{- $there := lookup "rbac.authorization.k8s.io/v1" "ClusterRole" "" "winnow:server" }}
{{- with (($there).metadata).annotations }}
{{- $name := get . "meta.helm.sh/release-name" }}
{{- $namespace := get . "meta.helm.sh/release-namespace" }}
{{- if and $name (or (ne $name $.Release.Name) (ne $namespace $.Release.Namespace)) }}
{{- fail (printf "Winnow is already installed in this cluster, as release %q in namespace %q. A cluster has one Winnow: upgrade that release, or uninstall it first" $name $namespace) }}
{{- end }}
{{- end }}
