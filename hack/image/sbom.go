// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"runtime/debug"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/CycloneDX/cyclonedx-gomod/pkg/generate/bin"
	"github.com/rs/zerolog"
)

const generator = "github.com/CycloneDX/cyclonedx-gomod"

// writeSBOM lists the modules and the Go version that a program is made of, as recorded in it. The SBOM has the time of the commit and no
// serial number, so that it is the same whenever it is made.
func (b build) writeSBOM(path string, program binary) error {
	g, err := bin.NewGenerator(program.path, bin.WithIncludeStdlib(true), bin.WithVersionOverride(b.version), bin.WithLogger(zerolog.Nop()))
	if err != nil {
		return err
	}
	bom, err := g.Generate()
	if err != nil {
		return err
	}
	bom.Metadata.Timestamp = b.time.Format(time.RFC3339)
	bom.Metadata.Tools = &cyclonedx.ToolsChoice{Components: &[]cyclonedx.Component{
		{Type: cyclonedx.ComponentTypeApplication, Name: generator, Version: moduleVersion(generator)},
	}}
	var content bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&content, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return err
	}
	return os.WriteFile(path, content.Bytes(), 0o644)
}

// moduleVersion returns the version of a module in this program.
func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return ""
}
