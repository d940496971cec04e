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

// labels are the labels of the images, and also their annotations.
func (b build) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "winnow",
		"org.opencontainers.image.description": "Cleans up finished Jobs, Pods and custom resources of a Kubernetes cluster by policies",
		"org.opencontainers.image.version":     b.version,
		"org.opencontainers.image.revision":    b.commit,
		"org.opencontainers.image.created":     b.time.Format(time.RFC3339),
		"org.opencontainers.image.source":      source,
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
}

// newImage packs a program and its licence, and nothing else. The program is static, finds the certificates of kube-apiserver in its
// ServiceAccount, and knows no time zone but UTC.
func (b build) newImage(program binary) (v1.Image, error) {
	layer, err := b.newLayer(program)
	if err != nil {
		return nil, err
	}
	created := v1.Time{Time: b.time}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{
		OS: program.platform.OS, Architecture: program.platform.Architecture, Created: created,
		Config: v1.Config{User: nobody, Entrypoint: []string{entrypoint}, WorkingDir: "/", Labels: b.labels()},
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
	return mutate.Annotations(image, b.labels()).(v1.Image), nil
}

func (b build) newLayer(program binary) (v1.Layer, error) {
	executable, err := os.ReadFile(program.path)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(b.licence)
	if err != nil {
		return nil, err
	}
	content, err := tarOf([]entry{
		{name: "licenses/", mode: 0o755},
		{name: "licenses/LICENSE", mode: 0o644, content: text},
		{name: entrypoint[1:], mode: 0o755, content: executable},
	}, b.time)
	if err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(opener(content), tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// newIndex joins the images of all platforms.
func (b build) newIndex(images []v1.Image) v1.ImageIndex {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for i, image := range images {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &b.binaries[i].platform},
		})
	}
	return mutate.Annotations(index, b.labels()).(v1.ImageIndex)
}
