// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	source = "https://github.com/winnow-dev/winnow"
	// nobody is a user without name or home, as the Pods of artifacts/install run as it.
	nobody     = "65532:65532"
	entrypoint = "/winnow-apiserver"
)

// describe returns the labels of an image, which are its annotations too.
func describe(b binary, version string) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "winnow",
		"org.opencontainers.image.description": "Cleans up finished Jobs, Pods and custom resources of a Kubernetes cluster by policies",
		"org.opencontainers.image.version":     version,
		"org.opencontainers.image.revision":    b.revision(),
		"org.opencontainers.image.created":     b.time.UTC().Format(time.RFC3339),
		"org.opencontainers.image.source":      source,
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
}

// newImage packs a program and its licence, and nothing else. The program is static, finds the certificates of kube-apiserver in its
// ServiceAccount, and knows no time zone but UTC.
func newImage(b binary, version, licence string) (v1.Image, error) {
	layer, err := newLayer(b, licence)
	if err != nil {
		return nil, err
	}
	created := v1.Time{Time: b.time.UTC()}
	labels := describe(b, version)
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{
		OS: b.platform.OS, Architecture: b.platform.Architecture, Created: created,
		Config: v1.Config{User: nobody, Entrypoint: []string{entrypoint}, WorkingDir: "/", Labels: labels},
		RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	image, err = mutate.Append(image, mutate.Addendum{
		Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: created, CreatedBy: "hack/image"},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Annotations(image, labels).(v1.Image), nil
}

func newLayer(b binary, licence string) (v1.Layer, error) {
	program, err := os.ReadFile(b.path)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(licence)
	if err != nil {
		return nil, err
	}
	content, err := tarOf([]entry{
		{name: "licenses/", mode: 0o755},
		{name: "licenses/LICENSE", mode: 0o644, content: text},
		{name: entrypoint[1:], mode: 0o755, content: program},
	}, b.time)
	if err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(opener(content), tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// newIndex joins the images of all platforms. They are of one commit, so the first says what all are.
func newIndex(binaries []binary, images []v1.Image, version string) v1.ImageIndex {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for i, image := range images {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &binaries[i].platform},
		})
	}
	return mutate.Annotations(index, describe(binaries[0], version)).(v1.ImageIndex)
}
