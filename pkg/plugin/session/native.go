// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

// Native says what controllers of Kubernetes delete, which Winnow cannot prevent.
func (s *Session) Native(ctx context.Context, t *Target) ([]string, error) {
	var out []string
	isJob := t.Object.Resource == gc.ResourceJobs
	if seconds, ok, _ := unstructured.NestedInt64(t.Content.Object, "spec", "ttlSecondsAfterFinished"); ok && isJob {
		out = append(out, fmt.Sprintf("Kubernetes deletes it %s after it finishes, because it has spec.ttlSecondsAfterFinished.",
			gc.FormatDuration(time.Duration(seconds)*time.Second)))
	}
	owner := metav1.GetControllerOf(t.Content)
	switch {
	case owner == nil:
	case owner.Kind == "CronJob" && isJob:
		line, err := s.history(ctx, t.Object.Namespace, owner.Name)
		if err != nil {
			return nil, err
		}
		out = append(out, line)
	default:
		out = append(out, withOwner(owner, t.Object.Namespace))
	}
	return out, nil
}

// ExpectKept returns an error if Kubernetes itself deletes a Job before these annotations let it go. While the Job runs, nobody knows when
// that is, so the answer is a warning instead.
func ExpectKept(t *Target, annotations map[string]*string) (warning string, err error) {
	until, forever := annotations[gc.AnnotationKeepUntil], annotations[gc.AnnotationTTL] != nil
	if t.Object.Resource != gc.ResourceJobs || until == nil && !forever {
		return "", nil
	}
	job := &batchv1.Job{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(t.Content.Object, job); err != nil {
		return "", err
	}
	if job.Spec.TTLSecondsAfterFinished == nil {
		return "", nil
	}
	fact, err := lifecycle.FromJob(job)
	if err != nil {
		return "", err
	}
	when, dated := gc.FormatDuration(*fact.NativeTTL)+" after it finishes", !fact.FinishedAt.IsZero()
	if dated {
		end := fact.FinishedAt.Add(*fact.NativeTTL).UTC().Format(time.RFC3339)
		if until != nil && *until <= end { // Both are whole seconds in UTC.
			return "", nil
		}
		when = "at " + end
	}
	text := fmt.Sprintf("Kubernetes deletes this Job %s, because it has spec.ttlSecondsAfterFinished, and keep cannot delay that. "+
		`To remove the field: kubectl patch job %s -n %s --type merge --patch '{"spec": {"ttlSecondsAfterFinished": null}}'`,
		when, job.Name, job.Namespace)
	if dated || forever {
		return "", errors.New(text)
	}
	return text, nil
}

// withOwner says that an object goes with its controller, and how to see when. What has no group, such as a Node, has no answer.
func withOwner(owner *metav1.OwnerReference, namespace string) string {
	out := fmt.Sprintf("When %s/%s is deleted, Kubernetes deletes it too.", owner.Kind, owner.Name)
	if of, err := schema.ParseGroupVersion(owner.APIVersion); err == nil && of.Group != "" {
		out += fmt.Sprintf(" To see when that is: kubectl winnow why %s.%s/%s -n %s", strings.ToLower(owner.Kind), of.Group,
			owner.Name, namespace)
	}
	return out
}

// Defaults of the fields of a CronJob.
const successfulJobs, failedJobs = 3, 1

// history says how many Jobs a CronJob keeps, if the caller may read it.
func (s *Session) history(ctx context.Context, namespace, name string) (string, error) {
	unknown := fmt.Sprintf("CronJob/%s deletes its older Jobs itself. How many it keeps is not known: ", name)
	config, err := s.Flags.ToRESTConfig()
	if err != nil {
		return "", err
	}
	cluster, err := local.New(config)
	if err != nil {
		return "", err
	}
	resource := schema.ParseGroupResource(kinds.CronJobs)
	if may, err := cluster.May(ctx, "get", resource, namespace); err != nil {
		return "", err
	} else if !may {
		return fmt.Sprintf("%syou may not read it: kubectl auth can-i get %s -n %s", unknown, resource, namespace), nil
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	cj, err := client.BatchV1().CronJobs(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprint(unknown, err), nil
	case err != nil:
		return "", err
	}
	return historyOf(cj), nil
}

func historyOf(cj *batchv1.CronJob) string {
	successful, failed := ptr.Deref(cj.Spec.SuccessfulJobsHistoryLimit, successfulJobs), ptr.Deref(cj.Spec.FailedJobsHistoryLimit, failedJobs)
	return fmt.Sprintf("CronJob/%s deletes its older Jobs itself: it keeps the last %d successful and the last %d failed ones "+
		"(spec.successfulJobsHistoryLimit, spec.failedJobsHistoryLimit). Winnow cannot keep them for longer.", cj.Name, successful, failed)
}
