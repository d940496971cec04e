// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	sbomType       = "application/vnd.cyclonedx+json"
	provenanceType = "application/vnd.in-toto+json"
	emptyType      = types.MediaType("application/vnd.oci.empty.v1+json")
)

// push pushes the image with its version as tag, and SBOMs and provenance as its referrers. It returns the name of the image with its
// digest.
func push(ctx context.Context, output, repository string) (string, error) {
	index, version, err := readLayout(output)
	if err != nil {
		return "", err
	}
	repo, err := parseRepository(repository)
	if err != nil {
		return "", err
	}
	digest, err := index.Digest()
	if err != nil {
		return "", err
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if err := remote.WriteIndex(repo.Tag(version), index, options...); err != nil {
		return "", explain(repo, err)
	}
	if err := pushReferrers(repo, index, filesOf(output, version), options); err != nil {
		return "", explain(repo, err)
	}
	fmt.Fprintf(os.Stderr, "Pushed %s\n", repo.Tag(version))
	return repo.Digest(digest.String()).Name(), nil
}

func parseRepository(repository string) (name.Repository, error) {
	if repository == "" {
		return name.Repository{}, errors.New("no repository: set REPOSITORY, for example REPOSITORY=registry.example.com/winnow")
	}
	repo, err := name.NewRepository(repository, name.StrictValidation)
	if err != nil {
		return repo, fmt.Errorf("REPOSITORY must be a registry and a path without a tag, for example registry.example.com/winnow: %w", err)
	}
	return repo, nil
}

// explain says what to do if a registry refuses.
func explain(repo name.Repository, err error) error {
	err = fmt.Errorf("pushing to %s: %w", repo, err)
	var refused *transport.Error
	if errors.As(err, &refused) && (refused.StatusCode == http.StatusUnauthorized || refused.StatusCode == http.StatusForbidden) {
		return fmt.Errorf("%w\nThe registry refused. Log in with \"docker login %[2]s\" or \"podman login %[2]s\", as a user who may push there",
			err, repo.RegistryStr())
	}
	return err
}

// pushReferrers lets those who know the image find its provenance, and those who know the image of a platform find its SBOM.
func pushReferrers(repo name.Repository, index v1.ImageIndex, f files, options []remote.Option) error {
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, m := range manifest.Manifests {
		subject := v1.Descriptor{MediaType: m.MediaType, Size: m.Size, Digest: m.Digest}
		if err := pushReferrer(repo, subject, f.sbom(*m.Platform), sbomType, options); err != nil {
			return err
		}
	}
	subject, err := partial.Descriptor(index)
	if err != nil {
		return err
	}
	return pushReferrer(repo, v1.Descriptor{MediaType: subject.MediaType, Size: subject.Size, Digest: subject.Digest}, f.provenance,
		provenanceType, options)
}

func pushReferrer(repo name.Repository, subject v1.Descriptor, file string, mediaType types.MediaType, options []remote.Option) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var blobs []v1.Descriptor
	for _, layer := range []v1.Layer{static.NewLayer([]byte("{}"), emptyType), static.NewLayer(content, mediaType)} {
		if err := remote.WriteLayer(repo, layer, options...); err != nil {
			return err
		}
		blob, err := partial.Descriptor(layer)
		if err != nil {
			return err
		}
		blobs = append(blobs, *blob)
	}
	blobs[1].Annotations = map[string]string{"org.opencontainers.image.title": filepath.Base(file)}
	raw, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: string(mediaType),
		Config: blobs[0], Layers: blobs[1:], Subject: &subject,
	})
	if err != nil {
		return err
	}
	hash, _, err := v1.SHA256(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	return remote.Put(repo.Digest(hash.String()), artifact(raw), options...)
}

// artifact is a manifest that is pushed as it is.
type artifact []byte

// RawManifest implements remote.Taggable.
func (a artifact) RawManifest() ([]byte, error) { return a, nil }

// MediaType says that the manifest is one of OCI 1.1.
func (a artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
