// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

const admission = "../../artifacts/examples/admission/"

// TestAnnotationsNeedDelete applies the example to somebody who may write Jobs, Pods, ConfigMaps and Secrets, and later delete them too.
func TestAnnotationsNeedDelete(t *testing.T) {
	const ns, role, job, status = "annotations", "writer", "job/kept", "--subresource=status"
	kubectl(t, "create", "namespace", ns)
	kubectl(t, "create", "job", "-n", ns, "kept", "--image=any")
	kubectl(t, "annotate", "-n", ns, job, "gc.winnow.dev/keep-until=2030-01-01T00:00:00Z")
	if _, _, err := shared.KubectlStdin(t.Context(), pod("bound", "Never", "example.com/note"), "create", "-n", ns, "-f", "-"); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "create", "role", "-n", ns, role, "--verb=get,list,create,update,patch",
		"--resource=jobs.batch,jobs.batch/status,pods,pods/binding,configmaps,secrets")
	kubectl(t, "create", "rolebinding", "-n", ns, role, "--role="+role, "--user="+role)
	kubeconfig, err := shared.KubeconfigFor(role)
	if err != nil {
		t.Fatal(err)
	}
	as := func(stdin string, args ...string) error {
		_, _, err := shared.KubectlStdin(t.Context(), stdin, append(args, "-n", ns, "--kubeconfig", kubeconfig)...)
		return err
	}
	eventually(t, func() error { return as("", "annotate", "--overwrite", job, "gc.winnow.dev/ttl=1s") }) // once the role is known
	applyAdmission(t, "annotations-need-delete.yaml", func() error {
		return as("", "annotate", "--overwrite", "--dry-run=server", job, "gc.winnow.dev/ttl=2s")
	})
	forbidden := map[string]func() error{
		"set":    func() error { return as("", "annotate", "--overwrite", job, "gc.winnow.dev/ttl=7d") },
		"remove": func() error { return as("", "annotate", job, "gc.winnow.dev/keep-until-") },
		"status": func() error {
			return as("", "patch", job, status, "--type=merge", "-p", annotation("gc.winnow.dev/ttl", "7d"))
		},
		"bind": func() error {
			return as(binding("bound", ns), "create", "--raw", "/api/v1/namespaces/"+ns+"/pods/bound/binding", "-f", "-")
		},
		"create":      func() error { return as(pod("new", "Never", "gc.winnow.dev/ttl"), "create", "-f", "-") },
		"a ConfigMap": func() error { return as(annotated("ConfigMap"), "create", "-f", "-") },
		"a Secret":    func() error { return as(annotated("Secret"), "create", "-f", "-") },
	}
	for name, do := range forbidden {
		wantRefusal(t, name, do(), "you need permission to delete it: kubectl auth can-i delete ", " --namespace "+ns)
	}
	for name, err := range map[string]error{
		"another annotation": as("", "annotate", job, "example.com/note=mine"),
		"a label":            as("", "label", job, "note=mine"),
		"the status":         as("", "patch", job, status, "--type=merge", "-p", annotation("example.com/note", "theirs")),
		"a Pod":              as(pod("plain", "Never", "example.com/note"), "create", "-f", "-"),
	} {
		if err != nil {
			t.Errorf("%s was refused: %v", name, err)
		}
	}
	kubectl(t, "create", "role", "-n", ns, "deleter", "--verb=delete", "--resource=jobs.batch,pods,configmaps,secrets")
	kubectl(t, "create", "rolebinding", "-n", ns, "deleter", "--role=deleter", "--user="+role)
	for _, do := range forbidden {
		eventually(t, do)
	}
	if out := kubectl(t, "get", "-n", ns, "pod/bound", "-o", "jsonpath={.metadata.annotations}"); !strings.Contains(
		out,
		"gc.winnow.dev/ttl",
	) {
		t.Errorf("a binding writes no annotations, so the policy need not look at it: %s", out)
	}
}

// TestTTLOnWhatFinishes applies the example of KEP-592 to somebody with all rights.
func TestTTLOnWhatFinishes(t *testing.T) {
	const ns, ttl = "finishes", "gc.winnow.dev/ttl"
	kubectl(t, "create", "namespace", ns)
	create := func(manifest string, args ...string) error {
		_, _, err := shared.KubectlStdin(t.Context(), manifest, append(args, "create", "-n", ns, "-f", "-")...)
		return err
	}
	for _, manifest := range []string{pod("before", "Always", ttl), cronJob("before", ttl), pod("plain", "Always", "example.com/note")} {
		if err := create(manifest); err != nil {
			t.Fatal(err)
		}
	}
	applyAdmission(t, "ttl-on-what-finishes.yaml", func() error { return create(pod("always", "Always", ttl), "--dry-run=server") })
	_, _, annotated := shared.Kubectl(t.Context(), "annotate", "-n", ns, "pod/plain", ttl+"=1h")
	wantRefusal(t, "Pod, later", annotated, "restartPolicy Always")
	wantRefusal(t, "Pod", create(pod("always", "Always", ttl)), "restartPolicy Always")
	wantRefusal(t, "Job", create(job("template", ttl)), "set it on the Job")
	wantRefusal(t, "CronJob", create(cronJob("template", ttl)), "set it on the Job")
	for _, manifest := range []string{pod("never", "Never", ttl), job("keep", "gc.winnow.dev/keep-until"), cronJob("keep", "example.com/note")} {
		if err := create(manifest); err != nil {
			t.Error(err)
		}
	}
	for _, old := range []string{"pod/before", "cronjob/before"} {
		kubectl(t, "label", "-n", ns, old, "note=mine")
	}
	kubectl(t, "annotate", "-n", ns, "job/keep", ttl+"=1h")
}

// applyAdmission returns once try is refused, and takes the policy away when the test ends.
func applyAdmission(t *testing.T, file string, try func() error) {
	t.Helper()
	kubectl(t, "apply", "--validate=strict", "-f", admission+file)
	t.Cleanup(func() {
		if _, _, err := shared.Kubectl(context.WithoutCancel(t.Context()), "delete", "-f", admission+file); err != nil {
			t.Error(err)
		}
	})
	eventually(t, func() error {
		if err := try(); err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			return fmt.Errorf("%s does not refuse yet: %v", file, err)
		}
		return nil
	})
}

func wantRefusal(t *testing.T, name string, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: got %v, want a refusal with %q", name, err, part)
		}
	}
}

func annotation(key, value string) string {
	return fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, key, value)
}

func pod(name, restartPolicy, annotation string) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q, "annotations": {%q: "1h"}},
		"spec": {"restartPolicy": %q, "schedulerName": "none", "containers": [{"name": "main", "image": "any"}]}}`, name, annotation, restartPolicy)
}

// annotated is an object of a kind of the core group without a spec.
func annotated(kind string) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": %q, "metadata": {"name": "new", "annotations": {"gc.winnow.dev/ttl": "1h"}}}`, kind)
}

// binding gives the Pod an annotation along with a Node.
func binding(pod, ns string) string {
	return fmt.Sprintf(
		`{"apiVersion": "v1", "kind": "Binding", "metadata": {"name": %q, "namespace": %q, "annotations": {"gc.winnow.dev/ttl": "1h"}},
		"target": {"apiVersion": "v1", "kind": "Node", "name": "anywhere"}}`,
		pod,
		ns,
	)
}

// template of a Job, whose Pods have an annotation.
func template(annotation string) string {
	return fmt.Sprintf(`{"template": {"metadata": {"annotations": {%q: "2030-01-01T00:00:00Z"}},
		"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "any"}]}}}`, annotation)
}

func job(name, annotation string) string {
	return fmt.Sprintf(`{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": %q}, "spec": %s}`, name, template(annotation))
}

func cronJob(name, annotation string) string {
	return fmt.Sprintf(`{"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": %q},
		"spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": %s}}}`, name, template(annotation))
}
