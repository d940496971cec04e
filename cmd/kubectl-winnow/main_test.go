// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// asProgram makes the test binary run the program instead of the tests.
const asProgram = "WINNOW_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestNoLogs: an error is one line of the plugin, and no lines of the libraries that it uses.
func TestNoLogs(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "why", "job/a", "--server="+server.URL, "--kubeconfig=", "--cache-dir="+t.TempDir())
	cmd.Env = append(os.Environ(), asProgram+"=1")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || strings.Count(stderr.String(), "\n") != 1 ||
		!strings.HasPrefix(stderr.String(), "Error: cannot reach the API server ") {
		t.Errorf("ended with %v: %s", err, &stderr)
	}
}
