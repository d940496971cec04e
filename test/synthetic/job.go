// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package synthetic

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// apps are what Jobs run, in every namespace, and releases how many versions of them there are.
var apps = []string{
	"train-embedding", "nightly-reports", "image-thumbnail", "invoice-mailing", "backup-postgres", "index-catalogue", "export-parquets",
	"import-feedback", "resize-pictures", "score-customers", "check-addresses", "refresh-caching", "merge-documents", "encode-podcasts",
	"verify-archives", "migrate-schemas", "publish-digests", "collect-metrics", "compact-storage", "settle-accounts",
}

const releases = 5

// Apps are the names of what Jobs run.
func Apps() []string { return slices.Clone(apps) }

// byHand is how many Jobs there are for each one that somebody created by hand, as kubectl create job does, and no CronJob.
const byHand = 4

// firstMinute is the minute of the first Job. The CronJob controller ends the names of Jobs with the minute for which they are scheduled.
const firstMinute = 28_000_000

// version is a state of a Job. The zero value is that in which it was generated.
type version struct {
	rv          uint64
	annotations map[string]string
	gone        bool
}

// generator makes Jobs from their numbers, each replacing the one before. It is for one goroutine.
type generator struct {
	namespaces []string
	finished   time.Time // when the newest finished
	job        batchv1.Job
	labels     [][releases]map[string]string // by app
	cronJobs   map[string]map[string]types.UID
}

// spread is over how long Jobs have finished.
const spread = 2 * time.Hour

func newGenerator(namespaces []string, finished time.Time, cronJobs map[string]map[string]types.UID) *generator {
	g := &generator{namespaces: namespaces, finished: finished, job: *template(), cronJobs: cronJobs}
	for _, app := range apps {
		var labels [releases]map[string]string
		for i := range labels {
			labels[i] = map[string]string{
				"app.kubernetes.io/name": app, "app.kubernetes.io/instance": app, "app.kubernetes.io/part-of": strings.SplitAfter(app, "-")[1],
				"app.kubernetes.io/version": fmt.Sprintf("v1.%d.0", i), "app.kubernetes.io/managed-by": "Helm",
				"helm.sh/chart": fmt.Sprintf("%s-1.%d.0", app, i), "example.com/tier": "batch",
			}
		}
		g.labels = append(g.labels, labels)
	}
	return g
}

func (g *generator) namespace(number int) string { return g.namespaces[number%len(g.namespaces)] }

// in reports whether a Job is in a namespace; all are in "".
func (g *generator) in(number int, namespace string) bool {
	return namespace == "" || g.namespace(number) == namespace
}

// app and release go on slowly, so that each namespace has all of them.
func app(number int) int     { return number / 64 % len(apps) }
func release(number int) int { return number / 8192 % releases }

func name(number int) string { return fmt.Sprintf("%s-%d", apps[app(number)], firstMinute+number) }

// numberOf is the number in a name, -1 if it is no name of a Job here.
func numberOf(s string) int {
	number, err := strconv.Atoi(s[strings.LastIndexByte(s, '-')+1:])
	number -= firstMinute
	if err != nil || number < 0 || name(number) != s {
		return -1
	}
	return number
}

// uid looks like a random one (RFC 9562, version 4).
func uid(number int) types.UID {
	var b [16]byte
	// Multiplication by an odd number maps no two numbers to the same.
	binary.BigEndian.PutUint64(b[:8], uint64(number+1)*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint64(b[8:], uint64(number+1)*0xc2b2ae3d27d4eb4f)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	s := hex.EncodeToString(b[:])
	return types.UID(s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:])
}

// make returns a Job that the next call overwrites.
func (g *generator) make(number int, v version) *batchv1.Job {
	j := &g.job
	j.Name, j.Namespace, j.UID = name(number), g.namespace(number), uid(number)
	j.ResourceVersion = v.of(number)
	g.describe(j, number, v)
	finished := metav1.NewTime(g.finished.Add(-spread + time.Duration(number%int(spread/time.Second))*time.Second))
	started := metav1.NewTime(finished.Add(-time.Duration(30+number%600) * time.Second))
	j.CreationTimestamp, j.Status.StartTime, j.Status.CompletionTime = started, &started, &finished
	for i := range j.Status.Conditions {
		j.Status.Conditions[i].LastProbeTime, j.Status.Conditions[i].LastTransitionTime = finished, finished
	}
	j.ManagedFields[0].Time, j.ManagedFields[1].Time = &started, &finished
	j.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel] = string(j.UID)
	j.Spec.Template.Labels[batchv1.ControllerUidLabel], j.Spec.Template.Labels[batchv1.JobNameLabel] = string(j.UID), j.Name
	container := &j.Spec.Template.Spec.Containers[0]
	container.Env[0].Value = j.Namespace
	container.Args[1] = "s3://" + j.Namespace + "/" + j.Name
	return j
}

// describe gives a Job the labels, annotations and owner that it would have in a cluster.
func (g *generator) describe(j *batchv1.Job, number int, v version) {
	j.Annotations = map[string]string{"example.com/commit": fmt.Sprintf("%040x", uint64(release(number)+1)*0x9e3779b97f4a7c15)}
	maps.Copy(j.Annotations, v.annotations)
	cronJob, owned := g.cronJobs[j.Namespace][apps[app(number)]]
	if !owned || number%byHand == 0 { // A Job without labels gets the labels of its Pods.
		j.OwnerReferences = nil
		j.Labels = map[string]string{
			batchv1.ControllerUidLabel: string(j.UID), batchv1.JobNameLabel: j.Name, "controller-uid": string(j.UID), "job-name": j.Name,
		}
		return
	}
	j.Labels = g.labels[app(number)][release(number)]
	j.Annotations[batchv1.CronJobScheduledTimestampAnnotation] = time.Unix(60*int64(firstMinute+number), 0).UTC().Format(time.RFC3339)
	j.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "batch/v1", Kind: "CronJob", Name: apps[app(number)], UID: cronJob,
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}}
}

// of is the resource version of a Job in this version.
func (v version) of(number int) string {
	if v.rv == 0 {
		return strconv.Itoa(number + 1)
	}
	return strconv.FormatUint(v.rv, 10)
}

// template is a Job as it is after its end: defaults filled in, and the fields of two managers.
func template() *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Generation: 1, ManagedFields: []metav1.ManagedFieldsEntry{
			managedBy(
				"workflow-runner",
				"",
				`{"f:metadata":{"f:labels":{".":{},"f:app.kubernetes.io/name":{},"f:app.kubernetes.io/part-of":{},`+
					`"f:app.kubernetes.io/version":{},"f:example.com/tier":{}}},"f:spec":{"f:backoffLimit":{},"f:completionMode":{},"f:completions":{},`+
					`"f:manualSelector":{},"f:parallelism":{},"f:podReplacementPolicy":{},"f:suspend":{},"f:template":{"f:spec":{"f:containers":{`+
					`"k:{\"name\":\"main\"}":{".":{},"f:args":{},"f:command":{},"f:env":{".":{},`+
					`"k:{\"name\":\"TENANT\"}":{".":{},"f:name":{},"f:value":{}},`+
					`"k:{\"name\":\"LOG_LEVEL\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"QUEUE\"}":{".":{},"f:name":{},"f:value":{}}},`+
					`"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:resources":{".":{},"f:limits":{".":{},"f:memory":{}},`+
					`"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}},"f:dnsPolicy":{},`+
					`"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{}}}}}`,
			),
			managedBy(
				"kube-controller-manager",
				"status",
				`{"f:status":{"f:completionTime":{},"f:conditions":{},"f:ready":{},"f:startTime":{},`+
					`"f:succeeded":{},"f:terminating":{},"f:uncountedTerminatedPods":{}}}`,
			),
		}},
		Spec: batchv1.JobSpec{
			Parallelism: ptr.To[int32](1), Completions: ptr.To[int32](1), BackoffLimit: ptr.To[int32](6), Suspend: ptr.To(false),
			ManualSelector: ptr.To(false), CompletionMode: ptr.To(batchv1.NonIndexedCompletion),
			PodReplacementPolicy: ptr.To(batchv1.TerminatingOrFailed), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{}},
			Template: podTemplate(),
		},
		Status: batchv1.JobStatus{
			Succeeded: 1, Ready: ptr.To[int32](0), Terminating: ptr.To[int32](0), UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{},
			Conditions: []batchv1.JobCondition{
				{
					Type:    batchv1.JobSuccessCriteriaMet,
					Status:  corev1.ConditionTrue,
					Reason:  batchv1.JobReasonCompletionsReached,
					Message: reached,
				},
				{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonCompletionsReached, Message: reached},
			},
		},
	}
}

const reached = "Reached expected number of succeeded pods"

func managedBy(manager, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "batch/v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(fields), Subresource: subresource,
	}
}

func podTemplate() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, DNSPolicy: corev1.DNSClusterFirst, SchedulerName: corev1.DefaultSchedulerName,
			SecurityContext: &corev1.PodSecurityContext{}, TerminationGracePeriodSeconds: ptr.To[int64](30),
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.example.com/batch/worker:2026.11.3", ImagePullPolicy: corev1.PullIfNotPresent,
				Command: []string{"/usr/local/bin/worker", "run"}, Args: []string{"--input", ""},
				Env: []corev1.EnvVar{{Name: "TENANT"}, {Name: "LOG_LEVEL", Value: "info"}, {Name: "QUEUE", Value: "default-priority"}},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{
						corev1.ResourceCPU:    resource.MustParse("250m"),
						corev1.ResourceMemory: resource.MustParse("256Mi"),
					},
					Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
				},
				TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			}},
		},
	}
}
