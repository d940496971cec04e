# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# What the hidden scripts of the pages may call. Everything that they create is real: kwok runs the Pods, and the controllers of
# Kubernetes write the status. Only the times are moved back afterwards, because nobody can wait for weeks.

# age AGE ARGUMENTS moves the times of the objects that "kubectl get ARGUMENTS" finds back.
age() { "${DOCS_COMMANDS}" age "$@"; }

# crds NAME... installs the definitions of custom resources of package test/platforms. Their controllers do not run.
crds() { "${DOCS_COMMANDS}" crds "$@"; }

# custom NAMESPACE AGE APIVERSION KIND STATUS NAME... makes objects of a custom resource, with this status, as of that long ago. NOW in the
# status is the present time. LABELS is what YAML has in braces.
custom() {
  local namespace="$1" age="$2" version="$3" kind="$4" status="$5" name
  shift 5
  for name in "$@"; do
    kubectl create -f - <<END
{apiVersion: ${version}, kind: ${kind}, metadata: {namespace: ${namespace}, name: ${name}, labels: {${LABELS:-}}}, spec: {}}
END
    kubectl patch -n "${namespace}" "${kind}" "${name}" --subresource=status --type=merge --patch "status: ${status//NOW/$(date -u +%FT%TZ)}"
    age "${age}" -n "${namespace}" "${kind}" "${name}"
  done
}

# job_manifest NAMESPACE NAME writes a Job. OUTCOME=Failed makes it fail, RUN_FOR=forever lets it run. LABELS is what YAML has in braces.
job_manifest() {
  cat <<END
---
apiVersion: batch/v1
kind: Job
metadata: {namespace: $1, name: $2, labels: {${LABELS:-}}}
spec:
  backoffLimit: 0
  template:
    metadata:
      labels: {test.winnow.dev/outcome: "${OUTCOME:-Succeeded}"}
      annotations: {test.winnow.dev/run-for: "${RUN_FOR:-100ms}"}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: none}]
END
}

# jobs_of NAMESPACE AGE NAME... runs Jobs, which then finished that long ago.
jobs_of() {
  local namespace="$1" age="$2" condition=Complete
  shift 2
  if [[ "${OUTCOME:-}" == Failed ]]; then condition=Failed; fi
  for name in "$@"; do job_manifest "${namespace}" "${name}"; done | kubectl create -f -
  kubectl wait -n "${namespace}" --for="condition=${condition}" --timeout=60s "${@/#/job/}"
  age "${age}" -n "${namespace}" "${@/#/job/}"
  age "${age}" -n "${namespace}" pods -l "job-name in ($(IFS=,; echo "$*"))"
}

# cron_job NAMESPACE NAME creates a CronJob that is suspended. Its Jobs have LABELS.
cron_job() {
  kubectl create -f - <<END
apiVersion: batch/v1
kind: CronJob
metadata: {namespace: $1, name: $2}
spec:
  schedule: "0 3 * * *"
  suspend: true
  successfulJobsHistoryLimit: 100
  failedJobsHistoryLimit: 100
  jobTemplate:
    metadata: {labels: {${LABELS:-}}}
    spec:
      template:
        metadata: {annotations: {test.winnow.dev/run-for: 100ms}}
        spec: {restartPolicy: Never, containers: [{name: main, image: none}]}
END
}

# cron_run NAMESPACE CRONJOB AGE SUFFIX runs a Job of a CronJob, which then finished that long ago.
cron_run() {
  kubectl create job -n "$1" "$2-$4" --from="cronjob/$2"
  kubectl wait -n "$1" --for=condition=Complete --timeout=60s "job/$2-$4"
  age "$3" -n "$1" "job/$2-$4"
  age "$3" -n "$1" pods -l "job-name=$2-$4"
}
