// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/platforms"
	"github.com/winnow-dev/winnow/test/winnow"
)

// TestExamplesAtWork applies the examples, each in a separate namespace, to a Winnow that has the rights of these manifests and no others.
// It carries the policies out, deletes a Job, and is refused nothing.
func TestExamplesAtWork(t *testing.T) {
	server, err := winnow.Start(t.Context(), shared, winnow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	examples, err := filepath.Glob("../../artifacts/examples/*.yaml")
	if err != nil || len(examples) == 0 {
		t.Fatalf("found examples %q, error %v", examples, err)
	}
	defer serveWorkflows(t)()
	defer grantReferrers(t)()
	granted := time.Now() // What other tests left behind may have made Winnow ask before.
	for _, example := range examples {
		applyExample(t, example)
	}
	deleteOne(t)
	requests, err := shared.Audit(func(e *cluster.AuditEvent) bool {
		return e.User.Username == winnow.User && e.RequestReceivedTimestamp.After(granted)
	})
	if err != nil || len(requests) == 0 {
		t.Fatalf("found %d requests of Winnow, error %v", len(requests), err)
	}
	for _, e := range requests {
		if e.ResponseStatus != nil && e.ResponseStatus.Code == http.StatusForbidden {
			t.Errorf("Winnow was refused %s %s: %s", e.Verb, e.RequestURI, e.ResponseStatus.Message)
		}
	}
}

// serveWorkflows does what the example for Argo Workflows expects of a cluster. It returns a function that takes the permissions back, and
// before that the policy that needs them.
func serveWorkflows(t *testing.T) (undo func()) {
	t.Helper()
	client, err := dynamic.NewForConfig(shared.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	if err := platforms.Install(t.Context(), client, platforms.Workflows); err != nil {
		t.Fatal(err)
	}
	for command := range strings.SplitSeq(gc.GrantCommand(platforms.Workflows.Name()), " && ") {
		kubectl(t, strings.Fields(command)[1:]...)
	}
	becomes := func(granted bool) {
		eventually(t, func() error { // Kubernetes aggregates roles with a delay.
			if has := verbs(t, "winnow", "default", platforms.Workflows.Group, platforms.Workflows.Plural); (has != "") != granted {
				return fmt.Errorf("it may %q workflows", has)
			}
			return nil
		})
	}
	becomes(true)
	return func() {
		kubectl(t, "delete", "namespace", "example-workflows")
		kubectl(t, "delete", "clusterrole", "winnow:"+platforms.Workflows.Name())
		becomes(false)
	}
}

// grantReferrers gives Winnow what the example for unused ConfigMaps and Secrets needs. It returns a function that takes the permissions
// back, and before that the policy that needs them.
func grantReferrers(t *testing.T) (undo func()) {
	t.Helper()
	const referrers, role = "../../artifacts/optional/referrers.yaml", "winnow:configuration"
	kubectl(t, "apply", "-f", referrers)
	kubectl(t, "create", "clusterrole", role, "--verb=get,list,watch,delete", "--resource=configmaps,secrets")
	kubectl(t, "label", "clusterrole", role, gc.LabelAggregate+"=true")
	becomes := func(want string) {
		eventually(t, func() error { // Kubernetes aggregates roles with a delay.
			if has := verbs(t, "winnow", "default", "", "secrets"); has != want {
				return fmt.Errorf("it may %q Secrets, want %q", has, want)
			}
			return nil
		})
	}
	becomes("get list watch delete")
	return func() {
		kubectl(t, "delete", "namespace", "example-unused")
		kubectl(t, "delete", "-f", referrers)
		kubectl(t, "delete", "clusterrole", role)
		becomes("")
	}
}

// applyExample is warned of nothing, sees that the policy is carried out, and that it is stored as written. A cluster policy is
// taken away again, since it would bind the other examples.
func applyExample(t *testing.T, file string) {
	t.Helper()
	name, kind := strings.TrimSuffix(filepath.Base(file), ".yaml"), "cleanuppolicies"
	ns := "example-" + name
	kubectl(t, "create", "namespace", ns)
	_, warnings, err := shared.Kubectl(t.Context(), "apply", "--validate=strict", "-n", ns, "-f", file)
	if err != nil || warnings != "" {
		t.Fatalf("%s: error %v, warned about:\n%s", file, err, warnings)
	}
	if strings.HasPrefix(name, "cluster-") {
		kind = "clustercleanuppolicies"
		defer kubectl(t, "delete", "-f", file)
	}
	kubectl(t, "wait", "-n", ns, "--for=condition=Ready", "--timeout=5m", kind, "--all")
	if out := kubectl(t, "diff", "-n", ns, "-f", file); out != "" {
		t.Errorf("%s differs from what is stored:\n%s", file, out)
	}
}

// deleteOne lets Winnow delete a Job and tell of it in an event.
func deleteOne(t *testing.T) {
	t.Helper()
	const ns = "deletes"
	kubectl(t, "create", "namespace", ns)
	if out, stderr, err := shared.KubectlStdin(t.Context(), `{"apiVersion": "gc.winnow.dev/v1alpha1", "kind": "CleanupPolicy",
		"metadata": {"name": "at-once"}, "spec": {"ttlAfterFinished": "0s"}}`, "apply", "-n", ns, "-f", "-"); err != nil {
		t.Fatalf("%v\n%s%s", err, out, stderr)
	}
	kubectl(t, "create", "job", "-n", ns, "done", "--image=any")
	eventually(t, func() error {
		_, err := client.BatchV1().Jobs(ns).Get(t.Context(), "done", metav1.GetOptions{})
		if err == nil {
			return errors.New("the Job is still there")
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
		events, err := client.EventsV1().Events(ns).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Regarding.Kind == "CleanupPolicy" {
				return nil
			}
		}
		return fmt.Errorf("no event on the policy among %d", len(events.Items))
	})
}
