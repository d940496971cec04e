// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package synthetic

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"

	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

var (
	namespaces = []string{"team-a", "team-b", "team-c"}
	finished   = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
)

// start starts a Server with n Jobs in front of one that answers everything with its path, and returns a client by its
// kubeconfig.
func start(t *testing.T, n int) (*Server, kubernetes.Interface) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) }))
	t.Cleanup(upstream.Close)
	certPEM, keyPEM, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile, kubeconfig := filepath.Join(dir, "cert"), filepath.Join(dir, "key"), filepath.Join(dir, "kubeconfig")
	for file, content := range map[string][]byte{certFile: certPEM, keyFile: keyPEM} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := New(Options{
		Upstream: &rest.Config{Host: upstream.URL}, CertFile: certFile, KeyFile: keyFile, Namespaces: namespaces, Finished: finished,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	s.Reset(n)
	if err := s.WriteKubeconfig(kubeconfig, certPEM); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.ContentType, config.QPS = runtime.ContentTypeProtobuf, -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return s, client
}

func TestJobsAreAsLargeAsRealOnes(t *testing.T) {
	g := newGenerator(namespaces, finished, nil)
	uids := sets.New[types.UID]()
	for number := range 1000 {
		job := g.make(number, version{})
		text, err := json.Marshal(job)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) < 3000 || len(text) > 5000 {
			t.Fatalf("Job %d has %d bytes: %s", number, len(text), text)
		}
		if len(job.Name) != 24 || numberOf(job.Name) != number {
			t.Errorf("Job %d is called %q, which is Job %d", number, job.Name, numberOf(job.Name))
		}
		if job.Status.CompletionTime.After(finished) || !job.Status.StartTime.Before(job.Status.CompletionTime) {
			t.Errorf("Job %d ran from %v to %v", number, job.Status.StartTime, job.Status.CompletionTime)
		}
		uids.Insert(job.UID)
	}
	if len(uids) != 1000 {
		t.Errorf("%d UIDs", len(uids))
	}
}

func TestListComesInPages(t *testing.T) {
	const n = 20
	for namespace, want := range map[string]int{"": n, "team-a": 7, "team-c": 6, "elsewhere": 0} {
		_, client := start(t, n)
		seen := sets.New[string]()
		options := metav1.ListOptions{Limit: 4}
		for {
			page, err := client.BatchV1().Jobs(namespace).List(t.Context(), options)
			if err != nil {
				t.Fatal(err)
			}
			for i := range page.Items {
				seen.Insert(page.Items[i].Namespace + "/" + page.Items[i].Name)
			}
			if options.Continue = page.Continue; options.Continue == "" {
				break
			}
			if len(page.Items) != 4 {
				t.Errorf("%q: a page of %d", namespace, len(page.Items))
			}
		}
		if len(seen) != want {
			t.Errorf("%q: %d Jobs, not %d", namespace, len(seen), want)
		}
	}
}

func TestInformerFollows(t *testing.T) {
	const n = 500
	s, client := start(t, n)
	jobs := informers.NewSharedInformerFactory(client, 0).Batch().V1().Jobs()
	informer := jobs.Informer()
	go informer.RunWithContext(t.Context())
	holds := func(what string, condition func() bool) {
		t.Helper()
		err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 5*time.Minute, true, func(context.Context) (bool, error) {
			return condition(), nil
		})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	known := func(number int) *batchv1.Job {
		job, err := jobs.Lister().Jobs(namespaces[number%len(namespaces)]).Get(name(number))
		if err != nil {
			return nil
		}
		return job
	}
	holds("all are listed", func() bool { return informer.HasSynced() && len(informer.GetStore().ListKeys()) == n })
	s.Modify(7, map[string]string{"note": "first"})
	holds("a change is told", func() bool { return known(7).Annotations["note"] == "first" })
	s.Expire()
	s.Modify(7, map[string]string{"note": "second"})
	holds("a change is listed after the watch has ended", func() bool { return known(7).Annotations["note"] == "second" })

	job := known(7)
	stale, right := "1", job.ResourceVersion
	err := client.BatchV1().Jobs(job.Namespace).Delete(t.Context(), job.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &job.UID, ResourceVersion: &stale},
	})
	if !apierrors.IsConflict(err) || !s.DeletedAt(7).IsZero() {
		t.Errorf("deleted from an older state: %v", err)
	}
	if got, err := client.BatchV1().Jobs(job.Namespace).Get(t.Context(), job.Name, metav1.GetOptions{}); err != nil || got.UID != job.UID {
		t.Errorf("got %v, %v", got, err)
	}
	err = client.BatchV1().Jobs(job.Namespace).Delete(t.Context(), job.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &job.UID, ResourceVersion: &right},
	})
	if err != nil || s.DeletedAt(7).IsZero() || s.Deletions() != 1 {
		t.Errorf("deleted from the last state: %v, %d deletions", err, s.Deletions())
	}
	holds("it is gone", func() bool { return known(7) == nil && len(informer.GetStore().ListKeys()) == n-1 })
	if _, err = client.BatchV1().Jobs(job.Namespace).Get(t.Context(), job.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got what is gone: %v", err)
	}
}

func TestOthersAreAnsweredBehind(t *testing.T) {
	_, client := start(t, 1)
	const path = "/apis/batch/v1/namespaces/team-a/cronjobs"
	answer, err := client.Discovery().RESTClient().Get().AbsPath(path).DoRaw(t.Context())
	if err != nil || string(answer) != path {
		t.Errorf("got %q, %v", answer, err)
	}
}

func BenchmarkStream(b *testing.B) {
	out := &stream{out: bufio.NewWriter(io.Discard), generator: newGenerator(namespaces, finished, nil)}
	b.ReportAllocs()
	for number := 0; b.Loop(); number++ {
		if err := out.job(watch.Added, number, version{}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestJobsAreAsInClusters: most belong to a CronJob, whose name and minute are in their name, the others have their own labels.
func TestJobsAreAsInClusters(t *testing.T) {
	cronJobs := map[string]map[string]types.UID{}
	for _, namespace := range namespaces {
		cronJobs[namespace] = map[string]types.UID{}
		for _, app := range Apps() {
			cronJobs[namespace][app] = types.UID(namespace + "/" + app)
		}
	}
	g := newGenerator(namespaces, finished, cronJobs)
	owned := 0
	for number := range 1000 {
		job := g.make(number, version{annotations: map[string]string{"of": "this one"}})
		fact, err := lifecycle.FromJob(job)
		if err != nil {
			t.Fatal(err)
		}
		if job.Annotations["of"] != "this one" || numberOf(job.Name) != number {
			t.Fatalf("%s is not number %d, or lacks an annotation: %v", job.Name, number, job.Annotations)
		}
		if fact.Controller == nil {
			if job.Labels[batchv1.JobNameLabel] != job.Name {
				t.Fatalf("%s is not labelled with its own name: %v", job.Name, job.Labels)
			}
			continue
		}
		owned++
		if want := fmt.Sprintf("%s-%d", fact.Controller.Name, fact.Scheduled.Unix()/60); job.Name != want {
			t.Fatalf("%s should be %s by its CronJob and time", job.Name, want)
		}
	}
	if owned != 750 {
		t.Errorf("%d of 1000 Jobs belong to CronJobs, want 750", owned)
	}
}
