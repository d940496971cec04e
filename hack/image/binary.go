// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"fmt"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// binary is a program for one platform.
type binary struct {
	path      string
	platform  v1.Platform
	goVersion string
}

// inspect reads platform and Go version from the program itself, so that they cannot differ from those that it was built for.
func inspect(path string) (binary, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return binary{}, err
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if settings["CGO_ENABLED"] != "0" || settings["-trimpath"] != "true" {
		return binary{}, fmt.Errorf("%s may depend on libraries or folders of this machine; build it with CGO_ENABLED=0 and -trimpath", path)
	}
	return binary{
		path: path, goVersion: info.GoVersion, platform: v1.Platform{OS: settings["GOOS"], Architecture: settings["GOARCH"]},
	}, nil
}

// dirtySuffix marks a commit that is not all that was built, as "git describe --dirty" does.
const dirtySuffix = "-dirty"

func dirty(commit string) bool { return strings.HasSuffix(commit, dirtySuffix) }

// platformName is, for example, linux-amd64.
func platformName(p v1.Platform) string { return p.OS + "-" + p.Architecture }
