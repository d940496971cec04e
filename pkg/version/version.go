// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version says which Winnow this is. It is separate from k8s.io/component-base/version on purpose: there the Kubernetes libraries
// look up their own version, at which they evaluate their feature gates.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Set by the linker: -ldflags "-X github.com/winnow-dev/winnow/pkg/version.version=v1.2.3", and the same with commit.
var version, commit = "v0.0.0-dev", ""

// Get returns the version of this build, like v1.2.3; v0.0.0-dev when it was built without one.
func Get() string { return version }

// Long returns the version with the commit, if the build knows it, and the Go version and platform.
func Long() string {
	from := "unknown commit"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" { // There is none in a worktree of git.
				from = s.Value
			}
		}
	}
	if commit != "" {
		from = commit
	}
	return fmt.Sprintf("%s (%s, %s %s/%s)", version, from, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// UserAgent returns what requests to the cluster carry as User-Agent, winnow/VERSION.
func UserAgent() string { return "winnow/" + version }
