// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs tests what the documentation says, as far as it can be told without a cluster.
package docs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/install"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/apis/gc/validation"
)

const root = "../.."

// pages are all that users and contributors read, by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			out[path] = string(text)
		}
	}
	if len(out) < 2 {
		t.Fatalf("found %d pages", len(out))
	}
	return out
}

var (
	inlineLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	linkByName = regexp.MustCompile(`\[([\w#-]+)\](?:[^(:]|$)`)
	linkTarget = regexp.MustCompile(`(?m)^\[([\w#-]+)\]: `)
	codeBlock  = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")
	comment    = regexp.MustCompile(`(?s)<!--.*?-->`)
	codeSpan   = regexp.MustCompile("`[^`\n]*`")
	heading    = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInSlug  = regexp.MustCompile(`[^\p{L}\p{N}\- ]`)
)

// TestLinks checks that relative links lead to a file and to a heading in it, and that links by name have a target.
func TestLinks(t *testing.T) {
	all := pages(t)
	for path, text := range all {
		prose := codeBlock.ReplaceAllString(comment.ReplaceAllString(text, ""), "")
		for _, link := range inlineLink.FindAllStringSubmatch(prose, -1) {
			if !strings.Contains(link[1], "://") {
				checkLink(t, all, path, link[1])
			}
		}
		var targets []string
		for _, target := range linkTarget.FindAllStringSubmatch(prose, -1) {
			targets = append(targets, target[1])
		}
		for _, use := range linkByName.FindAllStringSubmatch(codeSpan.ReplaceAllString(prose, ""), -1) {
			if !slices.Contains(targets, use[1]) {
				t.Errorf("%s: [%s] has no target", path, use[1])
			}
		}
	}
}

func checkLink(t *testing.T, all map[string]string, from, link string) {
	t.Helper()
	file, anchor, _ := strings.Cut(link, "#")
	path := from
	if file != "" {
		path = filepath.Join(filepath.Dir(from), file)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("%s: %s leads nowhere: %v", from, link, err)
		return
	}
	if anchor != "" && !slices.Contains(anchors(all[path]), anchor) {
		t.Errorf("%s: %s: there is no such heading in %s", from, link, path)
	}
}

// anchors are the names that GitHub gives to the headings of a page.
func anchors(text string) []string {
	var out []string
	for _, h := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		slug := notInSlug.ReplaceAllString(strings.ToLower(h[1]), "")
		out = append(out, strings.ReplaceAll(slug, " ", "-"))
	}
	return out
}

// TestPolicies decodes each policy of either kind on the pages strictly, and checks it as the server does.
func TestPolicies(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(v1alpha1.SchemeGroupVersion)
	found := map[string]int{}
	for path, text := range pages(t) {
		for _, manifest := range manifests(t, path, text) {
			kind := policyKind.FindStringSubmatch(string(manifest))
			if kind == nil {
				continue
			}
			found[kind[1]]++
			if err := check(t.Context(), scheme, decoder, manifest); err != nil {
				t.Errorf("%s: %v\n%s", path, err, manifest)
			}
		}
	}
	for _, kind := range []string{"CleanupPolicy", "ClusterCleanupPolicy"} {
		if found[kind] == 0 {
			t.Errorf("no page shows a %s", kind)
		}
	}
}

var policyKind = regexp.MustCompile(`(?m)^kind: ((?:Cluster)?CleanupPolicy)\b`)

// manifests are the YAML documents of a page.
func manifests(t *testing.T, path, text string) [][]byte {
	t.Helper()
	var out [][]byte
	for _, block := range codeBlock.FindAllStringSubmatch(text, -1) {
		if block[1] != "yaml" {
			continue
		}
		reader := yaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(block[2])))
		for {
			document := make([]byte, len(block[2]))
			n, err := reader.Read(document)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			out = append(out, document[:n])
		}
	}
	return out
}

func check(ctx context.Context, scheme *runtime.Scheme, decoder runtime.Decoder, manifest []byte) error {
	versioned, _, err := decoder.Decode(manifest, nil, nil)
	if err != nil {
		return err
	}
	var errs field.ErrorList
	switch p := versioned.(type) {
	case *v1alpha1.CleanupPolicy:
		if p.Namespace == "" {
			p.Namespace = metav1.NamespaceDefault
		}
		var policy gc.CleanupPolicy
		if err := scheme.Convert(p, &policy, nil); err != nil {
			return err
		}
		errs = validation.ValidateCleanupPolicy(&policy)
	case *v1alpha1.ClusterCleanupPolicy:
		var policy gc.ClusterCleanupPolicy
		if err := scheme.Convert(p, &policy, nil); err != nil {
			return err
		}
		errs = validation.ValidateClusterCleanupPolicy(&policy)
	default:
		return fmt.Errorf("%T is no policy", versioned)
	}
	return append(errs, scheme.Validate(ctx, nil, versioned)...).ToAggregate()
}

// TestInstallNamesEveryFile: nobody knows when to apply a manifest that docs/install.md does not name. Those of which one chooses have
// tables, and the chart is applied as a whole.
func TestInstallNamesEveryFile(t *testing.T) {
	page := pages(t)[filepath.Join(root, "docs/install.md")]
	artifacts := os.DirFS(filepath.Join(root, "artifacts"))
	err := fs.WalkDir(artifacts, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) == ".go" || strings.HasPrefix(path, "examples/") || strings.HasPrefix(path, "recipes/") {
			return err
		}
		folder, name := filepath.Split(path)
		named := "`artifacts/" + path + "`"
		switch {
		case strings.HasPrefix(path, "chart/winnow/"):
			named = "`artifacts/chart/winnow`"
		case strings.EqualFold(name, "kustomization") || strings.EqualFold(name, "kustomization.yaml"):
			named = "`artifacts/" + strings.TrimSuffix(folder, "/")
		case folder == "optional/" || folder == "monitoring/":
			named = "` | `" + name + "` |"
		}
		if !strings.Contains(page, named) {
			t.Errorf("docs/install.md does not name artifacts/%s", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
