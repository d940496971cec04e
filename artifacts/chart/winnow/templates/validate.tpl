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
{{- if and $v.networkPolicy.enabled $v.hostNetwork }}
{{- fail "networkPolicy.enabled has no effect with hostNetwork: set one of them to false" }}
{{- end }}
{{- if hasPrefix "kube-" .Release.Namespace }}
{{- fail (printf "the namespace %q belongs to Kubernetes: install Winnow in a namespace of its own, such as winnow-system, because it may create a Secret there" .Release.Namespace) }}
{{- end }}
{{- if and (hasPrefix "system-" $v.priorityClassName) $v.criticalPodsQuota (gt (add (mul 2 (int $v.replicas)) 2) (int $v.criticalPodsQuota)) }}
{{- fail (printf "criticalPodsQuota is %d: %d replicas and the guard need %d during an upgrade; raise it, or set it to 0 for no quota" (int $v.criticalPodsQuota) (int $v.replicas) (add (mul 2 (int $v.replicas)) 2)) }}
{{- end }}
{{- $there := lookup "rbac.authorization.k8s.io/v1" "ClusterRole" "" "winnow:server" }}
{{- with (($there).metadata).annotations }}
{{- $name := get . "meta.helm.sh/release-name" }}
{{- $namespace := get . "meta.helm.sh/release-namespace" }}
{{- if and $name (or (ne $name $.Release.Name) (ne $namespace $.Release.Namespace)) }}
{{- fail (printf "Winnow is already installed in this cluster, as release %q in namespace %q. A cluster has one Winnow: upgrade that release, or uninstall it first" $name $namespace) }}
{{- end }}
{{- end }}
