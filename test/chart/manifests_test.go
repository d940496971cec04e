// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/winnow-dev/winnow/test/cluster"
)

// ofHelm are labels and annotations that manifests do without, and the ones of Argo CD, which the storage gets from its kustomization.
var ofHelm = []string{
	"app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart", "helm.sh/resource-policy",
}

// TestManifests: a folder of manifests has the objects that the chart renders, besides the namespace, which Helm creates.
func TestManifests(t *testing.T) {
	for folder, values := range map[string][]string{
		"all":          nil,
		"install":      {"--set=storage=false"},
		"one-node":     {"--set=storage=false,replicas=1"},
		"no-delete":    {"--set=storage=false,rights.delete=false,accounts.enabled=true"},
		"cert-manager": {"--set=storage=false,certificates.source=certManager"},
	} {
		t.Run(folder, func(t *testing.T) {
			want := byName(t, render(t, append(values, "--skip-tests")...))
			got := byName(t, kubectl(t, "kustomize", artifacts+folder))
			if got["Namespace "+namespace] == nil {
				t.Error("there is no namespace")
			}
			delete(got, "Namespace "+namespace)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the chart and artifacts/%s differ (-chart +manifests):\n%s", folder, diff)
			}
		})
	}
}

// byFile are applied only one by one: a dangerous right for old versions of Kubernetes, and a policy that changes objects of others.
var byFile = []string{artifacts + "optional/accounts-before-1.36.yaml", artifacts + "optional/trainjob-deadlines.yaml"}

// TestFolders: "kubectl apply -k" takes each folder, and all kustomizations name all files, except those of byFile. The folders do without
// Go and scripts, so that they can be applied from a repository.
func TestFolders(t *testing.T) {
	for _, folder := range []string{"all", "storage", "install", "one-node", "no-delete", "cert-manager", "optional", "monitoring"} {
		built := kubectl(t, "kustomize", artifacts+folder)
		files, err := filepath.Glob(artifacts + folder + "/*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range objects(t, string(content)) {
				if o.Kind != "Kustomization" && strings.Contains(built, "  name: "+o.Metadata.Name+"\n") == slices.Contains(byFile, file) {
					t.Errorf("artifacts/%s: %s %s of %s is missing, or must not be there", folder, o.Kind, o.Metadata.Name, file)
				}
			}
		}
	}
}

// TestStorageComesFirst: Argo CD applies the storage in an earlier wave, and keeps it.
func TestStorageComesFirst(t *testing.T) {
	for id, o := range byName(t, kubectl(t, "kustomize", artifacts+"all")) {
		metadata := o["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		storage := strings.HasSuffix(metadata["name"].(string), ".internal.gc.winnow.dev")
		first := annotations["argocd.argoproj.io/sync-wave"] == "-1" &&
			annotations["argocd.argoproj.io/sync-options"] == "Prune=false,Delete=false"
		if first != storage {
			t.Errorf("%s has the annotations %v", id, annotations)
		}
	}
}

// byName are objects without what is only Helm's. The storage has no name among its labels, see hack/manifests.
func byName(t *testing.T, manifests string) map[string]map[string]any {
	t.Helper()
	found := map[string]map[string]any{}
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatal(err)
		}
		if o == nil {
			continue
		}
		metadata := o["metadata"].(map[string]any)
		for _, kind := range []string{"labels", "annotations"} {
			if pairs, ok := metadata[kind].(map[string]any); ok {
				maps.DeleteFunc(pairs, func(key string, _ any) bool { return slices.Contains(ofHelm, key) })
			}
		}
		name := metadata["name"].(string)
		if strings.HasSuffix(name, ".internal.gc.winnow.dev") {
			delete(metadata["labels"].(map[string]any), "app.kubernetes.io/name")
		}
		found[o["kind"].(string)+" "+name] = o
	}
	return found
}

// prepareNamespace makes the namespace of the manifests, and the priority class of testdata/values, for one test.
func prepareNamespace(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		for _, object := range []string{"namespace/" + namespace, "priorityclass/platform"} {
			if _, _, err := shared.Kubectl(context.Background(), "delete", object, "--ignore-not-found"); err != nil {
				t.Error(err)
			}
		}
	})
	kubectl(t, "apply", "--server-side", "-f", artifacts+"install/00-namespace.yaml")
	kubectl(t, "create", "priorityclass", "platform", "--value=1000")
}

// TestFieldsAreKnown: the API server takes all that the chart renders, and knows each field. It has no custom resources of others.
func TestFieldsAreKnown(t *testing.T) {
	prepareNamespace(t)
	for name, values := range valueSets(t) {
		if name == "trainjobs" && !cluster.Since(t, "1.36", "it does not serve MutatingAdmissionPolicies in v1") {
			continue
		}
		var known []string
		for document := range strings.SplitSeq(render(t, "--values", values), "\n---\n") {
			if !strings.Contains(document, "\napiVersion: monitoring.coreos.com/") && !strings.Contains(document, "\napiVersion: cert-manager.io/") {
				known = append(known, document)
			}
		}
		_, stderr, err := shared.KubectlStdin(t.Context(), strings.Join(known, "\n---\n"), "apply", "--server-side", "--dry-run=server",
			"--validate=strict", "-f", "-")
		if name == "host-network" && strings.Contains(stderr, "Warning: would violate PodSecurity") {
			stderr = "" // as docs/install.md says
		}
		if err != nil || strings.Contains(stderr, "Warning:") {
			t.Errorf("%s: %v\n%s", name, err, stderr)
		}
	}
}

// TestFoldersApply: so it takes what each folder of manifests has, with "kubectl apply -k".
func TestFoldersApply(t *testing.T) {
	prepareNamespace(t)
	for _, folder := range []string{"all", "storage", "install", "one-node", "no-delete", "optional"} {
		_, stderr, err := shared.Kubectl(t.Context(), "apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict",
			"-k", artifacts+folder)
		if err != nil || strings.Contains(stderr, "Warning:") {
			t.Errorf("artifacts/%s: %v\n%s", folder, err, stderr)
		}
	}
}

// TestPodSecurity: the API server admits the Pods of all values, except Pods in the network of the node, to a namespace with the labels of
// the manifests.
func TestPodSecurity(t *testing.T) {
	prepareNamespace(t)
	for name, values := range valueSets(t) {
		pods := 0
		for _, o := range objects(t, render(t, "--values", values)) {
			template, _ := o.Spec["template"].(map[string]any)
			spec := template["spec"]
			if o.Kind == "Pod" {
				spec = o.Spec
			}
			if spec == nil {
				continue
			}
			pods++
			pod, err := json.Marshal(map[string]any{
				"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p", "namespace": namespace}, "spec": spec,
			})
			if err != nil {
				t.Fatal(err)
			}
			_, stderr, err := shared.KubectlStdin(t.Context(), string(pod), "create", "--dry-run=server", "-f", "-")
			onHost := name == "host-network" && o.Metadata.Name == "winnow"
			if refused := strings.Contains(stderr, "violates PodSecurity"); refused != onHost || err != nil && !refused {
				t.Errorf("%s, %s: %v", name, o.Metadata.Name, err)
			}
		}
		if pods < 2 {
			t.Errorf("%s has %d Pods", name, pods)
		}
	}
}

var flagOfHelp = regexp.MustCompile(`(?m)^ +(?:-(\w), )?--([a-z-]+)`)

// TestFlags: Winnow has the subcommands and flags that the chart passes to it.
func TestFlags(t *testing.T) {
	known := map[string]map[string]bool{}
	for name, values := range valueSets(t) {
		for _, o := range objects(t, render(t, "--values", values)) {
			for _, args := range argsOf(o) {
				command := ""
				if !strings.HasPrefix(args[0], "-") {
					command, args = args[0], args[1:]
				}
				if known[command] == nil {
					known[command] = flagsOf(t, command)
				}
				for _, arg := range args {
					flag, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
					if !known[command][flag] {
						t.Errorf("%s, %s %s: winnow-apiserver %s has no flag %s", name, o.Kind, o.Metadata.Name, command, arg)
					}
				}
			}
		}
	}
	if len(known) != 3 {
		t.Errorf("found the subcommands %v, want the server, guard and check", slices.Collect(maps.Keys(known)))
	}
}

// argsOf are the arguments of each container.
func argsOf(o object) (all [][]string) {
	spec := o.Spec
	if template, ok := spec["template"].(map[string]any); ok {
		spec = template["spec"].(map[string]any)
	}
	containers, _ := spec["containers"].([]any)
	for _, container := range containers {
		var args []string
		for _, arg := range container.(map[string]any)["args"].([]any) {
			args = append(args, arg.(string))
		}
		all = append(all, args)
	}
	return all
}

// flagsOf asks Winnow itself.
func flagsOf(t *testing.T, command string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, flag := range flagOfHelp.FindAllStringSubmatch(winnowHelp(t, command), -1) {
		found[flag[1]], found[flag[2]] = true, true
	}
	return found
}
