// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"testing"

	manifests "github.com/winnow-dev/winnow/artifacts/storage"
)

// TestRevision fails when somebody changes the manifests of the storage and leaves their revision as it is: replicas of the new version
// would run on the storage of the old one.
func TestRevision(t *testing.T) {
	const revisionNow, hashNow = 6, "da155c90db56feee"
	definitions, err := parse(manifests.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := parse(manifests.AdmissionPolicy)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range slices.Concat(definitions, policy) {
		if got := revision(object); got != revisionNow {
			t.Errorf("%s %q has revision %d, want %d", object.GetKind(), object.GetName(), got, revisionNow)
		}
	}
	comments := regexp.MustCompile(`(?m)^ *#.*\n`)
	hash := sha256.Sum256(comments.ReplaceAll(slices.Concat(manifests.CRDs, manifests.AdmissionPolicy), nil))
	if got := hex.EncodeToString(hash[:8]); got != hashNow {
		t.Errorf("the manifests in artifacts/storage have the hash %s, want %s: raise their revision, and then change both here", got, hashNow)
	}
}
