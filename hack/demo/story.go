// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/test/cluster"
)

const (
	namespace        = "demo"
	previewNamespace = "preview"
	holdFinalizer    = "demo.winnow.dev/hold"

	// Jobs that are not deleted when they are due.
	failing, finalized, extended, endless = "train", "upload", "report", "serve"
	// failuresPolicy decides only for the failing Job, and reportsPolicy only for the extended one.
	failuresPolicy, reportsPolicy = "keep-failures", "reports"
	longerTTL                     = "1h"

	// In this namespace, a policy keeps the Jobs that finished last. One Job has a TTL of zero, which the cluster policy extends.
	recentNamespace, keepLast, scratch = "recent", "keep-last", "scratch"
	buildJobs, lastKept                = 6, 3
	minTTL                             = 5 * time.Second

	// In this namespace, Jobs have no policy at first. Then a policy makes more of them due at once than the cluster policy allows.
	backlogNamespace, sweep = "backlog", "sweep"
	backlogJobs             = 7
	// heldShown is how long these Jobs are shown as held before the approval.
	heldShown = 5 * time.Second

	explainCommand = "kubectl get cand -n " + namespace

	// nextJobEvery is how often another Job is created, so that the view keeps changing.
	nextJobEvery = 10 * time.Second
	// lastMoment is how long before it is due a Job is extended: long enough for the request on a busy machine.
	lastMoment = 3 * time.Second
)

// goers are the first objects that Winnow must delete.
var goers = []string{"convert", "lint", "backup", "migrate", "index", "import", "shell"}

var (
	//go:embed demo.yaml
	manifests string
	//go:embed sweep.yaml
	sweepManifest string
)

// story creates and changes the objects of the demonstration.
type story struct {
	cluster *cluster.Cluster
	client  kubernetes.Interface
	renders int
	nextJob time.Time
	swept   bool
	// approveAt is when to approve the hold; zero until there is one.
	approveAt time.Time
}

func newStory(c *cluster.Cluster) (*story, error) {
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	return &story{cluster: c, client: client}, err
}

// begin creates namespaces, policies and the first Jobs, and adds the warnings of the API server to the model.
func (s *story) begin(ctx context.Context, m *model) error {
	if err := s.apply(ctx, manifests, m, m.began); err != nil {
		return err
	}
	for _, job := range firstJobs() {
		if err := s.create(ctx, job); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) apply(ctx context.Context, manifests string, m *model, at time.Time) error {
	_, stderr, err := s.cluster.KubectlStdin(ctx, manifests, "apply", "-f", "-")
	m.tellWarnings(at, stderr)
	return err
}

func firstJobs() []*batchv1.Job {
	out := []*batchv1.Job{
		newJob(namespace, failing, "2s", func(j *batchv1.Job) {
			j.Spec.Template.Labels = map[string]string{"test.winnow.dev/outcome": "Failed"}
		}),
		newJob(namespace, finalized, "2s", func(j *batchv1.Job) { j.Finalizers = []string{holdFinalizer} }),
		newJob(namespace, extended, "2s"),
		newJob(namespace, endless, "forever"),
		newJob(namespace, "convert", "2s", func(j *batchv1.Job) {
			j.Spec.Completions, j.Spec.Parallelism = new(int32(4)), new(int32(2))
		}),
		newJob(namespace, "lint", "1s"),
		newJob(namespace, "backup", "3s"),
		newJob(namespace, "migrate", "4s"),
		newJob(namespace, "index", "5s"),
		newJob(namespace, "import", "6s"),
		newJob(previewNamespace, "draft-1", "2s"),
		newJob(previewNamespace, "draft-2", "4s"),
		newJob(recentNamespace, scratch, "1s"),
	}
	for i := 1; i <= buildJobs; i++ {
		out = append(out, newJob(recentNamespace, fmt.Sprintf("build-%d", i), fmt.Sprintf("%ds", 2*i)))
	}
	for i := 1; i <= backlogJobs; i++ {
		out = append(out, newJob(backlogNamespace, fmt.Sprintf("old-%d", i), "1s"))
	}
	return out
}

// goOn creates Jobs from time to time, extends one Job just before it is due, shows candidates, and makes many Jobs due at once.
func (s *story) goOn(ctx context.Context, m *model, now time.Time) error {
	if s.nextJob.IsZero() {
		s.nextJob = now.Add(nextJobEvery)
	}
	if !now.Before(s.nextJob) {
		s.nextJob = now.Add(nextJobEvery)
		s.renders++
		if err := s.create(ctx, newJob(namespace, fmt.Sprintf("render-%d", s.renders), "3s")); err != nil {
			return err
		}
	}
	if m.extension == nil {
		return s.extend(ctx, m, now)
	}
	// Not earlier, because kubectl is slow, and the time for the extension is short.
	if err := s.explain(ctx, m, now); err != nil {
		return err
	}
	return s.sweep(ctx, m, now)
}

// explain shows the candidates of a namespace once the extension has had an effect. At that time they differ the most.
func (s *story) explain(ctx context.Context, m *model, now time.Time) error {
	if m.candidates != "" || now.Before(m.extension.due.Add(outlives)) {
		return nil
	}
	table, _, err := s.cluster.Kubectl(ctx, strings.Fields(strings.TrimPrefix(explainCommand, "kubectl "))...)
	if err != nil {
		return err
	}
	m.candidates = table
	m.tell(now, "%s shows what happens to each object, and why; add --output yaml for the whole explanation:", explainCommand)
	for line := range strings.Lines(table) {
		m.tell(now, "  %s", strings.TrimRight(line, " \n"))
	}
	return nil
}

// extend extends a Job just before it is due.
func (s *story) extend(ctx context.Context, m *model, now time.Time) error {
	due := m.nextDeletion(namespace, reportsPolicy)
	if due.IsZero() || now.Before(due.Add(-lastMoment)) {
		return nil
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, gc.AnnotationTTL, longerTTL)
	job, err := s.client.BatchV1().Jobs(namespace).Patch(ctx, extended, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	m.extend(job.UID, due, time.Now())
	return nil
}

// sweep creates the policy that makes many Jobs due at once, and approves its hold after a while.
func (s *story) sweep(ctx context.Context, m *model, now time.Time) error {
	if !s.swept {
		for _, o := range m.within(backlogNamespace) {
			if !o.fact.Finished || now.Before(o.fact.FinishedAt.Add(minTTL+time.Second)) {
				return nil
			}
		}
		s.swept = true
		return s.apply(ctx, sweepManifest, m, now)
	}
	holds := m.policy(backlogNamespace, sweep).Status.Holds
	switch {
	case len(holds) == 0 || m.approval != nil:
		return nil
	case s.approveAt.IsZero():
		s.approveAt = now.Add(heldShown)
		return nil
	case now.Before(s.approveAt):
		return nil
	}
	annotate := []string{
		"annotate",
		"--overwrite",
		"cleanuppolicies.gc.winnow.dev",
		sweep,
		"-n",
		backlogNamespace,
		gc.AnnotationApprovedHold + "=" + holds[0].ID,
	}
	m.approve(holds[0], "kubectl "+strings.Join(annotate, " "), now)
	_, _, err := s.cluster.Kubectl(ctx, annotate...)
	return err
}

func (s *story) create(ctx context.Context, job *batchv1.Job) error {
	_, err := s.client.BatchV1().Jobs(job.Namespace).Create(ctx, job, metav1.CreateOptions{})
	return err
}

// newJob returns a Job that runs for runFor on a node of kwok, and then completes.
func newJob(namespace, name, runFor string, change ...func(*batchv1.Job)) *batchv1.Job {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(0)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"test.winnow.dev/run-for": runFor}},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers:    []corev1.Container{{Name: "main", Image: "none"}},
				},
			},
		},
	}
	for _, f := range change {
		f(job)
	}
	return job
}
