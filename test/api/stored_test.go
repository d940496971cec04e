// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import "testing"

// storedForm is what a kind is kept in.
func (p scope) storedForm() string { return "stored" + p.plural + ".internal.gc.winnow.dev" }

// TestStoredFormIsDeleted: what policies are kept in can be deleted in every way that kubectl knows, and takes the policy along.
func TestStoredFormIsDeleted(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		stored := p
		stored.short = p.storedForm()
		for _, cascade := range []string{"background", "foreground", "orphan"} {
			p.create(cascade, `{ttlAfterFinished: 1h}`)
			kubectl(t, stored.on("delete", cascade, "--cascade="+cascade, "--timeout=30s")...)
			contains(t, refused(t, "", p.on("get", cascade)...), "not found")
		}
		if p.namespaced {
			p.create("last", `{ttlAfterFinished: 1h}`)
			kubectl(t, stored.on("delete", "last", "--cascade=foreground", "--wait=false")...)
			kubectl(t, "delete", "namespace", p.id, "--timeout=60s")
		}
	})
}
