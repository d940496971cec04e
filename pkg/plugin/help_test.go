// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/winnow-dev/winnow/pkg/plugin/session"
)

var update = flag.Bool("update", false, "write what the commands print into testdata/help")

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestGoldenHelp: the whole help of each command, so that a change of it can be read. It does not repeat the flags of all commands.
func TestGoldenHelp(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	root := newCommand(session.New(streams))
	golden := filepath.Join("testdata", "help")
	files := []string{"winnow.txt"}
	for _, cmd := range append([]*cobra.Command{root}, root.Commands()...) {
		args, name := []string{cmd.Name(), "--help"}, cmd.Name()+".txt"
		if cmd == root {
			args = args[1:]
		} else {
			files = append(files, name)
		}
		streams, _, out, errOut := genericiooptions.NewTestIOStreams()
		if code := Run(t.Context(), args, streams); code != 0 {
			t.Errorf("%q ended with %d: %s", args, code, errOut)
		}
		if strings.Contains(out.String(), "--kubeconfig") || strings.Contains(out.String(), "Global Flags") {
			t.Errorf("%q lists the flags of all commands:\n%s", args, out)
		}
		if *update {
			writeFile(t, filepath.Join(golden, name), out.String())
		}
		want, err := os.ReadFile(filepath.Join(golden, name))
		if err != nil {
			t.Fatalf("%v; to write it: go test ./pkg/plugin -run TestGoldenHelp -update", err)
		}
		if diff := cmp.Diff(string(want), out.String()); diff != "" {
			t.Errorf("%q (-want +got); to accept it: go test ./pkg/plugin -run TestGoldenHelp -update\n%s", args, diff)
		}
	}
	entries, err := os.ReadDir(golden)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(files, e.Name()) {
			t.Errorf("%s is the help of no command: remove it", e.Name())
		}
	}
}

// TestOptions: one command lists the flags of all.
func TestOptions(t *testing.T) {
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	if code := Run(t.Context(), []string{"options"}, streams); code != 0 {
		t.Fatalf("ended with %d: %s", code, errOut)
	}
	for _, want := range []string{"All commands take these flags:\n\n", "--namespace", "--context", "--kubeconfig", "--request-timeout"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}
