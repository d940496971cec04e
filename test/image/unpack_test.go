// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

type descriptor struct {
	Digest   string `json:"digest"`
	Platform struct {
		OS           string `json:"os"`
		Architecture string `json:"architecture"`
	} `json:"platform"`
}

type manifest struct {
	Manifests []descriptor `json:"manifests"`
	Config    descriptor   `json:"config"`
	Layers    []descriptor `json:"layers"`
}

// archive is an OCI archive in memory.
type archive struct {
	t     *testing.T
	files map[string][]byte
}

// blob returns what a digest stands for.
func (a archive) blob(digest string) []byte {
	a.t.Helper()
	hash := strings.TrimPrefix(digest, "sha256:")
	content := a.files["blobs/sha256/"+hash]
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != hash {
		a.t.Fatalf("the blob %s is missing or not what its name says", digest)
	}
	return content
}

func (a archive) manifest(raw []byte) manifest {
	a.t.Helper()
	var m manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		a.t.Fatal(err)
	}
	return m
}

// unpack returns the program of each platform, unpacked as a container runtime does it: the file that the entrypoint names.
func unpack(t *testing.T, file string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	a := archive{t: t, files: untar(t, bytes.NewReader(raw))}
	index := a.manifest(a.files["index.json"])
	if len(index.Manifests) != 1 {
		t.Fatalf("the archive has %d images", len(index.Manifests))
	}
	programs := map[string]string{}
	for _, d := range a.manifest(a.blob(index.Manifests[0].Digest)).Manifests {
		platform := d.Platform.OS + "/" + d.Platform.Architecture
		programs[platform] = a.unpackImage(a.manifest(a.blob(d.Digest)), filepath.Join(t.TempDir(), d.Platform.Architecture))
	}
	return programs
}

func (a archive) unpackImage(m manifest, dir string) string {
	a.t.Helper()
	var config struct {
		Config struct{ Entrypoint []string }
	}
	if err := json.Unmarshal(a.blob(m.Config.Digest), &config); err != nil {
		a.t.Fatal(err)
	}
	if len(config.Config.Entrypoint) != 1 || len(m.Layers) != 1 {
		a.t.Fatalf("the entrypoint is %q, and there are %d layers", config.Config.Entrypoint, len(m.Layers))
	}
	layer, err := gzip.NewReader(bytes.NewReader(a.blob(m.Layers[0].Digest)))
	if err != nil {
		a.t.Fatal(err)
	}
	entrypoint := config.Config.Entrypoint[0]
	program := filepath.Join(dir, path.Base(entrypoint))
	if err := os.Mkdir(dir, 0o700); err != nil {
		a.t.Fatal(err)
	}
	if err := os.WriteFile(program, untar(a.t, layer)[strings.TrimPrefix(entrypoint, "/")], 0o700); err != nil {
		a.t.Fatal(err)
	}
	return program
}

func untar(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for reader := tar.NewReader(r); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
	}
}
