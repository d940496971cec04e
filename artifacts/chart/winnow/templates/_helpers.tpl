{{/* Labels of all objects. Selectors use the first one alone, so that they never change. */}}
{{- define "winnow.labels" -}}
app.kubernetes.io/name: winnow
{{ include "winnow.commonLabels" . }}
{{- end }}

{{- define "winnow.guardLabels" -}}
app.kubernetes.io/name: winnow-guard
{{ include "winnow.commonLabels" . }}
{{- end }}

{{- define "winnow.commonLabels" -}}
app.kubernetes.io/part-of: winnow
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Annotations of the storage: it outlives the release, and comes before the rest. */}}
{{- define "winnow.storageAnnotations" -}}
internal.gc.winnow.dev/revision: "6"
helm.sh/resource-policy: keep
argocd.argoproj.io/sync-wave: "-1"
argocd.argoproj.io/sync-options: Prune=false,Delete=false
{{- end }}

{{- define "winnow.image" -}}
{{- with .Values.image -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- with .digest }}@{{ . }}{{ end }}
{{- end }}
{{- end }}

{{/* The Secret with the serving certificate, and its authority in ca.crt. */}}
{{- define "winnow.certificateSecret" -}}
{{- if eq .Values.certificates.source "own" -}}
winnow-certificates
{{- else if eq .Values.certificates.source "certManager" -}}
winnow-serving-cert
{{- else -}}
{{ .Values.certificates.secretName }}
{{- end }}
{{- end }}

{{/* The volumes for notifications, each with the keys that are used. Winnow runs without them too: it then sends nothing, and says so. */}}
{{- define "winnow.notifyVolumes" -}}
{{- with .Values.notify }}
{{- if .caConfigMap }}
- name: notify-ca
  configMap:
    name: {{ .caConfigMap }}
    optional: true
    items:
    - {key: ca.crt, path: ca.crt}
{{- end }}
{{- if .caSecret }}
- name: notify-ca
  secret:
    secretName: {{ .caSecret }}
    optional: true
    items:
    - {key: ca.crt, path: ca.crt}
{{- end }}
{{- if .clientCertSecret }}
- name: notify-client-cert
  secret:
    secretName: {{ .clientCertSecret }}
    optional: true
    items:
    - {key: tls.crt, path: tls.crt}
    - {key: tls.key, path: tls.key}
{{- end }}
{{- if .tokenSecret }}
- name: notify-token
  secret:
    secretName: {{ .tokenSecret }}
    optional: true
    items:
    - {key: token, path: token}
{{- end }}
{{- end }}
{{- end }}

{{/* Mebibytes of memory by size: the table in docs/install.md. */}}
{{- define "winnow.resources" -}}
{{- if .Values.resources }}
{{- toYaml .Values.resources }}
{{- else }}
{{- $sizes := dict "small" (list 128 288) "medium" (list 224 448) "large" (list 480 1056) }}
{{- $extra := ternary (list 96 192) (list 0 0) (or .Values.unused .Values.optional.referrers) }}
{{- $size := get $sizes .Values.size -}}
requests: {cpu: 50m, memory: {{ add (index $size 0) (index $extra 0) }}Mi}
limits: {memory: {{ add (index $size 1) (index $extra 1) }}Mi}
{{- end }}
{{- end }}

{{/* The guard withdraws a registration that Winnow makes again; one that somebody else made would stay away. */}}
{{- define "winnow.guarded" -}}
{{- if and .Values.guard.enabled .Values.register }}true{{ end }}
{{- end }}

{{/* What the Pods of server and guard have in common. */}}
{{- define "winnow.podSecurity" -}}
securityContext:
  runAsNonRoot: true
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "winnow.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* Where the Pods of server and guard may run. */}}
{{- define "winnow.scheduling" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- with .Values.priorityClassName }}
# While no replica answers, no namespace of the cluster can be deleted: Winnow comes before workloads.
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}
