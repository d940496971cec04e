// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// binary is a program for one platform, with what its build recorded in it.
type binary struct {
	path      string
	platform  v1.Platform
	goVersion string
	// commit is the hash of the commit. If dirty, other changes were built too.
	commit string
	dirty  bool
	time   time.Time // of the commit
}

// inspect reads platform, commit and Go version from the program itself, so that they cannot differ from what it was built from.
func inspect(path string) (binary, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return binary{}, err
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	b := binary{
		path: path, goVersion: info.GoVersion,
		platform: v1.Platform{OS: settings["GOOS"], Architecture: settings["GOARCH"]},
		commit:   settings["vcs.revision"], dirty: settings["vcs.modified"] == "true",
	}
	if b.commit == "" {
		return binary{}, fmt.Errorf("%s does not say which commit it is; build it in a Git checkout, with -buildvcs=true", path)
	}
	if settings["CGO_ENABLED"] != "0" {
		return binary{}, fmt.Errorf("%s may need shared libraries; build it with CGO_ENABLED=0", path)
	}
	if b.time, err = time.Parse(time.RFC3339, settings["vcs.time"]); err != nil {
		return binary{}, fmt.Errorf("the time of the commit in %s: %w", path, err)
	}
	return b, nil
}

// revision is the commit, marked if it is not all that was built.
func (b binary) revision() string {
	if b.dirty {
		return b.commit + dirtySuffix
	}
	return b.commit
}

// dirtySuffix is how "git describe --dirty" marks a version, too.
const dirtySuffix = "-dirty"

// platformName is, for example, linux-amd64.
func platformName(p v1.Platform) string { return p.OS + "-" + p.Architecture }
