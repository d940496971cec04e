// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package output is how the commands print: in formats for programs, as tables and sentences, and on the screen of a terminal. What others
// wrote is escaped.
package output

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// Format is the flag --output.
type Format struct {
	// Name is empty for the default of the command.
	Name   string
	allows []string
}

// AddFlag adds the flag with the formats that the command has besides the default.
func (f *Format) AddFlag(cmd *cobra.Command, formats ...string) {
	f.allows = formats
	cmd.Flags().StringVarP(&f.Name, "output", "o", "", fmt.Sprintf("Output format. One of: (%s).", strings.Join(formats, ", ")))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)) // The flag exists.
}

// Validate fails if the command does not have the format.
func (f *Format) Validate() error {
	if f.Name != "" && !slices.Contains(f.allows, f.Name) {
		return fmt.Errorf("unable to match a printer suitable for the output format %q, allowed formats are: %s", f.Name,
			strings.Join(f.allows, ","))
	}
	return nil
}

// Document prints a value if the format is json or yaml, and reports whether it was.
func (f *Format) Document(w io.Writer, value any) (bool, error) {
	var encoded []byte
	var err error
	switch f.Name {
	case "json":
		encoded, err = json.MarshalIndent(value, "", "    ")
		encoded = append(escapeJSON(encoded), '\n')
	case "yaml":
		encoded, err = yaml.Marshal(value)
	default:
		return false, nil
	}
	if err == nil {
		_, err = w.Write(encoded)
	}
	return true, err
}
