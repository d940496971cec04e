// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	policies = "storedcleanuppolicies.internal.gc.winnow.dev"
	binding  = "validatingadmissionpolicybinding/storage.internal.gc.winnow.dev"
)

// release is a release of the chart, and what must outlive it.
type release struct {
	*testing.T
	policy   string // UID and resource version of a stored policy
	now, old installed
}

// installed is what a version of the chart installs.
type installed struct {
	version string
	storage int // the revision of the storage
}

func newRelease(t *testing.T) *release {
	t.Helper()
	helpers, err := os.ReadFile(filepath.Join(chart, "templates/_helpers.tpl"))
	if err != nil {
		t.Fatal(err)
	}
	r := &release{T: t, now: installed{version: chartVersion(t)}, old: installed{version: "0.0.9"}}
	if found := storageRevision.FindSubmatch(helpers); found != nil {
		r.now.storage, err = strconv.Atoi(string(found[1]))
	}
	if r.now.storage == 0 || err != nil {
		t.Fatalf("found no revision of the storage: %v", err)
	}
	r.old.storage = r.now.storage - 1
	t.Cleanup(r.clean)
	return r
}

var storageRevision = regexp.MustCompile(`internal\.gc\.winnow\.dev/revision: "(\d+)"`)

// TestLifecycle installs the chart's previous version, upgrades, rolls back, uninstalls and installs again. The stored policies stay as they
// are, and only Winnow may write them. The previous version is this chart with a lower version and an older storage.
func TestLifecycle(t *testing.T) {
	r := newRelease(t)
	previous := r.previousChart()

	notes := helm(t, "install", "winnow", previous, "--namespace", namespace, "--create-namespace", "--set=podAnnotations.from=previous")
	for _, want := range []string{"Winnow v0.0.9 is installed in namespace winnow-system", "WARNING: image.repository is still the placeholder"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not say %q:\n%s", want, notes)
		}
	}
	r.wantDeployed(r.old, 2)
	r.wantNamespacesGo()
	r.store()

	helm(t, "upgrade", "winnow", chart, "--namespace", namespace, "--reset-then-reuse-values", "--set=replicas=3,startSuspended=true")
	r.wantDeployed(r.now, 3)
	helm(t, "rollback", "winnow", "1", "--namespace", namespace)
	r.wantDeployed(r.old, 2)
	helm(t, "upgrade", "winnow", chart, "--namespace", namespace, "--reset-then-reuse-values")
	r.wantDeployed(r.now, 2)

	r.wantSecondRefused()
	said := helm(t, "uninstall", "winnow", "--namespace", namespace)
	if !strings.Contains(said, "These resources were kept due to the resource policy:") {
		t.Errorf("the uninstall does not say what it kept:\n%s", said)
	}
	r.wantGone()
	r.wantPolicies()
	r.wantNamespacesGo()

	helm(t, "install", "winnow", chart, "--namespace", namespace)
	r.wantDeployed(r.now, 2)
	helm(t, "uninstall", "winnow", "--namespace", namespace)
	kubectl(t, "delete", "-f", artifacts+"storage/")
	if left := kubectl(t, "get", "crd", "-o", "name"); strings.Contains(left, "winnow") {
		t.Errorf("left after the documented last command:\n%s", left)
	}
}

// TestTakeOwnership: who installed with kubectl can go on with Helm, and loses no policy.
func TestTakeOwnership(t *testing.T) {
	r := newRelease(t)
	kubectl(t, "apply", "-k", artifacts+"all")
	r.store()
	install := []string{"install", "winnow", chart, "--namespace", namespace}
	if _, stderr, err := tryHelm(t, install...); err == nil || !strings.Contains(stderr, "cannot be imported into the current release") {
		t.Errorf("without the flag: %v\n%s", err, stderr)
	}
	r.wantPolicies()
	const optional = "--values=testdata/values/optional.yaml"
	helm(t, append(install, "--take-ownership", "--force-conflicts", "--set=replicas=3", optional)...)
	r.wantDeployed(r.now, 3)
	r.wantAggregated()
	helm(t, "upgrade", "winnow", chart, "--namespace", namespace, optional) // the controller of ClusterRoles has written into one meanwhile
	r.wantAggregated()
	helm(t, "uninstall", "winnow", "--namespace", namespace)
	r.wantGone()
	r.wantPolicies()
}

// TestOnlyStorageFromKubectl: an administrator may install the storage, and Helm the rest.
func TestOnlyStorageFromKubectl(t *testing.T) {
	r := newRelease(t)
	kubectl(t, "apply", "-f", artifacts+"storage/")
	helm(t, "install", "winnow", chart, "--namespace", namespace, "--create-namespace", "--set=storage=false")
	r.store()
	// Later, Helm takes the storage over.
	helm(t, "upgrade", "winnow", chart, "--namespace", namespace, "--take-ownership", "--force-conflicts")
	r.wantDeployed(r.now, 2)
	// Values without the storage remove it from the release, and not from the cluster.
	helm(t, "upgrade", "winnow", chart, "--namespace", namespace, "--set=storage=false")
	r.wantDeployed(r.now, 2)
}

// previousChart is a copy with a lower version, whose storage is older.
func (r *release) previousChart() string {
	r.Helper()
	dir := filepath.Join(r.TempDir(), "winnow")
	if err := os.CopyFS(dir, os.DirFS(chart)); err != nil {
		r.Fatal(err)
	}
	revision := func(of installed) string { return fmt.Sprintf(`revision: "%d"`, of.storage) }
	for file, change := range map[string][2]string{
		"Chart.yaml":             {r.now.version, r.old.version},
		"templates/_helpers.tpl": {revision(r.now), revision(r.old)},
	} {
		path := filepath.Join(dir, file)
		content, err := os.ReadFile(path)
		if err != nil {
			r.Fatal(err)
		}
		changed := strings.ReplaceAll(string(content), change[0], change[1])
		if changed == string(content) {
			r.Fatalf("%s does not contain %s", file, change[0])
		}
		writeFile(r.T, path, changed)
	}
	return dir
}

// wantDeployed checks what is in the cluster, and the stored policy if there is one.
func (r *release) wantDeployed(want installed, replicas int) {
	r.Helper()
	revision := strconv.Itoa(want.storage)
	for _, object := range []string{"crd/" + policies, "validatingadmissionpolicy/storage.internal.gc.winnow.dev", binding} {
		if got := kubectl(r.T, "get", object, "-o", `jsonpath={.metadata.annotations.internal\.gc\.winnow\.dev/revision}`); got != revision {
			r.Errorf("%s has revision %s, want %s", object, got, revision)
		}
	}
	got := kubectl(r.T, "get", "deployment", "winnow", "-n", namespace, "-o",
		`jsonpath={.metadata.labels.helm\.sh/chart} {.spec.replicas} {.spec.template.spec.containers[0].image}`)
	version := want.version
	if want := fmt.Sprintf("winnow-%s %d registry.example.com/winnow-apiserver:v%s", version, replicas, version); got != want {
		r.Errorf("the Deployment is %q, want %q", got, want)
	}
	if r.policy != "" {
		r.wantPolicies()
	}
}

// store writes a policy as Winnow does.
func (r *release) store() {
	r.Helper()
	kubeconfig, err := shared.KubeconfigFor("system:serviceaccount:"+namespace+":winnow", "system:serviceaccounts",
		"system:serviceaccounts:"+namespace)
	if err != nil {
		r.Fatal(err)
	}
	kubectl(r.T, "create", "namespace", "team-a")
	const manifest = `{"apiVersion": "internal.gc.winnow.dev/v1alpha1", "kind": "StoredCleanupPolicy",
		"metadata": {"name": "kept", "namespace": "team-a"}, "payload": "{}"}`
	r.eventually(func() error { // the API server reads roles and custom resources with a delay
		_, _, err := shared.KubectlStdin(r.Context(), manifest, "create", "--kubeconfig", kubeconfig, "-f", "-")
		return err
	})
	r.policy = r.stored()
}

func (r *release) stored() string {
	r.Helper()
	return kubectl(r.T, "get", policies, "kept", "-n", "team-a", "-o", "jsonpath={.metadata.uid} {.metadata.resourceVersion}")
}

// wantPolicies checks that the stored policy is as it was, and that nobody else may write it.
func (r *release) wantPolicies() {
	r.Helper()
	if got := r.stored(); got != r.policy {
		r.Errorf("the stored policy is %q, want %q", got, r.policy)
	}
	r.eventually(func() error { // an admission policy takes a moment
		_, _, err := shared.Kubectl(r.Context(), "patch", policies, "kept", "-n", "team-a", "--type=merge", `--patch={"payload": "{ }"}`,
			"--dry-run=server")
		if err == nil || !strings.Contains(err.Error(), "written by Winnow alone") {
			return fmt.Errorf("writing a stored policy as somebody else: %w", errors.Join(err, errors.New("want a refusal")))
		}
		return nil
	})
}

// wantAggregated waits until Kubernetes has filled in the rules of optional.moreResources.
func (r *release) wantAggregated() {
	r.Helper()
	r.eventually(func() error {
		rules, _, err := shared.Kubectl(r.Context(), "get", "clusterrole", "winnow:aggregated", "-o", "jsonpath={.rules}")
		if err == nil && !strings.Contains(rules, `"verbs":["list","watch"]`) {
			err = fmt.Errorf("the aggregated rules are %s", rules)
		}
		return err
	})
}

// wantNamespacesGo: whatever the state of Winnow, namespaces can be deleted.
func (r *release) wantNamespacesGo() {
	r.Helper()
	kubectl(r.T, "create", "namespace", "beside")
	kubectl(r.T, "delete", "namespace", "beside", "--timeout=5m")
}

// wantSecondRefused: a cluster has one Winnow.
func (r *release) wantSecondRefused() {
	r.Helper()
	const want = `Winnow is already installed in this cluster, as release "winnow" in namespace "winnow-system". A cluster has one Winnow`
	for name, where := range map[string]string{"winnow": "elsewhere", "second": namespace} {
		_, stderr, err := tryHelm(r.T, "install", name, chart, "--namespace", where, "--create-namespace")
		if err == nil || !strings.Contains(stderr, want) {
			r.Errorf("a release %s in namespace %s: %v\n%s", name, where, err, stderr)
		}
	}
}

// wantGone: an uninstall leaves the storage alone.
func (r *release) wantGone() {
	r.Helper()
	left := kubectl(r.T, "get", "clusterroles,clusterrolebindings,roles,rolebindings,serviceaccounts,services,deployments,poddisruptionbudgets,"+
		"resourcequotas,networkpolicies,priorityclasses,flowschemas", "--all-namespaces", "-l", "app.kubernetes.io/part-of=winnow", "-o", "name")
	if left != "" {
		r.Errorf("left after the uninstall:\n%s", left)
	}
	kubectl(r.T, "get", "-f", artifacts+"storage/")
}

// clean removes everything for the next test, whatever is there.
func (r *release) clean() {
	var group errgroup.Group
	for _, args := range [][]string{
		{"-k", artifacts + "all"},
		{"namespace", "team-a", "elsewhere", "beside", namespace},
	} {
		group.Go(func() error {
			args = append([]string{"delete", "--ignore-not-found", "--timeout=5m"}, args...)
			_, _, err := shared.Kubectl(context.Background(), args...)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		r.Error(err)
	}
}

// eventually tries until there is no error, for five minutes.
func (r *release) eventually(try func() error) {
	r.Helper()
	var last error
	err := wait.PollUntilContextTimeout(r.Context(), 100*time.Millisecond, 5*time.Minute, true, func(context.Context) (bool, error) {
		last = try()
		return last == nil, nil
	})
	if err != nil {
		r.Fatalf("%v: %v", err, last)
	}
}
