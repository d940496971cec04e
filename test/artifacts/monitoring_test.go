// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/test/jobs"
	"github.com/winnow-dev/winnow/test/programs"
	"github.com/winnow-dev/winnow/test/winnow"
)

const (
	monitoring = "../../artifacts/monitoring/"
	// prometheus is who scrapes, by rbac.yaml.
	prometheus = "system:serviceaccount:monitoring:prometheus-k8s"
)

var (
	scrapeFor = flag.Duration("scrape-for", 15*time.Second, "for how long TestMonitoring scrapes Winnow while it deletes")
	drawTo    = flag.String("draw", "", "file that TestMonitoring draws the dashboard to")
)

// monitored are policies that delete for every reason, keep, and hold.
const monitored = `
apiVersion: gc.winnow.dev/v1alpha1
kind: CleanupPolicy
metadata: {name: ci, namespace: monitored}
spec:
  ttlAfterFinished: 3s
  rules:
  - {name: kept, selector: {matchLabels: {kind: kept}}, ttl: never}
  - {name: waits, selector: {matchLabels: {kind: waits}}, ttl: 1h}
  - {name: few, selector: {matchLabels: {kind: few}}, ttl: 1h, capacity: {maxObjects: 5, minAge: 2s}}
  - {name: limited, resources: [jobs.batch], selector: {matchLabels: {kind: limited}}, activeDeadline: 6s}
  - {name: created, resources: [jobs.batch], selector: {matchLabels: {kind: created}}, after: Created, ttl: 5s}
---
apiVersion: gc.winnow.dev/v1alpha1
kind: CleanupPolicy
metadata: {name: preview, namespace: monitored}
spec: {mode: Preview, ttlAfterFinished: 1h}
---
apiVersion: gc.winnow.dev/v1alpha1
kind: ClusterCleanupPolicy
metadata: {name: monitored}
spec:
  mode: Enforce
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitored-waits}}
  guardrails: {holdAbove: {objects: 10}}
---
apiVersion: gc.winnow.dev/v1alpha1
kind: CleanupPolicy
metadata: {name: too-short, namespace: monitored-waits}
spec: {ttlAfterFinished: 0s}
`

// TestMonitoring scrapes Winnow and kube-apiserver while Winnow deletes, as the user that rbac.yaml names. Then Prometheus must answer each query
// of the dashboard and evaluate each rule.
func TestMonitoring(t *testing.T) {
	checker := filepath.Join(t.TempDir(), "monitoring")
	if out, err := programs.GoCommand(t.Context(), "build", "-C", "../monitoring", "-o", checker, ".").CombinedOutput(); err != nil {
		t.Fatalf("building test/monitoring: %v\n%s", err, out)
	}
	// Only a Winnow that registers itself says whether kube-apiserver reaches it.
	server, err := winnow.Start(t.Context(), shared, winnow.Options{Replicas: 2, Register: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	}()
	kubectl(t, "apply", "-f", monitoring+"rbac.yaml")
	kubectl(t, "create", "namespace", "monitored")
	kubectl(t, "create", "namespace", "monitored-waits")
	w := workload{t}
	for i := range 15 {
		w.finish("monitored-waits", fmt.Sprint("waits-", i), "")
	}
	if _, stderr, err := shared.KubectlStdin(t.Context(), monitored, "apply", "-f", "-"); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	eventually(t, func() error { return leads(t, server) }) // A replica of another test may have the lease for some time.
	scrapes := w.scrape(server)
	out, err := exec.CommandContext(t.Context(), checker, "--scrapes", scrapes, "--dashboard", monitoring+"dashboard.json",
		"--rules", monitoring+"rules.yaml", "--draw", *drawTo).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	kubectl(t, "delete", "namespace", "monitored", "monitored-waits", "--wait=false")
}

// leads returns an error unless one of the replicas leads.
func leads(t *testing.T, server *winnow.Server) error {
	t.Helper()
	for _, r := range server.Replicas {
		text, err := r.Get(t.Context(), "/metrics")
		if err != nil {
			return err
		}
		if strings.Contains(text, "\nwinnow_leading 1\n") {
			return nil
		}
	}
	return errors.New("no replica leads")
}

// workload makes Jobs that finish at once.
type workload struct{ *testing.T }

// scrape makes Jobs and scrapes the servers, for as long as scrapeFor says, and returns the folder with their answers.
func (w workload) scrape(server *winnow.Server) string {
	folder := w.TempDir()
	user, err := shared.UserConfig(prometheus)
	if err != nil {
		w.Fatal(err)
	}
	w.special()
	every := max(500*time.Millisecond, *scrapeFor/120)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	start := time.Now()
	for now := start; now.Sub(start) < *scrapeFor; now = <-ticker.C {
		write := func(job, instance, text string, err error) {
			name := fmt.Sprintf("%d_%s_%s", now.UnixMilli(), job, instance)
			if err := errors.Join(err, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600)); err != nil {
				w.Fatal(err)
			}
		}
		for _, r := range server.Replicas {
			text, err := r.GetAs(w.Context(), user, "/metrics")
			write("winnow", r.Name, text, err)
		}
		text, err := w.aggregator()
		write("apiserver", "kube-apiserver", text, err)
		// The load comes in waves, so that graphs show something.
		part := float64(now.Sub(start)) / float64(*scrapeFor)
		for i := range int(every.Seconds()*4*(1.2-math.Cos(6*math.Pi*part))) + 1 {
			kind := []string{"", "few", "native", "created", ""}[i%5]
			w.finish("monitored", fmt.Sprintf("%d-%d", now.UnixMilli(), i), kind)
		}
	}
	return folder
}

// aggregator returns the metrics of kube-apiserver about APIServices.
func (w workload) aggregator() (string, error) {
	all, err := client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(w.Context())
	var out strings.Builder
	for line := range strings.Lines(string(all)) {
		if strings.HasPrefix(line, "aggregator_") {
			out.WriteString(line)
		}
	}
	return out.String(), err
}

// special makes Jobs that are not simply deleted, and some that have a deadline as if Winnow had set it, so that Winnow needs no right to.
func (w workload) special() {
	for i := range 5 {
		j := jobs.New(fmt.Sprint("limited-", i))
		j.Labels, j.Annotations = map[string]string{"kind": "limited"}, map[string]string{"gc.winnow.dev/active-deadline-seconds": "6"}
		j.Spec.ManagedBy, j.Spec.ActiveDeadlineSeconds = nil, new(int64(6))
		j.Spec.Template.Annotations = map[string]string{"test.winnow.dev/run-for": "forever"}
		if _, err := client.BatchV1().Jobs("monitored").Create(w.Context(), j, metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
	}
	w.finish("monitored", "malformed", "", func(j *batchv1.Job) { j.Annotations = map[string]string{"gc.winnow.dev/ttl": "?"} })
	w.finish("monitored", "final", "", func(j *batchv1.Job) { j.Finalizers = []string{"test.winnow.dev/stays"} })
	for i := range 8 {
		w.finish("monitored", fmt.Sprint("kept-", i), "kept")
		w.finish("monitored", fmt.Sprint("waits-", i), "waits")
	}
	w.Cleanup(func() {
		_, stderr, err := shared.Kubectl(context.Background(), "patch", "job", "final", "-n", "monitored", "--type=merge",
			`--patch={"metadata": {"finalizers": null}}`)
		if err != nil {
			w.Errorf("%v: %s", err, stderr)
		}
	})
}

// finish creates a Job of a kind and lets it finish.
func (w workload) finish(ns, name, kind string, change ...func(*batchv1.Job)) {
	w.Helper()
	j := jobs.New(name)
	j.Labels = map[string]string{"kind": kind}
	if kind == "native" {
		j.Spec.TTLSecondsAfterFinished = new(int32(2))
	}
	for _, f := range change {
		f(j)
	}
	j, err := client.BatchV1().Jobs(ns).Create(w.Context(), j, metav1.CreateOptions{})
	if err == nil {
		j.Status = jobs.Complete(time.Now())
		_, err = client.BatchV1().Jobs(ns).UpdateStatus(w.Context(), j, metav1.UpdateOptions{})
	}
	if err != nil {
		w.Fatal(err)
	}
}
