// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	slsa "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

func TestSBOMNamesWhatIsInTheProgram(t *testing.T) {
	output := built(t, programs)
	program := inspected(t, programs)[1]
	content, err := os.ReadFile(filesOf(output, testVersion).sbom(program.platform))
	if err != nil {
		t.Fatal(err)
	}
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(content), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if c := bom.Metadata.Component; c.Name != "winnow.example/small" || c.Version != testVersion {
		t.Errorf("it is the SBOM of %s %s", c.Name, c.Version)
	}
	if bom.Metadata.Timestamp != testTime || bom.SerialNumber != "" {
		t.Errorf("the time is %s and the serial number %q", bom.Metadata.Timestamp, bom.SerialNumber)
	}
	if c := *bom.Components; len(c) != 1 || c[0].Name != "std" || c[0].Version != runtime.Version() {
		t.Errorf("the components are %+v, want the standard library of %s", c, runtime.Version())
	}
	sum, err := os.ReadFile(program.path)
	if err != nil {
		t.Fatal(err)
	}
	if hash := sha256.Sum256(sum); !strings.Contains(string(content), hex.EncodeToString(hash[:])) {
		t.Error("the SBOM does not name the hash of the program")
	}
}

func TestProvenanceNamesImageAndCommit(t *testing.T) {
	output := built(t, programs)
	f := filesOf(output, testVersion)
	statement, predicate := readProvenance(t, f.provenance)
	index, _, err := readLayout(output)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if s := statement.GetSubject(); len(s) != 3 || s[0].GetDigest()["sha256"] != digest.Hex {
		t.Errorf("the subjects are %v, want %s and the images of two platforms", s, digest)
	}
	if statement.GetPredicateType() != predicateType || predicate.GetRunDetails().GetBuilder().GetId() != localBuilder {
		t.Errorf("the statement is %v", statement)
	}
	dependencies := predicate.GetBuildDefinition().GetResolvedDependencies()
	if len(dependencies) != 2 || dependencies[0].GetDigest()["gitCommit"] != testCommit ||
		dependencies[1].GetUri() != "pkg:generic/go@"+strings.TrimPrefix(runtime.Version(), "go") {
		t.Errorf("the dependencies are %v", dependencies)
	}
	sbom, err := os.ReadFile(f.sbom(inspected(t, programs)[0].platform))
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(sbom)
	if b := predicate.GetRunDetails().GetByproducts(); len(b) != 2 || b[0].GetDigest()["sha256"] != hex.EncodeToString(hash[:]) {
		t.Errorf("the byproducts are %v", b)
	}
}

// A commit that is not all that was built is no proof of anything.
func TestProvenanceOfUncommittedChanges(t *testing.T) {
	b := buildOf(t, programs)
	b.commit += "-dirty"
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	_, predicate := readProvenance(t, filesOf(b.output, testVersion).provenance)
	commit := predicate.GetBuildDefinition().GetResolvedDependencies()[0]
	if len(commit.GetDigest()) > 0 || !strings.HasSuffix(commit.GetUri(), b.commit) {
		t.Errorf("the commit is %v", commit)
	}
}

func readProvenance(t *testing.T, path string) (*intoto.Statement, *slsa.Provenance) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	statement, predicate := &intoto.Statement{}, &slsa.Provenance{}
	if err := protojson.Unmarshal(content, statement); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(statement.GetPredicate().AsMap())
	if err != nil {
		t.Fatal(err)
	}
	if err := protojson.Unmarshal(raw, predicate); err != nil {
		t.Fatal(err)
	}
	return statement, predicate
}
