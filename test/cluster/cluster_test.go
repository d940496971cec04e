// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/winnow-dev/winnow/test/internal/testmain"
)

// whole is the one whole cluster that tests share; storageOnly is for those that break something.
var (
	whole       *Cluster
	storageOnly = []string{Etcd, APIServer}
)

// orphanDir makes this test program start a cluster in that folder, say so, and wait to be killed.
const orphanDir = "WINNOW_TEST_ORPHAN_DIR"

func TestMain(m *testing.M) {
	testmain.Run(m, testMain)
}

func testMain(ctx context.Context, m *testing.M) (code int, err error) {
	if dir := os.Getenv(orphanDir); dir != "" {
		return 0, waitToBeKilled(dir)
	}
	if whole, err = Start(ctx, Options{}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, whole.Stop()) }()
	return m.Run(), nil
}

func TestJobsRunToTheirEnd(t *testing.T) {
	t.Parallel()
	client := clientFor(t, whole)
	jobs := client.BatchV1().Jobs(newNamespace(t, client))
	for name, made := range map[string]struct {
		meta    metav1.ObjectMeta
		command []string
	}{
		"succeeds": {},
		"true":     {command: []string{"true"}},
		"fails":    {meta: metav1.ObjectMeta{Labels: map[string]string{"test.winnow.dev/outcome": "Failed"}}},
		"false":    {command: []string{"false"}},
		"slow":     {meta: metav1.ObjectMeta{Annotations: map[string]string{"test.winnow.dev/run-for": "3s"}}},
		"runs":     {meta: metav1.ObjectMeta{Annotations: map[string]string{"test.winnow.dev/run-for": "forever"}}},
		"sleeps":   {command: []string{"sleep", "infinity"}},
	} {
		job := newJob(name, made.meta)
		job.Spec.Template.Spec.Containers[0].Command = made.command
		if _, err := jobs.Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]batchv1.JobConditionType{
		"succeeds": batchv1.JobComplete, "true": batchv1.JobComplete, "fails": batchv1.JobFailed, "false": batchv1.JobFailed,
		"slow": batchv1.JobComplete,
	} {
		eventually(t, fmt.Sprintf("job %s is %s", name, want), func(ctx context.Context) error {
			job, err := jobs.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			return hasCondition(job, want)
		})
	}
	slow, err := jobs.Get(t.Context(), "slow", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if ran := slow.Status.CompletionTime.Sub(slow.Status.StartTime.Time); ran < 3*time.Second {
		t.Errorf("run-for: 3s: the job ran for %s", ran)
	}
	for _, name := range []string{"runs", "sleeps"} {
		runs, err := jobs.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if runs.Status.Active != 1 || len(runs.Status.Conditions) > 0 {
			t.Errorf("%s: got status %+v", name, runs.Status)
		}
	}
}

func TestPodsEndAndGo(t *testing.T) {
	t.Parallel()
	client := clientFor(t, whole)
	pods := client.CoreV1().Pods(newNamespace(t, client))
	spec := newJob("", metav1.ObjectMeta{}).Spec.Template.Spec
	fails := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "fails", Labels: map[string]string{"test.winnow.dev/outcome": "Failed"}},
		Spec:       spec,
	}
	serves := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "serves"}, Spec: spec}
	serves.Spec.RestartPolicy = corev1.RestartPolicyAlways
	for _, pod := range []*corev1.Pod{fails, serves} {
		if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "pod fails has failed, pod serves is running", func(ctx context.Context) error {
		var err error
		if fails, err = pods.Get(ctx, "fails", metav1.GetOptions{}); err != nil {
			return err
		}
		if serves, err = pods.Get(ctx, "serves", metav1.GetOptions{}); err != nil {
			return err
		}
		if fails.Status.Phase != corev1.PodFailed || serves.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("they are %s and %s", fails.Status.Phase, serves.Status.Phase)
		}
		return nil
	})
	end := fails.Status.ContainerStatuses[0].State.Terminated
	if end == nil || end.ExitCode != 1 || end.FinishedAt.IsZero() {
		t.Errorf("pod fails ended as %+v, want exit code 1 and a finish time", end)
	}
	for _, name := range []string{"fails", "serves"} {
		if err := pods.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "both pods are gone", func(ctx context.Context) error {
		list, err := pods.List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d pods left", len(list.Items))
		}
		return err
	})
}

func TestKubectlAsAdminAndAsUser(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, clientFor(t, whole))
	manifest := `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}`
	stdout, stderr, err := whole.KubectlStdin(t.Context(), manifest, "apply", "-n", namespace, "-f", "-")
	if err != nil || stdout != "configmap/c created\n" {
		t.Fatalf("apply: %q, %q, %v", stdout, stderr, err)
	}
	kubeconfig, err := whole.KubeconfigFor("jane", "developers")
	if err != nil {
		t.Fatal(err)
	}
	_, stderr, err = whole.Kubectl(t.Context(), "--kubeconfig", kubeconfig, "get", "configmaps", "-n", namespace)
	if err == nil || !strings.Contains(stderr, `User "jane" cannot list resource "configmaps"`) {
		t.Errorf("as jane: %q, %v", stderr, err)
	}
}

func TestAuditLogShowsHowSomethingWasDeleted(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, clientFor(t, whole))
	for _, contentType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		config := whole.RESTConfig()
		config.UserAgent = "audit-test " + contentType
		config.ContentType = contentType
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		job, err := client.BatchV1().Jobs(namespace).Create(t.Context(), newJob("j", metav1.ObjectMeta{}), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		background := metav1.DeletePropagationBackground
		if err := client.BatchV1().Jobs(namespace).Delete(t.Context(), "j", metav1.DeleteOptions{
			PropagationPolicy: &background, Preconditions: metav1.NewUIDPreconditions(string(job.UID)),
		}); err != nil {
			t.Fatal(err)
		}
		tail := whole.AuditTail(DeletesBy(config.UserAgent))
		var events []AuditEvent
		eventually(t, "the delete is in the audit log", func(context.Context) error {
			if events, err = tail.Next(); err == nil && len(events) != 1 {
				err = fmt.Errorf("%d events", len(events))
			}
			return err
		})
		if got := events[0].ObjectRef; got.Resource != "jobs" || got.Namespace != namespace || got.Name != "j" {
			t.Errorf("%s: deleted %+v", contentType, got)
		}
		options, err := DeleteOptions(&events[0])
		if err != nil {
			t.Fatal(err)
		}
		if options.Preconditions == nil || *options.Preconditions.UID != job.UID || *options.PropagationPolicy != background {
			t.Errorf("%s: delete options %+v", contentType, options)
		}
	}
}

func TestAPIServerComesBackAndSoDoesTheFolder(t *testing.T) {
	t.Parallel()
	options := Options{Dir: t.TempDir(), Components: storageOnly}
	c, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	client := clientFor(t, c)
	namespace := newNamespace(t, client)
	if err := c.StopComponent(APIServer); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{}); err == nil {
		t.Error("a killed API server still answers")
	}
	if err := c.StartComponent(t.Context(), APIServer); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{}); err != nil {
		t.Errorf("after the restart of the API server: %v", err)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if c, err = Start(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	if _, err := clientFor(t, c).CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{}); err != nil {
		t.Errorf("after a second start in the same folder: %v", err)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
}

func clientFor(t *testing.T, c *Cluster) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func newNamespace(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

// newJob has one Pod, with these labels and annotations, and does not try again.
func newJob(name string, pod metav1.ObjectMeta) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32),
			Template: corev1.PodTemplateSpec{ObjectMeta: pod, Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "main", Image: "none"}},
			}},
		},
	}
}

func hasCondition(job *batchv1.Job, want batchv1.JobConditionType) error {
	for _, condition := range job.Status.Conditions {
		if condition.Type == want && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("its conditions are %v", job.Status.Conditions)
}

func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	}); err != nil {
		t.Fatalf("%s: %v: %v", what, err, last)
	}
}
