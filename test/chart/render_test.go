// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write testdata/golden instead of comparing with it")

// sets of values, by name.
func valueSets(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/values/*.yaml")
	if err != nil || len(files) < 8 {
		t.Fatalf("found %d sets of values: %v", len(files), err)
	}
	found := map[string]string{}
	for _, file := range files {
		found[strings.TrimSuffix(filepath.Base(file), ".yaml")] = file
	}
	return found
}

func TestLint(t *testing.T) {
	helm(t, "lint", "--strict", chart)
	for _, file := range valueSets(t) {
		helm(t, "lint", "--strict", chart, "--values", file)
	}
}

// TestGolden compares what values change of the objects that the chart renders without any. "go test ./test/chart -run Golden -update"
// accepts it. The objects without values are the manifests in artifacts, see TestManifests.
func TestGolden(t *testing.T) {
	without := documents(t, render(t))
	for name, values := range valueSets(t) {
		t.Run(name, func(t *testing.T) {
			golden := filepath.Join("testdata/golden", name+".diff")
			got := changes(t, without, documents(t, shortDashboard(render(t, "--values", values))))
			if *update {
				writeFile(t, golden, got)
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs; accept it with -update:\n%s", golden, diff(t, string(want), got))
			}
		})
	}
}

// changes lists the objects that values remove, change and add.
func changes(t *testing.T, before, after map[string]string) string {
	t.Helper()
	all := map[string]string{}
	maps.Copy(all, before)
	maps.Copy(all, after)
	var out strings.Builder
	for _, id := range slices.Sorted(maps.Keys(all)) {
		switch old, now := before[id], after[id]; {
		case now == "":
			fmt.Fprintf(&out, "REMOVED %s\n", id)
		case old == "":
			fmt.Fprintf(&out, "ADDED %s\n%s\n", id, now)
		case old != now:
			fmt.Fprintf(&out, "CHANGED %s\n%s", id, diff(t, old+"\n", now+"\n"))
		}
	}
	return out.String()
}

// documents are what was rendered, by kind and name, and without the version, which changes with each release.
func documents(t *testing.T, rendered string) map[string]string {
	t.Helper()
	rendered = strings.ReplaceAll(rendered, chartVersion(t), "VERSION")
	found := map[string]string{}
	for document := range strings.SplitSeq("\n"+rendered, "\n---\n") {
		if document = strings.TrimSpace(document); document != "" {
			o := objects(t, document)[0]
			found[o.Kind+" "+o.Metadata.Name] = document
		}
	}
	return found
}

// TestGoldenIsNoMore: each file belongs to a set of values.
func TestGoldenIsNoMore(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*")
	if err != nil {
		t.Fatal(err)
	}
	all := valueSets(t)
	for _, file := range files {
		if all[strings.TrimSuffix(filepath.Base(file), ".diff")] == "" {
			t.Errorf("%s belongs to no values", file)
		}
	}
}

var dashboard = regexp.MustCompile(`(?m)^  winnow\.json: \|\n(    .*\n)+`)

// shortDashboard leaves out what stands in a separate file.
func shortDashboard(rendered string) string {
	return dashboard.ReplaceAllString(rendered, "  winnow.json: (left out)\n")
}

func diff(t *testing.T, before, after string) string {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "before"), before)
	writeFile(t, filepath.Join(dir, "after"), after)
	cmd := exec.CommandContext(t.Context(), "diff", "--unified=2", "--label=before", "--label=after", "before", "after")
	cmd.Dir = dir
	out, err := cmd.Output()
	if failed := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &failed) || failed.ExitCode() != 1) {
		t.Fatal(err)
	}
	_, hunks, _ := strings.Cut(string(out), "+++ after\n")
	return hunks
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// object is what tests look at.
type object struct {
	APIVersion, Kind string
	Metadata         struct {
		Name, Namespace     string
		Labels, Annotations map[string]string
	}
	Spec map[string]any
}

func objects(t *testing.T, rendered string) []object {
	t.Helper()
	var all []object
	for document := range strings.SplitSeq(rendered, "\n---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if o.Kind != "" {
			all = append(all, o)
		}
	}
	return all
}

// TestNothingBlocks: no values render an object by which a Winnow that does not run keeps others from their work: no APIService, whose
// namespaces could not be deleted, and no webhook.
func TestNothingBlocks(t *testing.T) {
	blocks := sets.New("APIService", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
	for name, values := range valueSets(t) {
		for _, o := range objects(t, render(t, "--values", values)) {
			if blocks.Has(o.Kind) {
				t.Errorf("%s: %s %s", name, o.Kind, o.Metadata.Name)
			}
		}
	}
}

// TestMetadata: all objects have the same labels, nothing names another namespace than the release's, and objects that keep policies say so
// to Helm and to Argo CD.
func TestMetadata(t *testing.T) {
	const kept, wave, options = "helm.sh/resource-policy", "argocd.argoproj.io/sync-wave", "argocd.argoproj.io/sync-options"
	elsewhere := sets.New("RoleBinding kube-system/winnow:auth-reader")
	storage := 0
	for name, values := range valueSets(t) {
		rendered := helm(t, "template", "other", chart, "--namespace", "cleanup", "--values", values)
		if strings.Contains(rendered, namespace) {
			t.Errorf("%s names %s:\n%s", name, namespace, rendered)
		}
		for _, o := range objects(t, rendered) {
			id := o.Kind + " " + o.Metadata.Namespace + "/" + o.Metadata.Name
			if o.Metadata.Namespace != "" && o.Metadata.Namespace != "cleanup" && !elsewhere.Has(id) {
				t.Errorf("%s: %s is in another namespace than the release", name, id)
			}
			for label, want := range map[string]string{
				"app.kubernetes.io/part-of": "winnow", "app.kubernetes.io/instance": "other", "app.kubernetes.io/managed-by": "Helm",
				"app.kubernetes.io/version": "v" + chartVersion(t), "helm.sh/chart": "winnow-" + chartVersion(t),
			} {
				if got := o.Metadata.Labels[label]; got != want {
					t.Errorf("%s: %s has %s=%q, want %q", name, id, label, got, want)
				}
			}
			if !strings.HasPrefix(o.Metadata.Labels["app.kubernetes.io/name"], "winnow") {
				t.Errorf("%s: %s has no name", name, id)
			}
			annotations := o.Metadata.Annotations
			isStorage := o.Kind == "CustomResourceDefinition" || strings.HasPrefix(o.Kind, "ValidatingAdmissionPolicy")
			if isStorage {
				storage++
			}
			if (annotations[kept] == "keep" && annotations[wave] == "-1" && annotations[options] == "Prune=false,Delete=false") != isStorage {
				t.Errorf("%s: %s has the annotations %v", name, id, annotations)
			}
		}
	}
	if storage == 0 {
		t.Error("found no storage")
	}
}

// TestPackage: the archive of the chart renders the same as the folder.
func TestPackage(t *testing.T) {
	dir := t.TempDir()
	helm(t, "package", chart, "--destination", dir)
	archive := filepath.Join(dir, "winnow-"+chartVersion(t)+".tgz")
	for _, values := range valueSets(t) {
		packaged := helm(t, "template", "winnow", archive, "--namespace", namespace, "--values", values)
		if packaged != render(t, "--values", values) {
			t.Errorf("with %s, the archive renders something else:\n%s", values, packaged)
		}
	}
}

// chartVersion is the version of the chart, and of Winnow without the "v".
func chartVersion(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(chart, "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Version, AppVersion string }
	if err := yaml.Unmarshal(content, &file); err != nil || file.Version == "" || file.AppVersion != "v"+file.Version {
		t.Fatalf("Chart.yaml has version %q and appVersion %q: %v", file.Version, file.AppVersion, err)
	}
	return file.Version
}
