// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	slsa "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	predicateType = "https://slsa.dev/provenance/v1"
	// RELEASE.md says what the parameters mean, and what to expect of a local builder.
	buildType    = source + "/blob/main/RELEASE.md#provenance"
	localBuilder = source + "/blob/main/RELEASE.md#built-by-hand"
)

// writeProvenance states what the images were built from, by whom and how. The statement is not signed: the release workflow does that.
func (b build) writeProvenance(f files, index v1.ImageIndex) error {
	subjects, err := subjectsOf(index, b.version)
	if err != nil {
		return err
	}
	predicate, err := b.predicate(f)
	if err != nil {
		return err
	}
	statement := &intoto.Statement{Type: intoto.StatementTypeUri, Subject: subjects, PredicateType: predicateType, Predicate: predicate}
	if err := statement.Validate(); err != nil {
		return err
	}
	content, err := protojson.Marshal(statement)
	if err != nil {
		return err
	}
	// protojson varies its spaces on purpose.
	var indented bytes.Buffer
	if err := json.Indent(&indented, content, "", "  "); err != nil {
		return err
	}
	return os.WriteFile(f.provenance, append(indented.Bytes(), '\n'), 0o644)
}

// subjectsOf are the image and the images of its platforms.
func subjectsOf(index v1.ImageIndex, version string) ([]*intoto.ResourceDescriptor, error) {
	digest, err := index.Digest()
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	subjects := []*intoto.ResourceDescriptor{{Name: "winnow:" + version, Digest: map[string]string{digest.Algorithm: digest.Hex}}}
	for _, m := range manifest.Manifests {
		subjects = append(subjects, &intoto.ResourceDescriptor{
			Name: "winnow:" + version + "-" + platformName(*m.Platform), Digest: map[string]string{m.Digest.Algorithm: m.Digest.Hex},
		})
	}
	return subjects, nil
}

func (b build) predicate(f files) (*structpb.Struct, error) {
	commit := &intoto.ResourceDescriptor{Uri: "git+" + source + "@" + b.commit}
	if !dirty(b.commit) {
		commit.Digest = map[string]string{"gitCommit": b.commit}
	}
	goVersion := b.binaries[0].goVersion
	var platforms []any
	var sboms []*intoto.ResourceDescriptor
	for _, program := range b.binaries {
		content, err := os.ReadFile(f.sbom(program.platform))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(content)
		sboms = append(sboms, &intoto.ResourceDescriptor{
			Name: filepath.Base(f.sbom(program.platform)), Digest: map[string]string{"sha256": hex.EncodeToString(sum[:])},
			MediaType: sbomType,
		})
		platforms = append(platforms, program.platform.String())
	}
	parameters, err := structpb.NewStruct(map[string]any{"source": commit.Uri, "version": b.version, "platforms": platforms})
	if err != nil {
		return nil, err
	}
	provenance := &slsa.Provenance{
		BuildDefinition: &slsa.BuildDefinition{
			BuildType: buildType, ExternalParameters: parameters,
			ResolvedDependencies: []*intoto.ResourceDescriptor{
				commit, {Name: "go", Uri: "pkg:generic/go@" + strings.TrimPrefix(goVersion, "go")},
			},
		},
		RunDetails: &slsa.RunDetails{Builder: &slsa.Builder{Id: b.builder}, Byproducts: sboms},
	}
	if err := provenance.Validate(); err != nil {
		return nil, err
	}
	content, err := protojson.Marshal(provenance)
	if err != nil {
		return nil, err
	}
	predicate := &structpb.Struct{}
	return predicate, protojson.Unmarshal(content, predicate)
}
