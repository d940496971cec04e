// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// release gathers the files of a release. Its manifests and chart name the image by digest.
type release struct{ output, repository, artifacts string }

func (r release) run() error {
	index, version, err := readLayout(r.output)
	if err != nil {
		return err
	}
	image, err := r.image(index, version)
	if err != nil {
		return err
	}
	dir := filepath.Join(r.output, "release")
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	if err := r.copyBuilt(dir, index, version); err != nil {
		return err
	}
	if err := r.packChart(dir, image); err != nil {
		return fmt.Errorf("packing the chart: %w", err)
	}
	if err := r.packManifests(dir, image); err != nil {
		return fmt.Errorf("packing the manifests: %w", err)
	}
	return writeChecksums(dir)
}

// pinned is an image that is named by version and digest.
type pinned struct {
	repository name.Repository
	version    string
	digest     v1.Hash
	created    time.Time
}

func (p pinned) String() string { return p.repository.Tag(p.version).Name() + "@" + p.digest.String() }

func (r release) image(index v1.ImageIndex, version string) (pinned, error) {
	repo, err := parseRepository(r.repository)
	if err != nil {
		return pinned{}, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return pinned{}, err
	}
	if revision := manifest.Annotations["org.opencontainers.image.revision"]; dirty(revision) {
		return pinned{}, fmt.Errorf("the image is of %s: commit your changes and run \"make image\" again, so that others can build it", revision)
	}
	created, err := time.Parse(time.RFC3339, manifest.Annotations["org.opencontainers.image.created"])
	if err != nil {
		return pinned{}, err
	}
	digest, err := index.Digest()
	return pinned{repository: repo, version: version, digest: digest, created: created}, err
}

// copyBuilt copies what "make image" and "make plugin-archives" wrote.
func (r release) copyBuilt(dir string, index v1.ImageIndex, version string) error {
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	f := filesOf(r.output, version)
	from := []string{f.archive, f.provenance}
	for _, m := range manifest.Manifests {
		from = append(from, f.sbom(*m.Platform))
	}
	plugins, err := filepath.Glob(filepath.Join(r.output, "kubectl-winnow_*.tar.gz"))
	if err != nil {
		return err
	}
	if len(plugins) == 0 {
		return fmt.Errorf("there are no archives of the plugin in %s; run \"make plugin-archives\" first", r.output)
	}
	for _, file := range slices.Concat(from, plugins) {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// packChart does what "helm package" does, and sets the version of the chart and the image. The same commit gives the same archive.
func (r release) packChart(dir string, image pinned) error {
	entries, err := entriesOf(filepath.Join(r.artifacts, "chart", "winnow"), "winnow")
	if err != nil {
		return err
	}
	entries = withoutIgnored(entries)
	version := chartVersion(image.version)
	changes := map[string]map[string]string{
		"winnow/Chart.yaml": {"version": version, "appVersion": image.version},
		"winnow/values.yaml": {
			"image.repository": image.repository.Name(), "image.tag": image.version, "image.digest": image.digest.String(),
		},
	}
	for i, e := range entries {
		for key, value := range changes[e.name] {
			if entries[i].content, err = setScalar(entries[i].content, key, value); err != nil {
				return fmt.Errorf("%s: %w", e.name, err)
			}
		}
		delete(changes, e.name)
	}
	if len(changes) > 0 {
		return errors.New("it has no Chart.yaml or no values.yaml")
	}
	content, err := tarGzOf(entries, image.created)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "winnow-"+version+".tgz"), content, 0o644)
}

// withoutIgnored leaves out what .helmignore names. Of its patterns, those for names are enough here.
func withoutIgnored(entries []entry) []entry {
	var patterns []string
	for _, e := range entries {
		if e.name == "winnow/.helmignore" {
			patterns = strings.Fields(string(e.content))
		}
	}
	return slices.DeleteFunc(entries, func(e entry) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool {
			matches, err := path.Match(pattern, path.Base(e.name))
			return err == nil && matches
		})
	})
}

// semanticVersion is what Helm takes as the version of a chart.
var semanticVersion = regexp.MustCompile(`^v?((0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?)$`)

// chartVersion is the version of the image as Helm takes it; of a commit without a tag, one below all versions.
func chartVersion(version string) string {
	if m := semanticVersion.FindStringSubmatch(version); m != nil {
		return m[1]
	}
	return "0.0.0-g" + version
}

// placeholder is the image in the manifests of the source.
var placeholder = regexp.MustCompile(`(?m)^([ -]*image: )registry\.example\.com/\S+$`)

// packManifests archives the manifests with the name of the image in them.
func (r release) packManifests(dir string, image pinned) error {
	entries, err := entriesOf(r.artifacts, "artifacts")
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e entry) bool {
		return strings.HasPrefix(e.name, "artifacts/chart/") || strings.HasPrefix(e.name, "artifacts/krew/") || path.Ext(e.name) == ".go"
	})
	named := 0
	for i, e := range entries {
		if filepath.Ext(e.name) != ".yaml" {
			continue
		}
		named += len(placeholder.FindAll(e.content, -1))
		entries[i].content = placeholder.ReplaceAll(e.content, []byte("${1}"+image.String()))
	}
	if named == 0 {
		return fmt.Errorf("no manifest in %s has a line \"image: registry.example.com/...\" to put the image into", r.artifacts)
	}
	content, err := tarGzOf(entries, image.created)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "winnow-"+image.version+"-manifests.tar.gz"), content, 0o644)
}

// writeChecksums writes what "sha256sum --check" reads.
func writeChecksums(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), file.Name())
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), sums.Bytes(), 0o644)
}
