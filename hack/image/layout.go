// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// refName annotates the image in a layout with its tag.
const refName = "org.opencontainers.image.ref.name"

// build is what an image is made of.
type build struct {
	version  string
	commit   string
	time     time.Time // of the commit
	builder  string    // a URI
	licence  string    // a file
	output   string    // a folder
	binaries []binary
}

// run writes the layout, its archive, an SBOM for each platform, and the provenance.
func (b build) run() error {
	if err := b.check(); err != nil {
		return err
	}
	images := make([]v1.Image, len(b.binaries))
	for i, program := range b.binaries {
		var err error
		if images[i], err = b.newImage(program); err != nil {
			return fmt.Errorf("packing %s: %w", program.path, err)
		}
	}
	index := b.newIndex(images)
	files := filesOf(b.output, b.version)
	if err := writeLayout(files.layout, index, b.version); err != nil {
		return fmt.Errorf("writing %s: %w", files.layout, err)
	}
	if err := writeArchive(files, b.time); err != nil {
		return fmt.Errorf("writing %s: %w", files.archive, err)
	}
	for _, program := range b.binaries {
		if err := b.writeSBOM(files.sbom(program.platform), program); err != nil {
			return fmt.Errorf("the SBOM of %s: %w", program.path, err)
		}
	}
	if err := b.writeProvenance(files, index); err != nil {
		return fmt.Errorf("the provenance: %w", err)
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "Wrote %s and %s: image %s, %s\n", files.layout, filepath.Base(files.archive), b.version, digest)
	return nil
}

func (b build) check() error {
	switch {
	case b.commit == "" || b.time.Unix() == 0:
		return errors.New("build needs -commit and -time; outside of a Git checkout, set COMMIT and SOURCE_DATE_EPOCH for make")
	case b.version == "" || b.output == "" || b.licence == "" || b.builder == "":
		return errors.New("build needs -version, -licence, -output and -builder")
	case len(b.binaries) == 0:
		return errors.New("build needs a program for each platform")
	}
	if _, err := name.NewTag("winnow:" + b.version); err != nil {
		return fmt.Errorf("the version is the tag of the image, which %q cannot be: %w", b.version, err)
	}
	platforms := map[string]bool{}
	for _, program := range b.binaries {
		if first := b.binaries[0]; program.goVersion != first.goVersion {
			return fmt.Errorf("%s was built with %s, but %s with %s", program.path, program.goVersion, first.path, first.goVersion)
		}
		platform := platformName(program.platform)
		if platforms[platform] {
			return fmt.Errorf("there are two programs for %s", platform)
		}
		platforms[platform] = true
	}
	return nil
}

// files are the names of what build writes.
type files struct{ output, version, layout, archive, provenance string }

func filesOf(output, version string) files {
	prefix := filepath.Join(output, "winnow-"+version)
	return files{
		output: output, version: version,
		layout:  filepath.Join(output, "image"),
		archive: prefix + "-image.tar", provenance: prefix + "-provenance.json",
	}
}

func (f files) sbom(p v1.Platform) string {
	return filepath.Join(f.output, "winnow-"+f.version+"-"+platformName(p)+".cdx.json")
}

// writeLayout replaces the folder at once, so that nobody pushes half an image.
func writeLayout(path string, index v1.ImageIndex, version string) error {
	unfinished := path + ".unfinished"
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	folder, err := layout.Write(unfinished, empty.Index)
	if err != nil {
		return err
	}
	if err := folder.AppendIndex(index, layout.WithAnnotations(map[string]string{refName: version})); err != nil {
		return err
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}

// writeArchive writes the layout into one file, for tools that load images from archives.
func writeArchive(f files, modified time.Time) error {
	entries, err := entriesOf(f.layout, "")
	if err != nil {
		return err
	}
	content, err := tarOf(entries, modified)
	if err != nil {
		return err
	}
	return os.WriteFile(f.archive, content, 0o644)
}

// readLayout returns the image of a layout, and its version.
func readLayout(output string) (v1.ImageIndex, string, error) {
	path := filesOf(output, "").layout
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("there is no image in %s; run \"make image\" first", path)
	}
	all, err := layout.ImageIndexFromPath(path)
	if err != nil {
		return nil, "", err
	}
	manifest, err := all.IndexManifest()
	if err != nil {
		return nil, "", err
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations[refName] == "" {
		return nil, "", fmt.Errorf("%s does not hold one image with a version; run \"make image\" again", path)
	}
	index, err := all.ImageIndex(manifest.Manifests[0].Digest)
	return index, manifest.Manifests[0].Annotations[refName], err
}
